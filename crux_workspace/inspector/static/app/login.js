// Who asks: a token for a session.

import { signIn } from "./api.js";
import { html, useState } from "./lib.js";
import { Icon } from "./ui.js";

export function Login() {
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);

  async function submit(event) {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      await signIn(token.trim());
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  }

  return html`<main class="login">
    <form onSubmit=${submit}>
      <h1><${Icon} name="layers" size="22" /> crux workspace</h1>
      <p class="quiet">Sign in with a token of this service. It is kept as a cookie that scripts cannot read, for 12 hours.</p>
      <label for="token">Token</label>
      <input
        id="token"
        type="password"
        autofocus
        autocomplete="current-password"
        required
        value=${token}
        aria-invalid=${error !== null}
        aria-describedby=${error ? "login-error" : undefined}
        onInput=${(event) => setToken(event.target.value)}
      />
      ${error &&
      html`<p id="login-error" class="bad" role="alert">
        ${error.status === 401 ? "The service does not know this token." : error.message}
        ${error.hint && error.status !== 401 ? ` ${error.hint}` : ""}
      </p>`}
      <button class="button primary" disabled=${busy || token.trim() === ""}>${busy ? "Signing in …" : "Sign in"}</button>
      <p class="quiet">Tokens are made with <code>crux-workspace token</code>.</p>
    </form>
  </main>`;
}
