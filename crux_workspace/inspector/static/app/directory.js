// A directory's entries, and what is shown where no file is.

import { get, session } from "./api.js";
import { RecentCommits } from "./commits.js";
import { Breadcrumb } from "./crumbs.js";
import { Content } from "./file-content.js";
import { useChange } from "./file-actions.js";
import { bytes, nameOf, number, parentOf, visible } from "./format.js";
import { html, useState } from "./lib.js";
import { useResource } from "./resource.js";
import { mayWrite } from "./rights.js";
import { fileHref, useRoute } from "./route.js";
import { Timeline } from "./timeline.js";
import { iconOf } from "./tree.js";
import { Button, Chip, Empty, Icon, Problem, Time, Waiting } from "./ui.js";

const PAGE = 200;

const within = (path) => (event) =>
  path === "/" || event.path.startsWith(`${path}/`) || event.from_path?.startsWith(`${path}/`);

function Entry({ entry, mount }) {
  const directory = entry.kind === "directory";
  return html`<tr>
    <td class="wide">
      <a class="entry" href=${fileHref(entry.path)}>
        <${Icon} name=${iconOf(entry)} size="15" /><span>${visible(nameOf(entry.path))}</span>
      </a>
      ${mount?.description && html`<span class="quiet"> ${mount.description}</span>`}
      ${mount?.access === "read" && html`<${Chip} title="Nothing can be written here"><${Icon} name="lock" size="11" /> read-only<//>`}
    </td>
    <td>${entry.status && html`<${Chip} kind=${entry.status}>${entry.status}<//>`}</td>
    <td class="figure">${directory || entry.version === 0 ? "" : `v${entry.version}`}</td>
    <td class="figure">${directory ? "" : bytes(entry.size)}</td>
    <td class="figure">${directory || !entry.updated_at ? "" : html`<${Time} at=${entry.updated_at} />`}</td>
  </tr>`;
}

function Nothing({ path }) {
  return html`<${Empty} icon="inbox" title=${path === "/" ? "Nothing is mounted here" : "Nothing is in here yet"}>
    ${mayWrite(path)
      ? html`Write a file and it shows up at once:<code class="block">echo hello | crux-workspace write ${path === "/" ? "/workspace" : visible(path)}/hello.md</code>`
      : "Files that somebody writes here show up at once."}
  <//>`;
}

/** What a directory holds. */
export function Directory({ path }) {
  const route = useRoute();
  const [count, setCount] = useState(PAGE);
  const { data, error, loading, reload } = useResource(
    (signal) => get("/v1/list", { path, glob: "false", limit: count }, { signal }),
    [route.ns, path, count],
    within(path),
  );
  const mounts = session.get()?.mounts ?? [];
  return html`<div class="scroll">
    <header class="pane-head"><div class="pane-title">${path === "/" ? html`<h1>Files</h1>` : html`<${Breadcrumb} path=${path} />`}</div></header>
    <div class="page">
      ${error && html`<${Problem} error=${error} retry=${reload} />`} ${loading && html`<${Waiting} what="the directory" />`}
      ${data && data.entries.length === 0 && html`<${Nothing} path=${path} />`}
      ${data &&
      data.entries.length > 0 &&
      html`<table class="list">
        <thead>
          <tr>
            <th class="wide">Name</th>
            <th><span class="unseen">Status</span></th>
            <th class="figure">Version</th>
            <th class="figure">Size</th>
            <th class="figure">Changed</th>
          </tr>
        </thead>
        <tbody>
          ${data.entries.map((entry) => {
            const mount = mounts.find((found) => found.path === entry.path);
            return html`<${Entry} key=${entry.path} entry=${entry} mount=${mount} />`;
          })}
        </tbody>
      </table>`}
      ${data?.cursor &&
      html`<div class="more">
        <span>The first ${number(data.entries.length)} entries.</span>
        <${Button} icon="plus" onClick=${() => setCount(count + 1000)}>Load more<//>
      </div>`}
      ${path === "/" && html`<${RecentCommits} />`}
    </div>
  </div>`;
}

/** Where a file was, or never was. */
export function Deleted({ path, found, onDone, onMore }) {
  const [busy, run] = useChange(onDone);
  const route = useRoute();
  if (found.kind === "nothing") {
    return html`<header class="pane-head"><div class="pane-title"><${Breadcrumb} path=${path} /></div></header>
      <${Empty} icon="file-x" title="There is no file here">
        No file was ever at this path, as far as this namespace's history goes.
        <br /><a href=${fileHref(parentOf(path))}>Look at what is above it</a>
      <//>`;
  }
  const last = found.entries[0];
  const old = found.entries.find((entry) => entry.version === Number(route.v));
  return html`<div class="file">
    <header class="pane-head">
      <div class="pane-title"><${Breadcrumb} path=${path} /><${Chip} kind="gone">deleted<//></div>
    </header>
    <div class="file-body">
      <section class="file-main" aria-label="File">
        ${old && html`<${Content} path=${path} file=${last} entry=${old} version=${old.version} line=${null} />`}
        ${!old &&
        html`<${Empty} icon="trash" title="This file was deleted">
          ${last.operation === "delete" ? html`It went in commit ${last.sequence}, <${Time} at=${last.created_at} />. ` : ""}Its versions are kept.
          ${mayWrite(path) &&
          html`<br /><br /><${Button}
              icon="undo-2"
              kind="primary"
              busy=${busy === "undo"}
              onClick=${() => run("undo", "/v1/undo", { path }, "The file is back.")}
            >
              Bring it back
            <//>`}
        <//>`}
      </section>
      <${Timeline} file=${null} entries=${found.entries} shown=${Number(route.v) || 0} from=${null} more=${found.more} onMore=${onMore} onDone=${onDone} />
    </div>
  </div>`;
}
