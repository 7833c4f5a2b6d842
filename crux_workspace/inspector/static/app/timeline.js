// A file's versions, newest first.

import { bytes } from "./format.js";
import { seenVersion, useChange } from "./file-actions.js";
import { classes, html } from "./lib.js";
import { mayWrite } from "./rights.js";
import { currentRoute, fileHref } from "./route.js";
import { Button, Icon, Time } from "./ui.js";

const ICON = {
  write: "pencil",
  edit: "pencil",
  append: "plus",
  copy: "copy",
  undo: "undo-2",
  redo: "redo-2",
  restore: "rotate-ccw",
  merge: "git-compare",
  delete: "trash",
};

function Version({ entry, file, shown, from, writes, busy, run }) {
  const { show } = currentRoute();
  const head = file && entry.version === file.version;
  const pinned = file?.pinned_version === entry.version;
  return html`<li class=${classes("version-row", entry.version === shown && "shown", entry.version === from && "from")}>
    <span class=${`version-mark op-${entry.operation}`}><${Icon} name=${ICON[entry.operation] ?? "pencil"} size="12" /></span>
    <a
      href=${fileHref(file?.path ?? entry.path, { v: head ? undefined : entry.version, show })}
      aria-current=${entry.version === shown ? "true" : undefined}
    >
      <span class="version-top">
        <strong>v${entry.version}</strong> ${entry.operation}${entry.restored_from ? ` → v${entry.restored_from}` : ""}
        ${head && html`<span class="tag">newest</span>`} ${pinned && html`<span class="tag final">pinned</span>`}
      </span>
      <span class="quiet"><${Time} at=${entry.created_at} /> · ${bytes(entry.size)} · commit ${entry.sequence}</span>
    </a>
    ${writes &&
    !head &&
    entry.operation !== "delete" &&
    html`<${Button}
      icon="rotate-ccw"
      kind="bare"
      label=${`Restore version ${entry.version}`}
      busy=${busy === entry.version}
      onClick=${() =>
        run(
          entry.version,
          "/v1/undo",
          { path: file.path, if_version: seenVersion(file), to_version: entry.version },
          `Version ${entry.version} is restored as a new version.`,
        )}
    />`}
  </li>`;
}

/** The versions of a file; `file` is null when it is deleted. */
export function Timeline({ file, entries, shown, from, more, onMore, onDone }) {
  const [busy, run] = useChange(onDone);
  const writes = file !== null && mayWrite(file.path);
  return html`<aside class="timeline" aria-label="History">
    <h2>History <span class="count">${more ? `${entries.length}+` : entries.length}</span></h2>
    <ol>
      ${entries.map(
        (entry) =>
          html`<${Version} key=${entry.version} entry=${entry} file=${file} shown=${shown} from=${from} writes=${writes} busy=${busy} run=${run} />`,
      )}
    </ol>
    ${more && html`<${Button} onClick=${onMore}>Older versions<//>`}
  </aside>`;
}
