// Go to a file by a part of its name, or to another namespace.

import { get, session } from "./api.js";
import { nameOf, parentOf, visible } from "./format.js";
import { html } from "./lib.js";
import { Picker } from "./picker.js";
import { go } from "./route.js";
import { iconOf } from "./tree.js";

const MOST = 40;

const literally = (text) => text.replace(/[*?[\]{}\\]/g, (found) => (found === "\\" ? "" : `[${found}]`));

const anyCase = (text) =>
  text.replace(/\p{L}/gu, (letter) => {
    const [low, high] = [letter.toLowerCase(), letter.toUpperCase()];
    return low === high || low.length !== 1 || high.length !== 1 ? letter : `[${low}${high}]`;
  });

/** Return the glob of a text: from the start of paths if it begins with a slash, else of names, in either case. */
export function globOf(text) {
  const trimmed = text.trim();
  if (trimmed.startsWith("/")) return `${literally(trimmed)}**`;
  const words = trimmed.split(/\s+/).map((word) => anyCase(literally(word)));
  return `/**/*${words.join("*")}*`;
}

async function files(text, signal) {
  if (text.trim() === "") return [];
  const found = await get("/v1/list", { path: globOf(text), glob: "true", limit: MOST }, { signal });
  return found.entries.map((entry) => ({
    key: entry.path,
    label: visible(nameOf(entry.path)),
    aside: visible(parentOf(entry.path)),
    icon: iconOf(entry),
  }));
}

export function QuickOpen({ onClose }) {
  return html`<${Picker}
    title="Go to file"
    label="Files"
    placeholder="Go to file …"
    hint="A part of the name, or a path from its start."
    none="No file has that in its name."
    load=${files}
    onPick=${(item) => go({ view: "files", path: item.key })}
    onClose=${onClose}
  />`;
}

async function namespaces(text, signal) {
  const found = await get("/v1/namespaces", { namespace: undefined, prefix: text, limit: MOST }, { signal });
  const own = (session.get().namespaces ?? []).filter((name) => name.startsWith(text));
  const names = [...new Set([...found.names, ...own])];
  return names.map((name) => ({ key: name, label: visible(name), aside: "", icon: "database" }));
}

export function NamespacePicker({ onClose }) {
  return html`<${Picker}
    title="Namespaces"
    label="Namespaces"
    placeholder="Go to namespace …"
    hint="The start of its name."
    none="No namespace starts like that."
    load=${namespaces}
    onPick=${(item) => go({ ns: item.key, view: "files" })}
    onClose=${onClose}
  />`;
}

/** Return the namespace to begin with: the token's own one, else the first there is. */
export async function firstNamespace() {
  const { namespace, namespaces: named } = session.get();
  if (namespace) return namespace;
  const found = await get("/v1/namespaces", { namespace: undefined, limit: 1 });
  return found.names[0] ?? named?.[0] ?? "default";
}
