// Asks for a token, which the server turns into a session.

import { Field, Problem, api, html, useState } from '../kit.js';

const TOKEN = { name: 'token', label: 'Token', type: 'password', required: true, hint: 'It is exchanged for a session and not stored in this browser.' };

export function SignIn({ onSignedIn }) {
  const [token, setToken] = useState('');
  const [error, setError] = useState(null);
  const submit = async (event) => {
    event.preventDefault();
    try {
      await api.post('/console/session', { token: token.trim() });
      onSignedIn();
    } catch (refused) {
      setError(refused);
    }
  };
  return html`<main class="sign-in">
    <form onSubmit=${submit}>
      <h1><img src="/console/icon.svg" width="28" height="28" alt="" /> Sign in to Sluice</h1>
      <${Field} field=${TOKEN} value=${token} onInput=${setToken} />
      <${Problem} error=${error} />
      <button class="primary">Sign in</button>
      <p class="hint">No token yet? On the server: <code class="command">sluice token create NAME --scope '*=observer'</code></p>
    </form>
  </main>`;
}
