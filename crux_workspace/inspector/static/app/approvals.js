// What agents wait for a person to allow. A thread's questions are answered together; each by once, always or deny.

import { get, post } from "./api.js";
import { plural, visible } from "./format.js";
import { classes, html, useEffect, useState } from "./lib.js";
import { mayApprove, mayWriteAnything } from "./rights.js";
import { createStore, useStore } from "./store.js";
import { attempt, Button, Chip, Empty, Icon, Problem, Waiting } from "./ui.js";

// Asked again and again: what waits lies in records of the agents, beside the namespaces, whose commits no event stream tells of.
const POLL_MS = 2000;
const MOST_THREADS = 50;

/** What waits: {threads: [{id, interrupts}], error}; threads is null before the first answer. */
export const approvals = createStore({ threads: null, error: null });

async function load() {
  const { threads } = await get("/v1/approvals", { namespace: null });
  const pending = (id) => get(`/threads/${encodeURIComponent(id)}/pending_interrupts`, { namespace: null });
  const loaded = await Promise.all(
    threads.slice(0, MOST_THREADS).map(async (id) => ({ id, interrupts: (await pending(id)).interrupts })),
  );
  return loaded.filter((thread) => thread.interrupts.length > 0);
}

async function refresh() {
  try {
    const threads = await load();
    if (approvals.get().error || JSON.stringify(threads) !== JSON.stringify(approvals.get().threads)) {
      approvals.set({ threads, error: null });
    }
  } catch (error) {
    if (error.code !== approvals.get().error?.code) approvals.set({ threads: approvals.get().threads, error });
  }
}

/** Keep `approvals` up to date while the page is looked at. */
export function followApprovals() {
  refresh();
  const timer = setInterval(() => document.hidden || refresh(), POLL_MS);
  const seen = () => document.hidden || refresh();
  document.addEventListener("visibilitychange", seen);
  return () => {
    clearInterval(timer);
    document.removeEventListener("visibilitychange", seen);
  };
}

export const waitingCount = () => (approvals.get().threads ?? []).reduce((sum, thread) => sum + thread.interrupts.length, 0);

const TITLES = {
  command: "Run a command",
  readFile: "Read a file",
  writeFile: "Write a file",
  editFile: "Edit a file",
  listDir: "List a folder",
  tool: "Call a tool",
  subagent: "Hand work to another agent",
  memory: "Change a memory",
};

const told = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

function Detail({ detail }) {
  const { command, path, suggestedPattern, operation, ...rest } = detail;
  const main = command ?? path;
  const others = Object.entries(rest).filter(([, value]) => value !== null && value !== undefined);
  return html`${main !== undefined && html`<pre class="asked" tabindex="0" role="region" aria-label="What is asked">${visible(told(main))}</pre>`}
  ${others.length > 0 &&
  html`<dl class="properties">
    ${others.map(([name, value]) => html`<dt>${name}</dt><dd><code>${visible(told(value))}</code></dd>`)}
  </dl>`}
  ${suggestedPattern && html`<p class="quiet">Always would allow <code>${visible(suggestedPattern)}</code> from now on.</p>`}`;
}

function Question({ interrupt, answer, onAnswer, busy, alone }) {
  const { value, interruptId } = interrupt;
  const name = value.detail.operation ?? value.kind;
  const options = ["once", ...(value.allowAlways === false ? [] : ["always"]), "deny"];
  return html`<div class="question">
    <p class="question-title">
      <strong>${TITLES[name] ?? TITLES[value.kind] ?? "Allow a call"}</strong> <${Chip}>${visible(String(name))}<//>
    </p>
    <${Detail} detail=${value.detail} />
    ${mayWriteAnything() &&
    html`<div class="answers" role="group" aria-label="Answer">
      ${options.map(
        (option) =>
          html`<button
            key=${option}
            type="button"
            disabled=${busy}
            class=${classes("button", option === "once" && "primary", option === "deny" && "danger", answer === option && "picked")}
            aria-pressed=${alone ? undefined : answer === option}
            onClick=${() => onAnswer(interruptId, option)}
          >
            ${{ once: "Once", always: "Always", deny: "Deny" }[option]}
          </button>`,
      )}
    </div>`}
  </div>`;
}

function Thread({ thread }) {
  const { interrupts } = thread;
  const [answers, setAnswers] = useState({});
  const [busy, setBusy] = useState(false);
  const alone = interrupts.length === 1;
  const ids = interrupts.map((interrupt) => interrupt.interruptId).join(" ");
  useEffect(() => setAnswers({}), [ids]);
  const all = interrupts.every((interrupt) => answers[interrupt.interruptId]);

  async function send(given) {
    setBusy(true);
    const work = () => post(`/threads/${encodeURIComponent(thread.id)}/resume`, envelope(interrupts, given));
    await attempt(work, "Answered.");
    await refresh();
    setBusy(false);
  }

  function answer(id, option) {
    const given = { ...answers, [id]: option };
    setAnswers(given);
    if (alone) send(given);
  }

  return html`<section class="thread" aria-label=${`Thread ${visible(thread.id)}`}>
    <h2><${Icon} name="route" size="14" /> ${visible(thread.id)}</h2>
    ${interrupts.map(
      (interrupt) =>
        html`<${Question}
          key=${interrupt.interruptId}
          interrupt=${interrupt}
          answer=${answers[interrupt.interruptId]}
          onAnswer=${answer}
          busy=${busy}
          alone=${alone}
        />`,
    )}
    ${!alone &&
    mayWriteAnything() &&
    html`<div class="more">
      <span class="quiet">The questions of one thread are answered together.</span>
      <${Button} kind="primary" disabled=${!all} busy=${busy} onClick=${() => send(answers)}>Send ${plural(interrupts.length, "answer")}<//>
    </div>`}
  </section>`;
}

/** Return the envelope that answers all that a thread waits for. */
const envelope = (interrupts, given) => ({
  resume: interrupts.map(({ interruptId }) => ({ interruptId, status: "resolved", payload: given[interruptId] })),
});

export function ApprovalsView() {
  const { threads, error } = useStore(approvals);
  return html`<div class="scroll">
    <header class="pane-head">
      <div class="pane-title">
        <h1>Approvals</h1>
        ${!mayWriteAnything() && html`<span class="quiet">read-only: somebody who may write has to answer</span>`}
      </div>
    </header>
    <div class="page narrow-page">
      ${!mayApprove() && html`<${Empty} icon="lock" title="Approvals are for others">This session may not see what agents wait for.<//>`}
      ${error && html`<${Problem} error=${error} retry=${refresh} />`} ${mayApprove() && !threads && !error && html`<${Waiting} what="what waits" />`}
      ${threads?.length === 0 &&
      html`<${Empty} icon="badge-check" title="Nothing waits for you">
        When an agent asks for something that no rule allows or denies, it shows up here.
      <//>`}
      ${threads?.map((thread) => html`<${Thread} key=${thread.id} thread=${thread} />`)}
    </div>
  </div>`;
}
