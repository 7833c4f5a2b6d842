// Where the user is, kept in the address's fragment: it never reaches the server, and back, forward and bookmarks work.

import { createStore, useStore } from "./store.js";

const parse = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));

const route = createStore(parse());
addEventListener("hashchange", () => route.set(parse()));

/** Return the current place: an object of strings (`ns`, `view`, `path`, …). */
export const useRoute = () => useStore(route);
export const currentRoute = () => route.get();

/** Return the address of a place in the current namespace, with nothing else of the current place. */
export function href(place) {
  const ns = route.get().ns;
  const all = { ...(ns === undefined ? {} : { ns }), ...place };
  const kept = Object.entries(all).filter(([, value]) => value !== undefined && value !== null);
  return `#${new URLSearchParams(kept.map(([key, value]) => [key, String(value)]))}`;
}

/** Go to a place. */
export function go(place, { replace = false } = {}) {
  const target = href(place);
  if (target === location.hash) return;
  if (replace) history.replaceState(null, "", target);
  else history.pushState(null, "", target);
  route.set(parse());
}

/** Change a part of the current place. */
export const adjust = (part, options) => go({ ...route.get(), ...part }, options);

/** Return the address of a file or directory. */
export const fileHref = (path, more = {}) => href({ view: "files", path, ...more });
