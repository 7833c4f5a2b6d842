// The frame around the views: navigation, the tree, the namespace, and what the connection is doing.

import { session, signOut } from "./api.js";
import { approvals, followApprovals, waitingCount } from "./approvals.js";
import { number, visible } from "./format.js";
import { classes, html, useEffect, useRef, useState } from "./lib.js";
import { follow, live } from "./live.js";
import { NamespacePicker, QuickOpen } from "./quick-open.js";
import { mayApprove } from "./rights.js";
import { go, href, useRoute } from "./route.js";
import { ShortcutsDialog, useShortcuts } from "./shortcuts.js";
import { useStore } from "./store.js";
import { nextTheme, theme } from "./theme.js";
import { TreeView } from "./tree.js";
import { attempt, Button, Icon, Notes, Time } from "./ui.js";
import { VIEWS } from "./views.js";

const THEMES = {
  system: { icon: "monitor", label: "Colours: as the system's" },
  light: { icon: "sun", label: "Colours: light" },
  dark: { icon: "moon", label: "Colours: dark" },
};

const STATES = { connecting: "Connecting", live: "Live", waiting: "Reconnecting", refused: "Not allowed" };

function Navigation({ view }) {
  useStore(approvals);
  const waiting = waitingCount();
  return html`<nav class="views" aria-label="Views">
    <ul>
      ${VIEWS.filter(({ id }) => id !== "approvals" || mayApprove()).map(
        ({ id, name, icon, key }) =>
          html`<li key=${id}>
            <a href=${href({ view: id })} aria-current=${id === view ? "page" : undefined} title=${`${name} (g ${key})`}>
              <${Icon} name=${icon} /> <span>${name}</span>
              ${id === "approvals" && waiting > 0 && html`<span class="badge" aria-label=${`${waiting} waiting`}>${waiting}</span>`}
            </a>
          </li>`,
      )}
    </ul>
  </nav>`;
}

function Status() {
  const { state, sequence, at } = useStore(live);
  const rights = session.get();
  return html`<footer class="status">
    <span class=${classes("connection", state)} role="status"><span class="lamp"></span>${STATES[state]}</span>
    ${sequence > 0 && html`<span data-sequence=${sequence}>commit ${number(sequence)} · <${Time} at=${at} /></span>`}
    <span class="spring"></span>
    ${rights.name && html`<span>${visible(rights.name)}</span>`}
    <span class="right" title=${rights.write ? "This session may change files" : "This session may only read"}>
      <${Icon} name=${rights.write ? "pencil" : "lock"} size="12" /> ${rights.write ? "may write" : "read-only"}
    </span>
  </footer>`;
}

function Side({ route, onDialog, onPicked }) {
  const shown = useStore(theme);
  const rights = session.get();
  const selected = (route.view ?? "files") === "files" ? (route.path ?? null) : null;
  return html`<div class="side" id="side">
    <header class="brand">
      <${Icon} name="layers" size="18" />
      <div class="brand-name">
        <strong title="Workspace">${visible(rights.workspace)}</strong>
        <button type="button" class="namespace" title="Another namespace" onClick=${() => onDialog("namespaces")}>
          <span class="unseen">Namespace</span><span>${visible(route.ns)}</span><${Icon} name="chevron-down" size="12" />
        </button>
      </div>
    </header>
    <${Navigation} view=${route.view ?? "files"} />
    <div class="tree-head">
      <h2>Tree</h2>
      <${Button} kind="bare" icon="search" label="Go to file (t)" onClick=${() => onDialog("files")} />
    </div>
    <${TreeView} key=${route.ns} namespace=${route.ns} selected=${selected} onPicked=${onPicked} />
    <div class="side-foot">
      <${Button} kind="bare" icon=${THEMES[shown].icon} label=${THEMES[shown].label} onClick=${nextTheme} />
      <${Button} kind="bare" icon="keyboard" label="Keyboard shortcuts (?)" onClick=${() => onDialog("shortcuts")} />
      <span class="spring"></span>
      ${rights.name && html`<${Button} kind="bare" icon="log-out" label="Sign out" onClick=${() => attempt(signOut)} />`}
    </div>
  </div>`;
}

const DIALOGS = { files: QuickOpen, namespaces: NamespacePicker, shortcuts: ShortcutsDialog };

/** Everything that a signed-in user sees. */
export function Shell() {
  const route = useRoute();
  const [dialog, setDialog] = useState(null);
  const [side, setSide] = useState(false);
  const main = useRef(null);
  const view = VIEWS.find((found) => found.id === (route.view ?? "files")) ?? VIEWS[0];

  useEffect(() => follow(route.ns), [route.ns]);
  useEffect(() => (mayApprove() ? followApprovals() : undefined), []);
  useEffect(() => setSide(false), [route]);
  useEffect(() => {
    const what = view.id === "files" && route.path ? visible(route.path) : view.name;
    document.title = `${what} · ${visible(session.get().workspace)}`;
  }, [view, route]);

  useShortcuts({
    "?": () => setDialog("shortcuts"),
    t: () => setDialog("files"),
    "/": () => go({ view: "search" }),
    m: nextTheme,
    ...Object.fromEntries(VIEWS.map(({ id, key }) => [`g ${key}`, () => go({ view: id })])),
  });

  const Chosen = view.component;
  const Opened = dialog && DIALOGS[dialog];
  return html`<div class=${classes("app", side && "side-open")}>
    <button type="button" class="skip" onClick=${() => main.current.focus()}>Skip to the content</button>
    <div class="narrow-bar">
      <${Button} kind="bare" icon="menu" label="Navigation" aria-expanded=${side} aria-controls="side" onClick=${() => setSide(!side)} />
      <strong>${view.name}</strong>
      <span class="quiet">${visible(route.ns)}</span>
    </div>
    <${Side} route=${route} onDialog=${setDialog} onPicked=${() => setSide(false)} />
    <div class="veil" onClick=${() => setSide(false)}></div>
    <main ref=${main} tabindex="-1"><${Chosen} key=${`${view.id} ${route.ns}`} /></main>
    <${Status} />
    ${Opened && html`<${Opened} onClose=${() => setDialog((now) => (now === dialog ? null : now))} />`}
    <${Notes} />
  </div>`;
}
