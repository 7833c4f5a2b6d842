// A file: its content at a version, what changed between two, and its history beside them.

import { downloadAddress, get } from "./api.js";
import { Actions } from "./file-actions.js";
import { Breadcrumb } from "./crumbs.js";
import { Content, isText } from "./file-content.js";
import { Deleted, Directory } from "./directory.js";
import { Diff } from "./diff.js";
import { bytes, visible } from "./format.js";
import { classes, html, useState } from "./lib.js";
import { useResource } from "./resource.js";
import { adjust, useRoute } from "./route.js";
import { useShortcuts } from "./shortcuts.js";
import { remember, remembered } from "./store.js";
import { Timeline } from "./timeline.js";
import { Chip, Choice, Problem, Time, Waiting } from "./ui.js";

const PAGE = 50;

/** What there is at a path: a file with its history, a directory, a deleted file, or nothing. */
async function load(path, count, signal) {
  if (path.endsWith("/")) return { kind: "directory" };
  const [file, entries] = await Promise.all([
    get("/v1/stat", { path }, { signal }),
    get("/v1/history", { path, limit: count + 1 }, { signal }).catch(noHistory),
  ]);
  if (file) return { kind: "file", file, entries: entries.slice(0, count), more: entries.length > count };
  if ((await get("/v1/is_dir", { path }, { signal })).is_dir) return { kind: "directory" };
  if (entries.length > 0) return { kind: "deleted", entries: entries.slice(0, count), more: entries.length > count };
  return { kind: "nothing" };
}

// What a source shows has no history here.
const noHistory = (error) => {
  if (error.code === "SOURCE_UNSUPPORTED" || error.code === "INVALID_PATH" || error.status === 404) return [];
  throw error;
};

function Facts({ file, entry }) {
  const shown = entry ?? file;
  return html`<div class="facts">
    <${Chip} title="MIME type">${shown.mime_type}<//>
    <${Chip} title=${`${shown.size} bytes`}>${bytes(shown.size)}<//>
    ${file.status &&
    html`<${Chip} kind=${file.status} title="Artifact status">
      ${file.status}${file.artifact_kind && ` ${file.artifact_kind}`}${file.pinned_version && ` · pinned v${file.pinned_version}`}
    <//>`}
    ${file.storage !== "inline" && html`<${Chip} title="Where the content lies">${file.storage}<//>`}
    ${file.updated_at > 0 && html`<span class="quiet">changed <${Time} at=${file.updated_at} /></span>`}
  </div>`;
}

/** The versions that the address asks for: which one is shown, and with which one it is compared. */
export function versionsOf(route, entries, head) {
  const known = entries.map((entry) => entry.version);
  const shown = Number(route.v) || head;
  const earlier = known.filter((version) => version < shown);
  const from = Number(route.from) || earlier[0] || null;
  return { shown, from };
}

function useLayout() {
  const [split, setSplit] = useState(remembered("diff", "unified") === "split");
  const pick = (value) => {
    remember("diff", value);
    setSplit(value === "split");
  };
  return [split, pick];
}

function Toolbar({ diffing, text, canDiff, split, onSplit, whole, onWhole, from, shown, entries, wrap, onWrap }) {
  if (!text && !canDiff) return null;
  return html`<div class="toolbar">
    <${Choice}
      label="View"
      value=${diffing ? "diff" : "content"}
      onPick=${(show) => adjust({ show: show === "diff" ? "diff" : undefined, line: undefined })}
      options=${[
        { value: "content", label: "Content", title: "Content (d switches)" },
        ...(canDiff ? [{ value: "diff", label: "Changes", title: "Changes (d switches)" }] : []),
      ]}
    />
    ${diffing
      ? html`<label class="compare">
            <span class="quiet">from</span>
            <select aria-label="Compare from version" value=${from} onChange=${(event) => adjust({ from: event.target.value })}>
              ${entries
                .filter((entry) => entry.version < shown)
                .map((entry) => html`<option key=${entry.version} value=${entry.version} selected=${entry.version === from}>v${entry.version}</option>`)}
            </select>
            <span class="quiet">to v${shown}</span>
          </label>
          <span class="spring"></span>
          <${Choice}
            label="Context"
            value=${whole ? "whole" : "near"}
            onPick=${(value) => onWhole(value === "whole")}
            options=${[
              { value: "near", label: "3 lines" },
              { value: "whole", label: "Whole file" },
            ]}
          />
          <${Choice}
            label="Layout"
            value=${split ? "split" : "unified"}
            onPick=${onSplit}
            options=${[
              { value: "unified", label: "Unified", icon: "rows-2" },
              { value: "split", label: "Split", icon: "columns-2" },
            ]}
          />`
      : html`<span class="spring"></span>
          ${text &&
          html`<button type="button" class="button bare" aria-pressed=${wrap} title="Wrap long lines" onClick=${() => onWrap(!wrap)}>
            Wrap
          </button>`}`}
  </div>`;
}

function FileShown({ path, found, onMore, reload }) {
  const route = useRoute();
  const { file, entries } = found;
  const { shown, from } = versionsOf(route, entries, file.version);
  const entry = entries.find((item) => item.version === shown);
  const canDiff = from !== null && file.content_kind !== "binary";
  const diffing = route.show === "diff" && canDiff;
  const [split, setSplit] = useLayout();
  const [whole, setWhole] = useState(false);
  const [wrap, setWrap] = useState(remembered("wrap", "") === "on");
  const old = shown !== file.version;
  const step = (by) => {
    const next = entries[entries.findIndex((item) => item.version === shown) + by];
    if (next) adjust({ v: next.version === file.version ? undefined : next.version, from: undefined, line: undefined });
  };
  useShortcuts({
    d: () => canDiff && adjust({ show: diffing ? undefined : "diff", line: undefined }),
    s: () => setSplit(split ? "unified" : "split"),
    j: () => step(1),
    k: () => step(-1),
  });
  return html`<div class="file">
    <header class="pane-head">
      <div class="pane-title">
        <${Breadcrumb} path=${path} />
        ${shown > 0 &&
        html`<${Chip} kind=${classes("version", old && "old")} title=${old ? `The newest is v${file.version}` : "The newest version"}>
          v${shown}${old ? ` of ${file.version}` : ""}
        <//>`}
        <span class="spring"></span>
        <${Actions} file=${file} head=${entries[0]} shown=${shown} onDone=${reload} download=${downloadAddress({ path, version: old ? shown : undefined })} />
      </div>
      <${Facts} file=${file} entry=${entry} />
    </header>
    <div class="file-body">
      <section class="file-main" aria-label="File">
        <${Toolbar}
          diffing=${diffing}
          text=${isText(entry ?? file)}
          canDiff=${canDiff}
          split=${split}
          onSplit=${setSplit}
          whole=${whole}
          onWhole=${setWhole}
          from=${from}
          shown=${shown}
          entries=${entries}
          wrap=${wrap}
          onWrap=${(on) => {
            remember("wrap", on ? "on" : "");
            setWrap(on);
          }}
        />
        ${diffing
          ? html`<${Diff} path=${path} from=${from} to=${shown} entries=${entries} split=${split} whole=${whole} />`
          : html`<${Content} path=${path} file=${file} entry=${entry} version=${shown} wrap=${wrap} line=${Number(route.line) || null} />`}
      </section>
      ${entries.length > 0 &&
      html`<${Timeline} file=${file} entries=${entries} shown=${shown} from=${diffing ? from : null} more=${found.more} onMore=${onMore} onDone=${reload} />`}
    </div>
  </div>`;
}

/** Whatever is at the address's path. */
export function FileView() {
  const route = useRoute();
  const path = route.path || "/";
  const [count, setCount] = useState(PAGE);
  const { data, error, loading, reload } = useResource(
    (signal) => load(path, count, signal),
    [route.ns, path, count],
    (event) => event.path === path || event.from_path === path || path === "/" || event.path.startsWith(`${path}/`),
  );
  const more = () => setCount(count + PAGE);
  if (error) return html`<${Problem} error=${error} retry=${reload} />`;
  if (loading) return html`<${Waiting} what=${visible(path)} />`;
  if (data.kind === "directory") return html`<${Directory} path=${path} />`;
  if (data.kind === "file") return html`<${FileShown} path=${path} found=${data} onMore=${more} reload=${reload} />`;
  return html`<${Deleted} path=${path} found=${data} onDone=${reload} onMore=${more} />`;
}

