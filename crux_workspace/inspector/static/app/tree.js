// The tree as the user sees it: only the rows in sight are drawn, and one of them has the keyboard's focus.

import { fileHref, go } from "./route.js";
import { visible } from "./format.js";
import { classes, html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./lib.js";
import { onChange } from "./live.js";
import { Tree } from "./tree-model.js";
import { Button, Icon } from "./ui.js";

const ROW = 26;
const BEYOND = 12;

/** The icon of a listed file or directory. */
export function iconOf(entry, open = false) {
  if (entry.kind === "directory") return open ? "folder-open" : "folder";
  const mime = entry.mime_type ?? "";
  if (mime.startsWith("image/")) return "image";
  if (entry.content_kind === "json") return "braces";
  if (entry.content_kind === "binary") return "binary";
  return /\.(md|txt|rst|log)$/i.test(entry.name ?? entry.path) ? "file-text" : "file-code";
}

function useTree(namespace) {
  const [, draw] = useState(0);
  const model = useMemo(() => new Tree(namespace, () => draw((n) => n + 1)), [namespace]);
  useEffect(() => {
    model.load("/").then(() => {
      const top = model.directory("/").entries;
      if (top.length <= 4) for (const entry of top) model.expand(entry.path);
    });
    const off = onChange((message) => {
      if (message.type === "reset") model.refresh();
      else model.apply(message.event);
    });
    return () => {
      off();
      model.end();
    };
  }, [model]);
  return model;
}

function useWindow(root, count) {
  const [window, setWindow] = useState({ top: 0, height: 600 });
  useLayoutEffect(() => {
    const box = root.current;
    const measure = () => setWindow({ top: box.scrollTop, height: box.clientHeight });
    const watch = new ResizeObserver(measure);
    watch.observe(box);
    box.addEventListener("scroll", measure, { passive: true });
    return () => {
      watch.disconnect();
      box.removeEventListener("scroll", measure);
    };
  }, []);
  const first = Math.max(0, Math.floor(window.top / ROW) - BEYOND);
  const last = Math.min(count, Math.ceil((window.top + window.height) / ROW) + BEYOND);
  return [first, last];
}

function Row({ row, index, selected, focused, fresh, onToggle, onPick, onMore }) {
  const at = `top:${index * ROW}px;--level:${row.level}`;
  if (row.type === "none") return html`<div class="tree-row aside" style=${at} role="none">empty</div>`;
  if (row.type === "gap") {
    return html`<div class="tree-row aside gap" style=${at} role="none" onClick=${() => onMore(row)}>… load what comes between</div>`;
  }
  if (row.type === "more") return html`<div class="tree-row aside" style=${at} role="none">loading …</div>`;
  const { entry } = row;
  const directory = entry.kind === "directory";
  return html`<a
    class=${classes("tree-row", directory && "is-directory", selected && "selected", fresh && "fresh")}
    style=${at}
    role="treeitem"
    href=${fileHref(entry.path)}
    aria-level=${row.level}
    aria-posinset=${row.place}
    aria-setsize=${row.size}
    aria-expanded=${directory ? row.open : undefined}
    aria-selected=${selected}
    tabindex=${focused ? 0 : -1}
    data-path=${entry.path}
    title=${visible(entry.path)}
    onClick=${(event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey) return;
      event.preventDefault();
      onPick(row);
    }}
  >
    <span class="tree-turn" onClick=${directory ? (event) => onToggle(event, row) : undefined}>
      ${directory && html`<${Icon} name=${row.open ? "chevron-down" : "chevron-right"} size="14" />`}
    </span>
    <${Icon} name=${iconOf(entry, row.open)} size="15" />
    <span class="tree-name">${visible(entry.name)}</span>
    ${entry.status && html`<span class=${`dot ${entry.status}`} title=${`artifact: ${entry.status}`}></span>`}
    ${entry.version > 1 && html`<span class="tree-version">v${entry.version}</span>`}
  </a>`;
}

const neighbour = (rows, from, step) => {
  for (let at = from + step; at >= 0 && at < rows.length; at += step) {
    if (rows[at].type === "entry") return at;
  }
  return from;
};

function moved(key, rows, at, page, model) {
  const row = rows[at];
  switch (key) {
    case "ArrowDown":
      return neighbour(rows, at, 1);
    case "ArrowUp":
      return neighbour(rows, at, -1);
    case "Home":
      return neighbour(rows, -1, 1);
    case "End":
      return neighbour(rows, rows.length, -1);
    case "PageDown":
      return neighbour(rows, Math.min(at + page, rows.length - 1) - 1, 1);
    case "PageUp":
      return neighbour(rows, Math.max(at - page, 0) + 1, -1);
    case "ArrowRight":
      if (row.entry.kind !== "directory") return at;
      if (!row.open) {
        model.expand(row.entry.path);
        return at;
      }
      return rows[at + 1]?.level > row.level ? neighbour(rows, at, 1) : at;
    case "ArrowLeft":
      if (row.open) {
        model.collapse(row.entry.path);
        return at;
      }
      return Math.max(0, rows.findLastIndex((found, index) => index < at && found.level < row.level));
    default:
      return null;
  }
}

/** The namespace's tree; `selected` is the path that the main pane shows. */
export function TreeView({ namespace, selected, onPicked }) {
  const model = useTree(namespace);
  const root = useRef(null);
  const rows = model.rows();
  const [focus, setFocus] = useState("/");
  const [first, last] = useWindow(root, rows.length);
  const wantFocus = useRef(false);
  const wantSight = useRef(null);

  const at = Math.max(
    0,
    rows.findIndex((row) => row.key === focus),
  );

  useEffect(() => {
    if (!selected || selected === "/") return;
    setFocus(selected);
    wantSight.current = { key: selected, top: null };
    model.reveal(selected);
  }, [model, selected]);

  useLayoutEffect(() => {
    keepInSight();
  });

  useEffect(() => {
    for (const row of rows.slice(first, last)) if (row.type === "more") model.load(row.path);
  }, [rows, first, last]);

  useLayoutEffect(() => {
    if (!wantFocus.current) return;
    wantFocus.current = false;
    root.current.querySelector('[role="treeitem"][tabindex="0"]')?.focus({ preventScroll: true });
  });

  /** Hold the selected row in sight while pages arrive above it, until the user goes elsewhere. */
  function keepInSight() {
    const wish = wantSight.current;
    if (wish === null) return;
    if (wish.top !== null && root.current.scrollTop !== wish.top) {
      wantSight.current = null;
      return;
    }
    const index = rows.findIndex((row) => row.key === wish.key);
    if (index < 0) return;
    scrollTo(index);
    wish.top = root.current.scrollTop;
  }

  function scrollTo(index) {
    const box = root.current;
    if (!box || index < 0) return;
    if (index * ROW < box.scrollTop) box.scrollTop = index * ROW;
    else if ((index + 1) * ROW > box.scrollTop + box.clientHeight) box.scrollTop = (index + 1) * ROW - box.clientHeight;
  }

  function toggle(event, row) {
    event.preventDefault();
    event.stopPropagation();
    wantSight.current = null;
    if (row.open) model.collapse(row.entry.path);
    else model.expand(row.entry.path);
  }

  function pick(row) {
    setFocus(row.key);
    if (row.entry.kind === "directory") {
      if (row.open && row.key === selected) model.collapse(row.entry.path);
      else model.expand(row.entry.path);
    }
    go({ view: "files", path: row.entry.path });
    if (row.entry.kind !== "directory") onPicked?.();
  }

  function pressed(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || rows[at]?.type !== "entry") return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      pick(rows[at]);
      return;
    }
    const page = Math.floor(root.current.clientHeight / ROW) - 1;
    const next = moved(event.key, rows, at, page, model);
    if (next === null) return;
    event.preventDefault();
    for (const row of rows.slice(Math.min(at, next), Math.max(at, next))) if (row.type === "gap") model.load(row.path);
    wantFocus.current = true;
    wantSight.current = null;
    scrollTo(next);
    setFocus(rows[next].key);
  }

  const drawn = [];
  for (let index = first; index < last; index += 1) drawn.push(index);
  if (rows[at] && (at < first || at >= last)) drawn.push(at);
  return html`<div class="tree" ref=${root} data-rows=${rows.length}>
    <div class="tree-rows" role="tree" aria-label="Files" style=${`height:${rows.length * ROW}px`} onKeyDown=${pressed}>
      ${drawn.map((index) => {
        const row = rows[index];
        if (row.type === "error") {
          return html`<div key=${row.key} class="tree-row aside bad" style=${`top:${index * ROW}px;--level:${row.level}`} role="none">
            ${row.error.code} <${Button} kind="bare" icon="refresh-cw" label="Try again" onClick=${() => model.load(row.path)} />
          </div>`;
        }
        return html`<${Row}
          key=${row.key}
          row=${row}
          index=${index}
          selected=${row.key === selected}
          focused=${index === at}
          fresh=${model.fresh.has(row.key)}
          onToggle=${toggle}
          onPick=${pick}
          onMore=${() => model.load(row.path)}
        />`;
      })}
    </div>
  </div>`;
}
