// The commit log, newest first; what is committed anywhere shows up on top as it happens.

import { change, get } from "./api.js";
import { number, plural, visible } from "./format.js";
import { classes, html, useEffect, useRef, useState } from "./lib.js";
import { onChange } from "./live.js";
import { mayWriteAnything } from "./rights.js";
import { fileHref, href, useRoute } from "./route.js";
import { useResource } from "./resource.js";
import { attempt, Button, Chip, Empty, Problem, Time, Waiting } from "./ui.js";

const PAGE = 50;
const MOST_CHANGES = 200;
const FOLDED = 4;
const LETTER = { create: "A", update: "M", delete: "D", rename: "R" };

function ChangeLine({ change: made }) {
  const more = made.version ? { v: made.version, show: made.previous_version ? "diff" : undefined } : {};
  const from = made.previous_version && made.version ? { from: made.previous_version } : {};
  return html`<span class="change">
    <span class=${`letter ${made.type}`} title=${made.type}>${LETTER[made.type]}</span>
    <a href=${fileHref(made.path, { ...more, ...from })}>
      ${made.from_path && html`<span class="quiet">${visible(made.from_path)} → </span>`}${visible(made.path)}
    </a>
    <span class="quiet">${made.attributes ? "attributes" : made.version ? `v${made.version}` : ""}</span>
  </span>`;
}

function Commit({ commit, fresh, onDone }) {
  const [open, setOpen] = useState(false);
  const [busy, setBusy] = useState(false);
  const changes = open ? commit.changes : commit.changes.slice(0, FOLDED);
  const left = commit.changes_total - changes.length;
  async function undo() {
    setBusy(true);
    const work = () => change("/v1/undo_commit", { commit: commit.commit });
    if ((await attempt(work, `Commit ${commit.sequence} is taken back by a new commit.`)) !== undefined) onDone();
    setBusy(false);
  }
  const one = commit.changes_total === 1;
  return html`<li class=${classes("commit", fresh && "fresh")}>
    <div class="commit-head">
      <span class="sequence">#${commit.sequence}</span>
      <strong class="verb">${commit.verb}</strong>
      ${one ? html`<${ChangeLine} change=${commit.changes[0]} />` : html`<span class="quiet">${plural(commit.changes_total, "change")}</span>`}
      <span class="spring"></span>
      ${commit.actor && html`<${Chip} title="Who did it">${visible(commit.actor)}<//>`}
      <span class="when quiet"><${Time} at=${commit.at} /></span>
      ${mayWriteAnything() &&
      onDone &&
      html`<${Button} kind="bare" icon="undo-2" busy=${busy} label=${`Take back commit ${commit.sequence}`} onClick=${undo} />`}
    </div>
    ${!one &&
    html`<ul>
      ${changes.map((change) => html`<li key=${change.path}><${ChangeLine} change=${change} /></li>`)}
    </ul>`}
    ${left > 0 && !open && commit.changes.length > FOLDED && html`<button type="button" class="link" onClick=${() => setOpen(true)}>${plural(left, "more change")}</button>`}
    ${left > 0 && (open || commit.changes.length <= FOLDED) && html`<p class="rest quiet">and ${plural(left, "more change")}</p>`}
  </li>`;
}

// Adds what is new to the pages that are there; what somebody scrolled to stays where it is.
function useLog(namespace) {
  const [state, setState] = useState({ commits: null, more: false, error: null, fresh: 0 });
  const latest = useRef(state);
  latest.current = state;
  const control = useRef({ asking: false, again: false });

  async function newest(reset) {
    if (control.current.asking) {
      control.current.again = true;
      return;
    }
    control.current.asking = true;
    do {
      control.current.again = false;
      try {
        const page = await get("/v1/log", { namespace, limit: PAGE, max_changes: MOST_CHANGES });
        const old = reset ? null : latest.current.commits;
        const known = old?.[0]?.sequence ?? 0;
        const added = page.filter((commit) => commit.sequence > known);
        const gap = old === null || (page.length > 0 && added.length === page.length);
        const next = gap
          ? { commits: page, more: page.length === PAGE, error: null, fresh: old === null ? Infinity : known }
          : { ...latest.current, commits: [...added, ...old], error: null, fresh: added.length ? known : latest.current.fresh };
        latest.current = next;
        setState(next);
      } catch (error) {
        setState({ ...latest.current, error });
      }
    } while (control.current.again);
    control.current.asking = false;
  }

  useEffect(() => {
    newest(true);
    return onChange((message) => newest(message.type === "reset"));
  }, [namespace]);

  async function older() {
    const page = await get("/v1/log", { namespace, limit: PAGE, max_changes: MOST_CHANGES, cursor: latest.current.commits.at(-1).cursor });
    setState({ ...latest.current, commits: [...latest.current.commits, ...page], more: page.length === PAGE });
  }
  return { ...state, older, reload: () => newest(true) };
}

/** The whole feed. */
export function CommitsView() {
  const { ns } = useRoute();
  const { commits, more, error, fresh, older, reload } = useLog(ns);
  return html`<div class="scroll">
    <header class="pane-head">
      <div class="pane-title">
        <h1>Commits</h1>
        <span class="quiet">newest first; new ones show up by themselves</span>
      </div>
    </header>
    <div class="page">
      ${error && html`<${Problem} error=${error} retry=${reload} />`} ${!commits && !error && html`<${Waiting} what="the log" />`}
      ${commits?.length === 0 && html`<${Empty} icon="git-commit-horizontal" title="No commits yet">The first change of this namespace will be commit 1.<//>`}
      <ol class="feed" aria-label="Commits">
        ${commits?.map(
          (commit) => html`<${Commit} key=${commit.commit} commit=${commit} fresh=${commit.sequence > fresh} onDone=${reload} />`,
        )}
      </ol>
      ${more && html`<div class="more"><span>${number(commits.length)} commits.</span><${Button} icon="plus" onClick=${() => attempt(older)}>Older commits<//></div>`}
    </div>
  </div>`;
}

/** The last few commits, below the mounts. */
export function RecentCommits() {
  const { ns } = useRoute();
  const { data } = useResource((signal) => get("/v1/log", { limit: 6, max_changes: FOLDED }, { signal }), [ns], () => true);
  if (!data || data.length === 0) return null;
  return html`<section class="recent" aria-label="Recent commits">
    <h2>Recent commits <a href=${href({ view: "commits" })}>all</a></h2>
    <ol class="feed">
      ${data.map((commit) => html`<${Commit} key=${commit.commit} commit=${commit} />`)}
    </ol>
  </section>`;
}
