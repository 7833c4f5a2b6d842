// The keys that work everywhere, and the dialog that lists them.

import { html, useEffect, useRef } from "./lib.js";
import { Dialog } from "./ui.js";

export const SHORTCUTS = [
  ["Everywhere", [
    ["?", "this list"],
    ["t", "go to a file"],
    ["/", "search in texts"],
    ["g f", "files"],
    ["g s", "search"],
    ["g c", "commits"],
    ["g a", "artifacts"],
    ["g p", "approvals"],
    ["g v", "traces"],
    ["g u", "usage"],
    ["m", "dark, light or the system's colours"],
  ]],
  ["In the tree", [
    ["↑ ↓", "one up or down"],
    ["→ ←", "open or close a directory, go in or out"],
    ["Home End", "first or last"],
    ["Enter", "show it"],
  ]],
  ["In a file", [
    ["d", "content or changes"],
    ["s", "side by side or in one column"],
    ["j k", "older or newer version"],
  ]],
];

const typing = (target) => target.closest?.("input, textarea, select, [contenteditable]") !== null;

/** Call `actions[key]` for keys pressed outside of fields; two keys after each other are named "g f". */
export function useShortcuts(actions) {
  const latest = useRef(actions);
  latest.current = actions;
  useEffect(() => {
    let first = "";
    let timer = 0;
    const pressed = (event) => {
      const open = latest.current.t && event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey);
      if (open) {
        event.preventDefault();
        latest.current.t?.();
        return;
      }
      if (event.altKey || event.ctrlKey || event.metaKey || typing(event.target) || document.querySelector("dialog[open]")) return;
      const name = first ? `${first} ${event.key}` : event.key;
      clearTimeout(timer);
      first = "";
      if (name === "g") {
        first = "g";
        timer = setTimeout(() => {
          first = "";
        }, 1500);
      } else if (latest.current[name]) {
        event.preventDefault();
        latest.current[name]();
      }
    };
    addEventListener("keydown", pressed);
    return () => {
      clearTimeout(timer);
      removeEventListener("keydown", pressed);
    };
  }, []);
}

export function ShortcutsDialog({ onClose }) {
  return html`<${Dialog} title="Keyboard shortcuts" kind="shortcuts" onClose=${onClose}>
    <h2>Keyboard shortcuts</h2>
    <div class="shortcut-groups">
      ${SHORTCUTS.map(
        ([name, keys]) =>
          html`<section key=${name}>
            <h3>${name}</h3>
            <dl>
              ${keys.map(
                ([key, what]) =>
                  html`<dt>${key.split(" ").map((part) => html`<kbd>${part}</kbd> `)}</dt>
                    <dd>${what}</dd>`,
              )}
            </dl>
          </section>`,
      )}
    </div>
    <form method="dialog"><button class="button" autofocus>Close</button></form>
  <//>`;
}
