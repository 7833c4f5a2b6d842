// State that several components see: a value, who wants to know of changes, and a hook.

import { useEffect, useState } from "./lib.js";

/** Return a value that tells its listeners when it changes. */
export function createStore(initial) {
  let value = initial;
  const listeners = new Set();
  return {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const listener of [...listeners]) listener(value);
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** Return a store's value, and draw again when it changes. */
export function useStore(store) {
  const [, draw] = useState(0);
  useEffect(() => {
    const seen = store.get();
    const off = store.subscribe(() => draw((n) => n + 1));
    if (store.get() !== seen) draw((n) => n + 1);
    return off;
  }, [store]);
  return store.get();
}

/** Return the value of a name in local storage, or `fallback`; storage may be forbidden. */
export function remembered(name, fallback) {
  try {
    return localStorage.getItem(`crux.${name}`) ?? fallback;
  } catch {
    return fallback;
  }
}

/** Keep a value in local storage, if that is allowed. */
export function remember(name, value) {
  try {
    localStorage.setItem(`crux.${name}`, value);
  } catch {
    // Without storage the setting lasts as long as the page.
  }
}
