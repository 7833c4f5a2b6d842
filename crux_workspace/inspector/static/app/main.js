// Starts the inspector: finds out who is signed in and where to begin.

import "./theme.js";
import { resume, session, signIn } from "./api.js";
import { html, render, useEffect, useErrorBoundary, useState } from "./lib.js";
import { Login } from "./login.js";
import { firstNamespace } from "./quick-open.js";
import { adjust, currentRoute, useRoute } from "./route.js";
import { Shell } from "./shell.js";
import { useStore } from "./store.js";
import { Problem, Waiting } from "./ui.js";

// A link that carries a token signs in with it, and loses it at once.
async function enter() {
  const { token, ...rest } = currentRoute();
  if (token === undefined) return resume();
  history.replaceState(null, "", `#${new URLSearchParams(rest)}`);
  dispatchEvent(new HashChangeEvent("hashchange"));
  return signIn(token).catch((error) => {
    if (error.status !== 401) throw error;
    session.set(null);
  });
}

let entering = null;

function begin() {
  entering ??= enter().finally(() => {
    entering = null;
  });
  return entering;
}

function App() {
  const who = useStore(session);
  const route = useRoute();
  const [error, setError] = useState(null);
  const [broken, forget] = useErrorBoundary((failure) => console.error(failure));

  const start = () => {
    setError(null);
    begin().catch(setError);
  };
  useEffect(() => {
    if (route.token !== undefined || who === undefined) start();
  }, [route.token]);
  useEffect(() => {
    if (who && route.ns === undefined) {
      firstNamespace().then((ns) => adjust({ ns }, { replace: true }), setError);
    }
  }, [who, route.ns]);

  if (broken) {
    const told = { message: "The inspector met something it cannot show.", hint: String(broken.message), code: "INSPECTOR" };
    return html`<main class="alone"><${Problem} error=${told} retry=${forget} /></main>`;
  }
  if (error) return html`<main class="alone"><${Problem} error=${error} retry=${start} /></main>`;
  if (who === null) return html`<${Login} />`;
  if (who === undefined || route.ns === undefined) return html`<main class="alone"><${Waiting} what="the workspace" /></main>`;
  return html`<${Shell} />`;
}

render(html`<${App} />`, document.getElementById("app"));
