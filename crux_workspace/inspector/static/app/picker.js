// A box to type in and a list to choose from, both by keyboard.

import { classes, html, useEffect, useRef, useState } from "./lib.js";
import { Dialog, Icon } from "./ui.js";

const TYPING_MS = 120;

/** `load(text, signal)` returns the items {key, label, aside, icon}; `onPick` gets the chosen one. */
export function Picker({ title, label, placeholder, hint, none, load, onPick, onClose }) {
  const [text, setText] = useState("");
  const [state, setState] = useState({ items: [], error: null, asked: null });
  const [at, setAt] = useState(0);
  const list = useRef(null);

  useEffect(() => {
    const control = new AbortController();
    const ask = async () => {
      try {
        const items = await load(text, control.signal);
        setState({ items, error: null, asked: text });
        setAt(0);
      } catch (error) {
        if (error.name !== "AbortError") setState({ items: [], error, asked: text });
      }
    };
    const timer = setTimeout(ask, text === "" ? 0 : TYPING_MS);
    return () => {
      clearTimeout(timer);
      control.abort();
    };
  }, [text]);

  const { items, error, asked } = state;

  function pick(item) {
    onClose();
    onPick(item);
  }

  function pressed(event) {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const next = Math.max(0, Math.min(items.length - 1, at + (event.key === "ArrowDown" ? 1 : -1)));
      setAt(next);
      list.current?.children[next]?.scrollIntoView({ block: "nearest" });
    } else if (event.key === "Enter" && items[at] && asked === text) {
      event.preventDefault();
      pick(items[at]);
    }
  }

  return html`<${Dialog} title=${title} kind="quick" onClose=${onClose}>
    <div class="quick-box">
      <${Icon} name="search" />
      <input
        autofocus
        role="combobox"
        aria-label=${label}
        aria-expanded=${items.length > 0}
        aria-controls="quick-list"
        aria-autocomplete="list"
        aria-activedescendant=${items[at] ? `quick-${at}` : undefined}
        placeholder=${placeholder}
        value=${text}
        onInput=${(event) => setText(event.target.value)}
        onKeyDown=${pressed}
        spellcheck=${false}
        autocomplete="off"
      />
    </div>
    <ul id="quick-list" ref=${list} role="listbox" aria-label=${label}>
      ${items.map(
        (item, index) =>
          html`<li
            key=${item.key}
            id=${`quick-${index}`}
            role="option"
            aria-selected=${index === at}
            class=${classes(index === at && "at")}
            onClick=${() => pick(item)}
          >
            <${Icon} name=${item.icon} size="15" /> <span>${item.label}</span> <span class="quiet">${item.aside}</span>
          </li>`,
      )}
    </ul>
    ${error && html`<p class="quick-hint bad">${error.message}</p>`}
    ${!error && asked && items.length === 0 && html`<p class="quick-hint">${none}</p>`}
    ${text === "" && html`<p class="quick-hint">${hint}</p>`}
  <//>`;
}
