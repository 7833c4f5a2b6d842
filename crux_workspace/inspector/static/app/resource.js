// Data from the service in a component: what there is, what went wrong, and again when the namespace changes.

import { onChange } from "./live.js";
import { useCallback, useEffect, useRef, useState } from "./lib.js";

const SETTLE_MS = 40;

/**
 * Load data when `deps` change, and again when a change that `concerns` it happens.
 * While it loads again the old data stays; `data` is undefined before the first answer.
 */
export function useResource(load, deps, concerns) {
  const [state, setState] = useState({ data: undefined, error: null, key: null });
  const [again, setAgain] = useState(0);
  const key = JSON.stringify(deps);
  const latest = useRef(null);
  latest.current = { load, concerns };

  useEffect(() => {
    const control = new AbortController();
    latest.current.load(control.signal).then(
      (data) => control.signal.aborted || setState({ data, error: null, key }),
      (error) => control.signal.aborted || setState({ data: undefined, error, key }),
    );
    return () => control.abort();
  }, [key, again]);

  const reload = useCallback(() => setAgain((n) => n + 1), []);
  useEffect(() => {
    let timer = 0;
    const off = onChange((message) => {
      const wanted = message.type === "reset" || latest.current.concerns?.(message.event);
      if (!wanted || timer) return;
      timer = setTimeout(() => {
        timer = 0;
        reload();
      }, SETTLE_MS);
    });
    return () => {
      off();
      clearTimeout(timer);
    };
  }, []);

  const stale = state.key !== key;
  return {
    data: stale ? undefined : state.data,
    error: stale ? null : state.error,
    loading: stale,
    reload,
  };
}
