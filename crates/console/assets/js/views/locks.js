// Locks that are held or waited for.

import { Empty, Field, Heading, Loaded, Pages, Table, Time, api, html, number, setSearch, useGet, useHere } from '../kit.js';

const PREFIX = { name: 'prefix', label: 'Key begins with', type: 'search' };

export default function Locks() {
  const { p, to, search } = useHere();
  const { prefix = '', after } = search;
  const state = useGet(`${p}/locks${api.query({ prefix, after, limit: 50 })}`, { every: 2000 });
  const first = (lock) => lock.holders[0];
  const columns = [
    { name: 'Key', cell: (lock) => html`<a class="mono" href=${to('lock', { key: lock.key })}>${lock.key}</a>` },
    { name: 'Held by', cell: (lock) => first(lock)?.owner ?? html`<span class="muted">no name</span>` },
    { name: 'Mode', hide: true, cell: (lock) => first(lock)?.mode },
    { name: 'Holders', number: true, hide: true, cell: (lock) => number(lock.holder_count) },
    { name: 'Waiting', number: true, cell: (lock) => number(lock.waiter_count) },
    { name: 'Ends', cell: (lock) => html`<${Time} at=${first(lock)?.expires_at_ms} />` },
  ];
  return html`<${Heading} title="Locks" note="Keys that are held or waited for." />
    <div class="toolbar ends"><${Field} field=${PREFIX} value=${prefix} onInput=${(value) => setSearch({ prefix: value, after: undefined }, { replace: true })} /></div>
    <${Loaded} state=${state}>${({ locks, next }) =>
      locks.length || next
        ? html`<${Table} label="Locks" columns=${columns} rows=${locks} keyOf=${(lock) => lock.key} /><${Pages} next=${next} />`
        : html`<${Empty} title=${prefix ? `No lock is held whose key begins with "${prefix}"` : 'No lock is held'} command="sluice lock run deploy -- ./deploy.sh" />`}
    </${Loaded}>`;
}
