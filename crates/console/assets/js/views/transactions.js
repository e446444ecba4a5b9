// Transactions that wait for a decision, and those that are open.

import { Action, Badge, Card, Empty, Heading, Loaded, Table, Time, api, bytes, counted, html, number, useHere, useLoad } from '../kit.js';

const FORCE = {
  name: 'force', label: 'If the shard that decides does not answer', type: 'select', wide: true,
  options: [['', 'leave it in doubt'], ['commit', 'commit the part of this namespace by force'], ['abort', 'abort the part of this namespace by force']],
  hint: 'By force the transaction may be done by halves: find out first what the other namespaces have of it.',
};

const Operations = ({ operations }) => html`<ul>${operations.map(({ operation, about }) => html`<li><code>${operation}</code> ${about.join(', ')}</li>`)}</ul>`;

function Resolve({ p, one, onDone }) {
  const url = p + api.path('in-doubt-transactions', one.transaction);
  const body = (shown) => html`<p>It has ${counted(shown.operations.length, 'operation')} in this namespace, which are finished as was decided:</p><${Operations} operations=${shown.operations} />`;
  const run = async ({ force }) => {
    const { outcome, forced } = await api.post(`${url}/resolve`, force ? { force } : {});
    return `It is ${outcome}${forced ? ', by force' : ''}.`;
  };
  return html`<${Action} label="Resolve" right="admin" title=${`Resolve ${one.transaction}`} fields=${[FORCE]} initial=${{ force: '' }} preview=${() => api.get(url)} body=${body} run=${run} onDone=${onDone} />`;
}

function RollBack({ p, one, onDone }) {
  const url = p + api.path('open-transactions', one.name);
  const body = (shown) => html`<p>Nothing of its ${counted(shown.operations.length, 'operation')} is done, and messages that it has received go back:</p><${Operations} operations=${shown.operations} />`;
  const run = async () => {
    await api.remove(url);
    return 'It is rolled back.';
  };
  return html`<${Action} label="Roll back" right="operate" danger title=${`Roll back ${one.name}`} preview=${() => api.get(url)} body=${body} run=${run} onDone=${onDone} />`;
}

function InDoubt({ p, list, reload }) {
  const columns = [
    { name: 'Transaction', cell: (one) => html`<span class="mono">${one.transaction}</span>` },
    { name: 'State', cell: (one) => html`<${Badge} state=${one.state} />` },
    { name: 'Decided by', cell: (one) => one.coordinator },
    { name: 'Namespaces', hide: true, cell: (one) => one.parts.join(', ') },
    { name: 'Operations', number: true, cell: (one) => number(one.operation_count) },
    { name: 'Since', cell: (one) => html`<${Time} at=${one.since_at_ms} />` },
    { name: 'Actions', cell: (one) => html`<${Resolve} p=${p} one=${one} onDone=${reload} />` },
  ];
  return html`<${Card} title="In doubt">
    ${list.length
      ? html`<${Table} label="Transactions in doubt" columns=${columns} rows=${list} keyOf=${(one) => one.transaction} />`
      : html`<${Empty} title="No transaction is in doubt">One over several namespaces is, while its part here waits for the decision of another shard.</${Empty}>`}
  </${Card}>`;
}

function Open({ p, list, reload }) {
  const columns = [
    { name: 'Transaction', cell: (one) => html`<span class="mono">${one.name}</span>` },
    { name: 'Caller', cell: (one) => one.caller },
    { name: 'Operations', number: true, cell: (one) => number(one.operation_count) },
    { name: 'Size', number: true, hide: true, cell: (one) => bytes(one.bytes) },
    { name: 'Begun', hide: true, cell: (one) => html`<${Time} at=${one.begun_at_ms} />` },
    { name: 'Ends', cell: (one) => (one.committing ? 'commits now' : html`<${Time} at=${one.expires_at_ms} />`) },
    { name: 'Actions', cell: (one) => html`<${RollBack} p=${p} one=${one} onDone=${reload} />` },
  ];
  return html`<${Card} title="Open">
    ${list.length
      ? html`<${Table} label="Open transactions" columns=${columns} rows=${list} keyOf=${(one) => one.name} />`
      : html`<${Empty} title="No transaction is open" command="sluice txn --help" />`}
  </${Card}>`;
}

async function load(p, signal) {
  const [doubt, open] = await Promise.all([
    api.get(`${p}/in-doubt-transactions?limit=200`, { signal }),
    api.get(`${p}/open-transactions?limit=200`, { signal }),
  ]);
  return { doubt: doubt.transactions, open: open.transactions };
}

export default function Transactions() {
  const { p } = useHere();
  const state = useLoad((signal) => load(p, signal), [p], { every: 2000 });
  return html`<${Heading} title="Transactions" />
    <${Loaded} state=${state}>${({ doubt, open }) => html`
      <${InDoubt} p=${p} list=${doubt} reload=${state.reload} /><${Open} p=${p} list=${open} reload=${state.reload} />`}
    </${Loaded}>`;
}
