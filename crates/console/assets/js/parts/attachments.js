// The attachments of a document: download, upload, delete.

import { Action, Card, Pages, Table, Time, api, bytes, html } from '../kit.js';

const FIELDS = [
  { name: 'file', label: 'File', type: 'file', required: true, wide: true },
  { name: 'name', label: 'Name', hint: 'Empty: that of the file.' },
  { name: 'replace', label: 'Replace an attachment with this name', type: 'checkbox' },
];

function Upload({ raw, onDone }) {
  const run = async ({ file, name, replace }) => {
    if (!file) throw Object.assign(new Error('Choose a file'), { details: { field: 'file' } });
    await api.put(raw(name || file.name), file, { headers: replace ? {} : { 'If-None-Match': '*' } });
    return `${bytes(file.size)} are attached as ${name || file.name}.`;
  };
  return html`<${Action} label="Upload" right="coordinate" title="Attach a file" confirm="Upload" fields=${FIELDS} initial=${{ name: '', replace: false }} run=${run} onDone=${onDone} />`;
}

export function Attachments({ url, attachments, next, onDone }) {
  const raw = (name) => `${url}/attachments/raw${api.query({ name })}`;
  const remove = (one) => async () => {
    await api.remove(`${url}/attachments${api.query({ name: one.name, if_etag: one.etag })}`);
    return 'The attachment is deleted.';
  };
  const columns = [
    { name: 'Name', cell: (one) => html`<a class="mono" href=${raw(one.name)} download=${one.name.split('/').pop()}>${one.name}</a>` },
    { name: 'Size', number: true, cell: (one) => bytes(one.bytes) },
    { name: 'Content type', hide: true, cell: (one) => one.content_type },
    { name: 'Changed', hide: true, cell: (one) => html`<${Time} at=${one.changed_at_ms} />` },
    { name: 'Actions', cell: (one) => html`<${Action} label="Delete" right="coordinate" danger title=${`Delete ${one.name}`} body=${() => html`<p>This deletes ${bytes(one.bytes)} for good.</p>`} run=${remove(one)} onDone=${onDone} />` },
  ];
  return html`<${Card} title="Attachments" actions=${html`<${Upload} raw=${raw} onDone=${onDone} />`}>
    ${attachments.length ? html`<${Table} label="Attachments" columns=${columns} rows=${attachments} keyOf=${(one) => one.name} />` : html`<p class="muted">None.</p>`}
    <${Pages} next=${next} name="files" />
  </${Card}>`;
}
