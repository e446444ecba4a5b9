// Locks that are held or waited for.

import { html } from '../../vendor/preact.js';
import * as api from '../api.js';
import { useHere, useLoad } from '../app.js';
import { number } from '../format.js';
import { Empty, Heading, Loaded, Time } from '../parts/basics.js';
import { Field } from '../parts/fields.js';
import { Pages, Table } from '../parts/table.js';
import { setSearch } from '../router.js';

const PREFIX = { name: 'prefix', label: 'Key begins with', type: 'search' };

export default function Locks() {
  const { p, to, search } = useHere();
  const { prefix = '', after } = search;
  const state = useLoad((signal) => api.get(`${p}/locks${api.query({ prefix, after, limit: 50 })}`, { signal }), [p, prefix, after], { every: 2000 });
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
