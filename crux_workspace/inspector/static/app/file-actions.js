// The buttons of a file. Those that change something are there only where the session may write.

import { change } from "./api.js";
import { html, useState } from "./lib.js";
import { mayWrite } from "./rights.js";
import { adjust } from "./route.js";
import { attempt, Button, Icon } from "./ui.js";

/** What a change of a file expects: this very file, at the version that was seen. */
export const seenVersion = (file) => `${file.id}.${file.version}`;

/** Run one change of a file as it was seen, so that somebody else's newer change is not run over. */
export function useChange(onDone) {
  const [busy, setBusy] = useState(null);
  async function run(name, path, body, done) {
    setBusy(name);
    const answer = await attempt(() => change(path, body), done);
    setBusy(null);
    if (answer !== undefined) onDone?.(answer);
    return answer;
  }
  return [busy, run];
}

/** What can be done with the file that is shown. */
export function Actions({ file, head, shown, onDone, download }) {
  const [busy, run] = useChange((answer) => {
    adjust({ v: undefined, from: undefined, line: undefined });
    onDone(answer);
  });
  const writes = mayWrite(file.path) && file.storage !== "virtual";
  const seen = { path: file.path, if_version: seenVersion(file) };
  const old = shown !== file.version;
  // An address may name a version that the file never had.
  const exists = shown >= 1 && shown <= file.version;
  const redoable = head?.operation === "undo" || head?.operation === "redo";
  const pinned = file.pinned_version === shown;
  return html`<div class="actions">
    ${writes &&
    html`
      ${old &&
      exists &&
      html`<${Button}
        icon="rotate-ccw"
        kind="primary"
        busy=${busy === "restore"}
        onClick=${() => run("restore", "/v1/undo", { ...seen, to_version: shown }, `Version ${shown} is restored as a new version.`)}
      >
        Restore v${shown}
      <//>`}
      <${Button}
        icon="undo-2"
        busy=${busy === "undo"}
        disabled=${file.version < 2}
        onClick=${() => run("undo", "/v1/undo", seen, "Undone.")}
      >
        Undo
      <//>
      <${Button} icon="redo-2" busy=${busy === "redo"} disabled=${!redoable} onClick=${() => run("redo", "/v1/redo", seen, "Redone.")}>Redo<//>
      ${!pinned &&
      exists &&
      html`<${Button}
        icon="badge-check"
        busy=${busy === "finalize"}
        onClick=${() => run("finalize", "/v1/finalize", { ...seen, version: shown }, `Version ${shown} is published.`)}
      >
        Finalize${old ? ` v${shown}` : ""}
      <//>`}
      ${file.pinned_version !== null &&
      html`<${Button} busy=${busy === "withdraw"} onClick=${() => run("withdraw", "/v1/withdraw", seen, "Withdrawn.")}>Withdraw<//>`}
    `}
    <a class="button only-icon" href=${download} download aria-label="Download" title="Download"><${Icon} name="download" /></a>
  </div>`;
}
