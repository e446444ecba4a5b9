// Documents by key, or those that a filter finds.

import { Card, Empty, Field, Heading, Loaded, Pages, Table, Time, api, bytes, html, number, readJson, setSearch, useHere, useLoad, useState } from '../kit.js';
import { DocumentIndexes } from '../parts/document_indexes.js';
import { WHOLE } from '../rights.js';

const PREFIX = { name: 'prefix', label: 'Key begins with', type: 'search' };
const WHERE = { name: 'where', label: 'Filter', type: 'textarea', rows: 2, wide: true, placeholder: '{"/state":"paid","/total":{"ge":100}}', hint: 'Members are JSON pointers with a value, or with operators: eq, in, lt, le, gt, ge, prefix, contains, exists, not.' };
const SORT = { name: 'sort', label: 'Sort by', placeholder: '/total or -/total', hint: 'A JSON pointer; "-" before it: descending.' };

const sortOf = (text) => (text ? [{ pointer: text.replace(/^-/, ''), descending: text.startsWith('-') }] : undefined);

async function find(p, { prefix, where, sort, after }, signal) {
  if (!where && !sort) return api.get(`${p}/documents${api.query({ prefix, after, limit: 50 })}`, { signal });
  const body = { limit: 50, content: false };
  if (where) body.where = readJson('where', where);
  if (sort) body.sort = sortOf(sort);
  if (prefix) body.prefix = prefix;
  if (after) body.after = JSON.parse(after);
  const found = await api.post(`${p}/documents/query`, body, { signal });
  return { ...found, next: found.next === undefined ? undefined : JSON.stringify(found.next) };
}

function Query({ search }) {
  const [where, setWhere] = useState(search.where ?? '');
  const [sort, setSort] = useState(search.sort ?? '');
  const submit = (event) => {
    event.preventDefault();
    setSearch({ where: where.trim(), sort: sort.trim(), after: undefined });
  };
  return html`<${Card}><form onSubmit=${submit} role="search">
    <div class="fields">
      <${Field} field=${PREFIX} value=${search.prefix ?? ''} onInput=${(value) => setSearch({ prefix: value, after: undefined }, { replace: true })} />
      <${Field} field=${SORT} value=${sort} onInput=${setSort} />
      <${Field} field=${WHERE} value=${where} onInput=${setWhere} />
    </div>
    <div class="buttons"><button>Find</button></div>
  </form></${Card}>`;
}

export default function Documents() {
  const { p, to, search, can } = useHere();
  const { prefix, where, sort, after } = search;
  const state = useLoad((signal) => find(p, search, signal), [p, prefix, where, sort, after]);
  const columns = [
    { name: 'Key', cell: (one) => html`<a class="mono" href=${to('document', { key: one.key })}>${one.key}</a>` },
    { name: 'Version', number: true, cell: (one) => number(one.version) },
    { name: 'Size', number: true, cell: (one) => bytes(one.content_bytes) },
    { name: 'Changed', cell: (one) => html`<${Time} at=${one.changed_at_ms} />` },
    { name: 'Ends', hide: true, cell: (one) => html`<${Time} at=${one.expires_at_ms} />` },
  ];
  return html`<${Heading} title="Documents" note="Keys with a content that has a version.">${can('coordinate') && html`<a class="button primary" href=${to('document-new')}>New document</a>`}</${Heading}>
    <${Query} search=${search} />
    <${Loaded} state=${state}>${({ documents, next, scanned, index }) => html`
      ${scanned !== undefined && html`<p class="muted">${number(scanned)} looked at${index ? ` by index ${index}` : ''}.</p>`}
      ${documents.length
        ? html`<${Table} label="Documents" columns=${columns} rows=${documents} keyOf=${(one) => one.key} />`
        : html`<${Empty} title=${next ? 'None on this page' : 'No document'} command="sluice doc put config/web config.json" />`}
      <${Pages} next=${next} />`}
    </${Loaded}>
    ${can('observe', WHOLE) && html`<${DocumentIndexes} />`}`;
}
