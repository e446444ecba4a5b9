// One lock: who holds it, who waits for it, and breaking it.

import { Action, Card, Empty, Heading, Loaded, Table, Time, api, counted, html, number, useGet, useHere } from '../kit.js';

const ownerOf = (claim) => claim.owner ?? html`<span class="muted">no name</span>`;

function Break({ name, url, onDone }) {
  const preview = async () => {
    const lock = await api.get(url);
    return { ...lock, nothing: !lock.holder_count };
  };
  const body = ({ holder_count: count, holders, waiters }) => html`
    <p>This ends the grants of <span class="preview-count">${counted(count, 'holder')}</span>:</p>
    <ul>${holders.map((holder) => html`<li>${ownerOf(holder)}, ${holder.mode}${holder.keys > 1 ? `, which loses ${counted(holder.keys, 'key')} with it` : ''}</li>`)}</ul>
    <p>${waiters.length ? html`Next in line: <b>${ownerOf(waiters[0])}</b>.` : 'Nobody waits for it.'}
      What a holder does to other systems goes on, unless they compare its fencing token.</p>`;
  const run = async () => {
    const { holders } = await api.remove(url);
    return `${counted(holders, 'holder')} lost the lock.`;
  };
  return html`<${Action} label="Break" right="operate" danger title=${`Break ${name}`} confirm="Break the lock" preview=${preview} body=${body} run=${run} onDone=${onDone} />`;
}

const HOLDERS = [
  { name: 'Owner', cell: ownerOf },
  { name: 'Mode', cell: (one) => one.mode },
  { name: 'Ends unless renewed', cell: (one) => html`<${Time} at=${one.expires_at_ms} />` },
  { name: 'Keys', number: true, cell: (one) => number(one.keys) },
  { name: 'Fencing token', hide: true, cell: (one) => html`<span class="mono">${one.fencing_token}</span>` },
];
const WAITERS = [
  { name: 'Owner', cell: ownerOf },
  { name: 'Mode', cell: (one) => one.mode },
  { name: 'Keys', number: true, cell: (one) => number(one.keys) },
];

export default function Lock() {
  const { p, to, parameters } = useHere();
  const url = p + api.path('locks', parameters.key);
  const state = useGet(url, { every: 1000 });
  return html`<${Heading} title=${parameters.key} mono trail=${[['Locks', to('locks')]]}>
      ${state.data?.holder_count > 0 && html`<${Break} name=${parameters.key} url=${url} onDone=${state.reload} />`}
    </${Heading}>
    <${Loaded} state=${state}>${(lock) => html`
      <${Card} title=${counted(lock.holder_count, 'holder')}>
        ${lock.holders.length ? html`<${Table} label="Holders" columns=${HOLDERS} rows=${lock.holders} keyOf=${(one) => one.fencing_token} />` : html`<${Empty} title="The lock is free" />`}
      </${Card}>
      <${Card} title=${`${number(lock.waiter_count)} in line`}>
        ${lock.waiters.length ? html`<${Table} label="Waiters" columns=${WAITERS} rows=${lock.waiters.map((one, at) => ({ ...one, at }))} keyOf=${(one) => one.at} />` : html`<p class="muted">Nobody waits.</p>`}
      </${Card}>`}
    </${Loaded}>`;
}
