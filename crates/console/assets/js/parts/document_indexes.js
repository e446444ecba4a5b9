// The indexes of documents, by which queries find them without a look at each.

import { Action, Badge, Card, Loaded, Table, api, html, number, refuseName, useGet, useHere } from '../kit.js';
import { WHOLE } from '../rights.js';

const FIELDS = [
  { name: 'name', label: 'Name', required: true },
  { name: 'pointer', label: 'JSON pointer', required: true, hint: 'Of the values by which documents are found, such as `/state`.' },
];

export function DocumentIndexes() {
  const { p } = useHere();
  const url = `${p}/document-indexes`;
  const state = useGet(url, { every: 3000 });
  const common = { right: 'operate', at: WHOLE, onDone: state.reload };
  const declare = async ({ name, pointer }) => {
    refuseName((await api.get(url)).indexes.some((one) => one.name === name));
    await api.put(url + api.path(name), { pointer });
    return 'The index is declared: queries use it as soon as it knows all documents.';
  };
  const drop = (name) => async () => {
    await api.remove(url + api.path(name));
    return 'The index is dropped.';
  };
  const columns = [
    { name: 'Index', cell: (one) => one.name },
    { name: 'Pointer', cell: (one) => html`<code>${one.pointer}</code>` },
    { name: 'State', cell: (one) => html`<${Badge} state=${one.state} />` },
    { name: 'Values', number: true, cell: (one) => number(one.terms) },
    { name: 'Actions', cell: (one) => html`<${Action} ...${common} label="Drop" danger title=${`Drop ${one.name}`} body=${() => html`<p>Queries look at the documents one by one again.</p>`} run=${drop(one.name)} />` },
  ];
  return html`<${Card} title="Indexes" actions=${html`<${Action} ...${common} label="New index" title="New index" confirm="Declare" fields=${FIELDS} initial=${{ name: '', pointer: '' }} run=${declare} />`}>
    <${Loaded} state=${state}>${({ indexes }) =>
      indexes.length ? html`<${Table} label="Indexes" columns=${columns} rows=${indexes} keyOf=${(one) => one.name} />` : html`<p class="muted">None: queries look at the documents one by one.</p>`}
    </${Loaded}>
  </${Card}>`;
}
