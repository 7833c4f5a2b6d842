// The small parts that all views are made of.

import { ICONS } from "../vendor/icons.js";
import { ago, exactTime } from "./format.js";
import { classes, h, html, useEffect, useLayoutEffect, useRef, useState } from "./lib.js";
import { createStore, useStore } from "./store.js";

export function Icon({ name, size = 16 }) {
  const shapes = ICONS[name].map(([tag, attributes]) => h(tag, attributes));
  return html`<svg
    class="icon"
    width=${size}
    height=${size}
    viewBox="0 0 24 24"
    fill="none"
    stroke="currentColor"
    stroke-width="1.75"
    stroke-linecap="round"
    stroke-linejoin="round"
    aria-hidden="true"
  >
    ${shapes}
  </svg>`;
}

export function Button({ icon, children, kind = "", label, busy = false, ...rest }) {
  return html`<button
    type="button"
    class=${classes("button", kind, children ? "" : "only-icon")}
    aria-label=${label}
    title=${label}
    aria-busy=${busy}
    disabled=${busy}
    ...${rest}
  >
    ${icon && html`<${Icon} name=${icon} />`}${children && html`<span>${children}</span>`}
  </button>`;
}

/** One of several; `options` are {value, label, icon, title}. */
export function Choice({ options, value, onPick, label }) {
  return html`<div class="choice" role="group" aria-label=${label}>
    ${options.map(
      (option) =>
        html`<button
          type="button"
          key=${option.value}
          aria-pressed=${option.value === value}
          title=${option.title}
          onClick=${() => onPick(option.value)}
        >
          ${option.icon && html`<${Icon} name=${option.icon} size="14" />`}${option.label}
        </button>`,
    )}
  </div>`;
}

/** How long ago; it is drawn again every 20 seconds. */
export function Time({ at }) {
  const [, draw] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => draw((n) => n + 1), 20_000);
    return () => clearInterval(timer);
  }, []);
  return html`<time datetime=${new Date(at).toISOString()} title=${exactTime(at)}>${ago(at)}</time>`;
}

export const Chip = ({ kind = "", title, children }) =>
  html`<span class=${classes("chip", kind)} title=${title}>${children}</span>`;

export function Waiting({ what }) {
  return html`<div class="waiting" role="status"><span class="spinner"></span>Loading ${what} …</div>`;
}

export function Empty({ icon = "inbox", title, children }) {
  return html`<div class="empty">
    <${Icon} name=${icon} size="28" />
    <h2>${title}</h2>
    ${children && html`<p>${children}</p>`}
  </div>`;
}

/** What went wrong, what to do, and the button that tries again. */
export function Problem({ error, retry }) {
  return html`<div class="problem" role="alert">
    <${Icon} name="circle-alert" size="20" />
    <div>
      <p>${error.message}</p>
      ${error.hint && html`<p class="quiet">${error.hint}</p>`}
      <p class="problem-foot">
        <code>${error.code ?? "ERROR"}</code>
        ${retry && html`<${Button} icon="refresh-cw" onClick=${retry}>Try again<//>`}
      </p>
    </div>
  </div>`;
}

/** A modal dialog; Escape and a click beside it close it. */
export function Dialog({ title, onClose, children, kind = "" }) {
  const root = useRef(null);
  useLayoutEffect(() => {
    const before = document.activeElement;
    root.current.showModal();
    return () => before?.isConnected && before.focus();
  }, []);
  return html`<dialog
    ref=${root}
    class=${kind}
    aria-label=${title}
    onClose=${onClose}
    onClick=${(event) => event.target === root.current && onClose()}
  >
    <div class="dialog-body">${children}</div>
  </dialog>`;
}

const notes = createStore([]);
let lastNote = 0;

/** Tell the user what happened, in the corner. */
export function note(text, { kind = "", hint = null } = {}) {
  lastNote += 1;
  const id = lastNote;
  notes.set([...notes.get(), { id, text, kind, hint }]);
  setTimeout(() => dismiss(id), kind === "bad" ? 12_000 : 4000);
}

const dismiss = (id) => notes.set(notes.get().filter((found) => found.id !== id));

export function Notes() {
  return html`<div class="notes" role="status" aria-live="polite">
    ${useStore(notes).map(
      ({ id, text, kind, hint }) =>
        html`<div key=${id} class=${classes("note", kind)}>
          <div>
            <p>${text}</p>
            ${hint && html`<p class="quiet">${hint}</p>`}
          </div>
          <${Button} icon="x" label="Dismiss" kind="bare" onClick=${() => dismiss(id)} />
        </div>`,
    )}
  </div>`;
}

/** Run a change that a button asked for; says what came of it. Returns its answer, or undefined when it failed. */
export async function attempt(work, done) {
  try {
    const answer = await work();
    if (done) note(done);
    return answer ?? null;
  } catch (error) {
    note(error.message, { kind: "bad", hint: error.hint });
    return undefined;
  }
}
