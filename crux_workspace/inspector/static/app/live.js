// The namespace's changes as they happen. A listener gets each event once; after a gap it is told to start afresh.

import { BASE, get, session } from "./api.js";
import { createStore } from "./store.js";

// How often the service looks for commits of other processes where the store cannot tell it.
const POLL_MS = 40;
const RETRY_MS = [500, 1000, 2000, 5000];

/** `state`: connecting, live, waiting or refused; `sequence`: the newest commit that was heard of. */
export const live = createStore({ state: "connecting", sequence: 0, at: 0 });

const listeners = new Set();

/** Call `listener` with `{type: "change", event}` for each change and `{type: "reset"}` after a gap. */
export function onChange(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(message) {
  for (const listener of [...listeners]) listener(message);
}

function heard(event) {
  const now = live.get();
  if (event.sequence > now.sequence) live.set({ ...now, sequence: event.sequence, at: event.at });
  tell({ type: "change", event });
}

/** Follow a namespace until the returned function is called. */
export function follow(namespace) {
  let source = null;
  let timer = 0;
  let failures = 0;
  let cursor = null;
  let ended = false;
  live.set({ state: "connecting", sequence: 0, at: 0 });

  const state = (name) => live.set({ ...live.get(), state: name });

  async function newest() {
    const [commit] = await get("/v1/log", { namespace, limit: 1, max_changes: 0 }).catch(() => []);
    const now = live.get();
    if (commit && !ended && commit.sequence > now.sequence) live.set({ ...now, sequence: commit.sequence, at: commit.at });
  }

  async function connect() {
    try {
      if (cursor === null) {
        cursor = (await get("/v1/cursor", { namespace })).cursor;
        if (failures > 0 && !ended) tell({ type: "reset" });
        newest();
      }
    } catch (error) {
      if (error.status === 401 || error.status === 403) return state("refused");
      return later();
    }
    if (!ended) open();
  }

  function open() {
    const query = new URLSearchParams({ namespace, cursor, recursive: "true", poll_interval_ms: POLL_MS });
    source = new EventSource(`${BASE}v1/events?${query}`);
    source.onopen = () => {
      failures = 0;
      state("live");
    };
    source.addEventListener("change", (message) => {
      cursor = message.lastEventId || cursor;
      heard(JSON.parse(message.data));
    });
    source.addEventListener("gap", () => {
      cursor = null;
      failures = 1;
      source.close();
      connect();
    });
    source.onerror = () => {
      source.close();
      later();
    };
  }

  function later() {
    if (ended) return;
    state("waiting");
    timer = setTimeout(connect, RETRY_MS[Math.min(failures, RETRY_MS.length - 1)]);
    failures += 1;
    if (failures > 2 && session.get()) get("/v1/session", { namespace: null }).catch(() => {});
  }

  connect();
  return () => {
    ended = true;
    clearTimeout(timer);
    source?.close();
  };
}
