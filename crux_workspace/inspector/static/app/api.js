// Calls of the HTTP service. A session cookie says who asks.

import { createStore } from "./store.js";
import { currentRoute } from "./route.js";

/** What the session may do, from `/v1/session`; null while nobody is signed in, undefined before that is known. */
export const session = createStore(undefined);

/** The path that the service lies below: the inspector's page is at `inspector/` in it. */
export const BASE = new URL("../../../", import.meta.url).pathname;

// Only this site's own scripts can send it: the service refuses a change by cookie without it.
const OWN = { "X-Workspace-Request": "1" };

/** A refused or failed call, with the service's code and hint. */
export class CallError extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || `The service answered ${status}.`);
    this.status = status;
    this.code = problem.code || `HTTP_${status}`;
    this.hint = problem.hint || null;
    this.details = problem.details || {};
  }
}

function address(path, params) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(params)) {
    if (value !== undefined && value !== null && value !== false) query.set(key, String(value));
  }
  const text = query.toString();
  const place = BASE + path.slice(1);
  return text ? `${place}?${text}` : place;
}

const inNamespace = (params) => {
  const ns = currentRoute().ns;
  return ns === undefined || "namespace" in params ? params : { namespace: ns, ...params };
};

async function call(url, options) {
  let response;
  try {
    response = await fetch(url, { credentials: "same-origin", cache: "no-store", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new CallError(0, {
      code: "UNREACHABLE",
      detail: "The service does not answer.",
      hint: "Is `crux-workspace serve` running, and can this machine reach it?",
    });
  }
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  if (response.status === 401 && session.get()) session.set(null);
  throw new CallError(response.status, problem.error ? { ...problem.error, detail: problem.error.message } : problem);
}

/** Return the JSON that a GET answers. */
export async function get(path, params = {}, options = {}) {
  return (await call(address(path, inNamespace(params)), options)).json();
}

/** Return a file's bytes as a Blob of the given type. */
export async function blob(params, type) {
  const response = await call(address("/v1/file", inNamespace(params)), {});
  return new Blob([await response.arrayBuffer()], { type });
}

/** Return a file's first bytes. */
export async function head(params, count) {
  const headers = { Range: `bytes=0-${count - 1}` };
  const response = await call(address("/v1/file", inNamespace(params)), { headers });
  return new Uint8Array(await response.arrayBuffer()).subarray(0, count);
}

/** Return the address under which the browser downloads a file. */
export const downloadAddress = (params) => address("/v1/file", inNamespace(params));

const randomKey = () =>
  [...crypto.getRandomValues(new Uint8Array(16))].map((n) => n.toString(16).padStart(2, "0")).join("");

/** Send a change; it takes effect at most once. */
export async function post(path, body, params = {}) {
  const headers = { ...OWN, "Content-Type": "application/json", "Idempotency-Key": randomKey() };
  const response = await call(address(path, params), { method: "POST", headers, body: JSON.stringify(body) });
  return response.status === 204 ? null : response.json();
}

/** Send a change of the current namespace. */
export const change = (path, body) => post(path, body, inNamespace({}));

/** Learn who is signed in: by a cookie of before, or because the service asks nobody for a token. */
export async function resume() {
  try {
    session.set(await get("/v1/session", { namespace: null }));
  } catch (error) {
    if (error.status !== 401) throw error;
    session.set(null);
  }
}

/** Trade a token for a session cookie, which no script can read. */
export async function signIn(token) {
  const headers = { ...OWN, "Content-Type": "application/json", Authorization: `Bearer ${token}` };
  await call(address("/v1/session", {}), { method: "POST", headers, body: "{}" });
  session.set(await get("/v1/session", { namespace: null }));
}

/** End the session. */
export async function signOut() {
  await call(address("/v1/session", {}), { method: "DELETE", headers: OWN });
  session.set(null);
}
