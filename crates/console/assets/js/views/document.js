// One document: its content, its versions, and an edit that is refused if somebody else was faster.

import { Action, Card, Facts, Fields, Heading, Loaded, Problem, Table, Time, api, bytes, counted, go, html, number, setSearch, useForm, useHere, useLoad, useState } from '../kit.js';
import { Attachments } from '../parts/attachments.js';
import { DOCUMENT_FIELDS, readDocument, writeDocument } from '../parts/document_form.js';
import { Payload } from '../parts/payload.js';

const FILES_MAX = 100;

async function load(url, version, after, signal) {
  const [document, history, attachments] = await Promise.all([
    api.get(url + api.query({ version }), { signal }),
    api.get(`${url}/history`, { signal }),
    api.getOr({ attachments: [] }, `${url}/attachments${api.query({ after, limit: FILES_MAX })}`, { signal }),
  ]);
  return { document, versions: history.versions, files: attachments, manyFiles: Boolean(after || attachments.next) };
}

function Conflict({ error, url, onTheirs, onMine }) {
  const theirs = useLoad((signal) => api.get(url, { signal }), [url, error.details.version]);
  return html`<div class="hint-box warn" role="alert">
    <p><b>Somebody else was faster.</b> ${error.message}</p>
    ${theirs.data && html`<p>The version now stored, ${theirs.data.version}:</p><pre class="payload" tabindex="0">${theirs.data.content}</pre>
      <div class="buttons">
        <button type="button" onClick=${() => onTheirs(theirs.data)}>Take theirs into the editor</button>
        <button type="button" onClick=${() => onMine(theirs.data)}>Keep mine, to replace version ${theirs.data.version}</button>
      </div>`}
  </div>`;
}

function Editor({ document, url, onSaved, onCancel }) {
  const form = useForm(writeDocument(document));
  const [basis, setBasis] = useState(document);
  const [error, setError] = useState(null);
  const submit = async (event) => {
    event.preventDefault();
    try {
      await api.put(url, { ...readDocument(form.values), if_etag: basis.etag });
      onSaved();
    } catch (refused) {
      setError(refused);
    }
  };
  const rebase = (values) => (theirs) => {
    setBasis(theirs);
    setError(null);
    if (values) form.setValues(writeDocument(theirs));
  };
  const conflict = error?.code === 'version_mismatch';
  return html`<${Card} title=${`Edit version ${basis.version}`}><form onSubmit=${submit} noValidate>
    <${Fields} fields=${DOCUMENT_FIELDS} form=${form} error=${error} />
    ${conflict ? html`<${Conflict} error=${error} url=${url} onTheirs=${rebase(true)} onMine=${rebase(false)} />` : html`<${Problem} error=${error} />`}
    <div class="buttons"><button type="button" onClick=${onCancel}>Cancel</button><button class="primary" disabled=${conflict}>Save</button></div>
  </form></${Card}>`;
}

function Versions({ versions, shown }) {
  const columns = [
    { name: 'Version', cell: (one) => html`<button type="button" class="link" aria-pressed=${one.version === shown} onClick=${() => setSearch({ version: one === versions[0] ? undefined : one.version })}>${one.version}</button>` },
    { name: 'Changed', cell: (one) => html`<${Time} at=${one.changed_at_ms} />` },
    { name: 'Size', number: true, cell: (one) => bytes(one.content_bytes) },
    { name: 'ETag', hide: true, cell: (one) => html`<span class="mono">${one.etag}</span>` },
  ];
  return html`<${Card} title="Versions that are kept"><${Table} label="Versions" columns=${columns} rows=${versions} keyOf=${(one) => one.version} /></${Card}>`;
}

function Delete({ data, url }) {
  const { to } = useHere();
  const { document, versions, files, manyFiles } = data;
  const count = files.attachments.length;
  const withFiles = manyFiles ? ` and more than ${FILES_MAX} attachments` : count ? ` and ${counted(count, 'attachment')}` : '';
  const body = () => html`<p>This deletes the document with ${counted(versions.length, 'version')}${withFiles}, if it still has version ${document.version}.</p>`;
  const run = async () => {
    await api.remove(url + api.query({ if_etag: document.etag }));
    go(to('documents'));
  };
  return html`<${Action} label="Delete" right="coordinate" danger title="Delete the document" body=${body} run=${run} />`;
}

export default function Document() {
  const { p, to, parameters, search, can } = useHere();
  const url = p + api.path('documents', parameters.key);
  const { version, files: after } = search;
  const [editing, setEditing] = useState(false);
  const state = useLoad((signal) => load(url, version, after, signal), [url, version, after]);
  const saved = () => (setEditing(false), version ? setSearch({ version: undefined }) : state.reload());
  const text = state.data?.document.content !== undefined;
  return html`<${Heading} title=${parameters.key} mono trail=${[['Documents', to('documents')]]}>
      ${state.data && !editing && html`${can('coordinate') && text && html`<button type="button" class="primary" onClick=${() => setEditing(true)}>${version ? 'Edit from this version' : 'Edit'}</button>`}
        ${!version && html`<${Delete} data=${state.data} url=${url} />`}`}
    </${Heading}>
    <${Loaded} state=${state}>${(data) => html`
      ${version && html`<p class="hint-box">This is the former version ${version}. <button type="button" class="link" onClick=${() => setSearch({ version: undefined })}>Show the current one</button></p>`}
      ${editing
        ? html`<${Editor} document=${{ ...data.document, etag: data.versions[0].etag, version: data.versions[0].version }} url=${url} onSaved=${saved} onCancel=${() => setEditing(false)} />`
        : html`<${Card} title="Content"><${Payload} text=${data.document.content} base64=${data.document.content_base64} contentType=${data.document.content_type} /></${Card}>`}
      <${Card}><${Facts} rows=${[
        ['version', number(data.document.version)],
        ['changed', html`<${Time} at=${data.document.changed_at_ms} />`],
        ['ends', data.document.expires_at_ms && html`<${Time} at=${data.document.expires_at_ms} />`],
        ['ETag', html`<span class="mono">${data.document.etag}</span>`],
        ...Object.entries(data.document.attributes ?? {}).map(([name, value]) => [`attribute ${name}`, value]),
      ]} /></${Card}>
      ${!editing && html`<${Versions} versions=${data.versions} shown=${data.document.version} />
        <${Attachments} url=${url} ...${data.files} onDone=${state.reload} />`}`}
    </${Loaded}>`;
}
