// Tokens for clients: list, create, revoke.

import { Action, Empty, Heading, Loaded, Table, Time, api, given, html, readDuration, readList, useApp, useGet } from '../kit.js';

const FIELDS = [
  { name: 'name', label: 'Name', required: true },
  { name: 'scopes', label: 'Scopes', required: true, hint: 'NAMESPACE=PERM, separated by commas; perm: r, w, rw, observer, operator or admin. * stands for all namespaces.' },
  { name: 'ttl_ms', label: 'Expires after', hint: 'Such as 90d; empty: never.' },
];

/** `shop=rw` as the URI that the server knows. */
const scopeOf = (text) => {
  const [namespace, perm] = text.split('=');
  return text.startsWith('sluice://') ? text : `sluice://ns/${namespace}?perm=${perm ?? ''}`;
};

function Create({ onDone }) {
  const { identity, signIn } = useApp();
  const run = async (values) => {
    const { token } = await api.post('/v1/tokens', given({
      name: values.name,
      scopes: (readList('scopes', values.scopes) ?? []).map(scopeOf),
      ttl_ms: readDuration('ttl_ms', values.ttl_ms),
    }));
    // Who has no credentials needs them from now on.
    if (!identity.proof) await signIn(token);
    return html`Keep the token: the server stores only a hash of it and cannot show it again.<pre class="payload" tabindex="0">${token}</pre>`;
  };
  const body = () => html`<p class="hint-box">Once there is a token, every caller of this server must authenticate; the first one signs this browser in.</p>`;
  return html`<${Action} label="New token" right="admin" kind="primary" title="New token" confirm="Create" fields=${FIELDS} initial=${{ name: '', scopes: '', ttl_ms: '' }} body=${body} run=${run} onDone=${onDone} />`;
}

function Revoke({ token, onDone }) {
  const body = () => html`<p>Requests with the token <b>${token.name}</b> are refused at once on all nodes that are reached. Streams end within a second.</p>`;
  const run = async () => {
    await api.remove(`/v1${api.path('tokens', token.id)}`);
    return 'The token is revoked.';
  };
  return html`<${Action} label="Revoke" right="admin" danger title=${`Revoke ${token.name}`} body=${body} run=${run} onDone=${onDone} />`;
}

export default function Tokens() {
  const state = useGet('/v1/tokens');
  const columns = [
    { name: 'Name', cell: (token) => token.name },
    { name: 'Scopes', wide: true, cell: (token) => token.scopes.map((scope) => html`<div class="mono">${scope}</div>`) },
    { name: 'Last used', cell: (token) => (token.last_used_at_ms ? html`<${Time} at=${token.last_used_at_ms} />` : 'never') },
    { name: 'Expires', cell: (token) => (token.expires_at_ms ? html`<${Time} at=${token.expires_at_ms} />` : 'never') },
    { name: 'Created', hide: true, cell: (token) => html`<${Time} at=${token.created_at_ms} /> by ${token.created_by}` },
    { name: 'Id', hide: true, cell: (token) => html`<span class="mono">${token.id}</span>` },
    { name: 'Actions', cell: (token) => html`<${Revoke} token=${token} onDone=${state.reload} />` },
  ];
  return html`<${Heading} title="Tokens" note="The text of a token is shown once, when it is created."><${Create} onDone=${state.reload} /></${Heading}>
    <${Loaded} state=${state}>${({ tokens }) =>
      tokens.length
        ? html`<${Table} label="Tokens" columns=${columns} rows=${tokens} keyOf=${(token) => token.id} />`
        : html`<${Empty} title="No token yet" command="sluice token create prometheus --scope '*=observer'" />`}
    </${Loaded}>`;
}
