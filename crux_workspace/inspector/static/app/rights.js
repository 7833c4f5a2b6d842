// What the session may do. The service decides anew with each call; this only says which buttons make sense.

import { session } from "./api.js";

const covers = (mount, path) => mount === "/" || path === mount || path.startsWith(`${mount}/`);

/** Whether the session may write at all. */
export const mayWriteAnything = () => session.get()?.write === true;

/** Whether the session may see and answer what agents wait for. */
export const mayApprove = () => session.get()?.approvals === true;

/** Whether the session may write at a path: the deepest mount above it decides. */
export function mayWrite(path) {
  if (!mayWriteAnything()) return false;
  const above = (session.get().mounts ?? []).filter((mount) => covers(mount.path, path));
  const deepest = above.sort((a, b) => b.path.length - a.path.length)[0];
  return deepest?.access === "readwrite";
}
