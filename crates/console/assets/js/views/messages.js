// The messages of a queue: by state page by page, or those that match a filter; and changes to all of them.

import { html, useState } from '../../vendor/preact.js';
import * as api from '../api.js';
import { useHere, useLoad, useScan } from '../app.js';
import { lastError } from '../format.js';
import { Empty, Loaded, Problem } from '../parts/basics.js';
import { BulkAction, BULK_VERBS } from '../parts/bulk.js';
import { Field } from '../parts/fields.js';
import { MessageTable } from '../parts/message_table.js';
import { QueueFrame } from '../parts/queue_frame.js';
import { Pages, ScanState } from '../parts/table.js';
import { setSearch } from '../router.js';

const PAGE = 50;
const SCAN_PAGE = 500;
const STATES = ['', 'ready', 'delayed', 'blocked', 'leased', 'held', 'dead', 'done'];

const STATE = { name: 'state', label: 'State', type: 'select', options: STATES.map((state) => [state, state || 'all states']) };
const FILTERS = [
  { name: 'tag', label: 'Tag', type: 'search' },
  { name: 'header', label: 'Header', type: 'search', placeholder: 'name: value' },
  { name: 'error', label: 'Error contains', type: 'search' },
  { name: 'text', label: 'Payload or id contains', type: 'search' },
];

/** Dead letters are listed with their errors, other messages without. */
function pageOf(p, queue, state, { cursor, limit, payload }, signal) {
  const list = state === 'dead' ? 'dead' : 'messages';
  const url = `${p}${api.path('queues', queue)}/${list}`;
  return api.get(url + api.query({ state: state === 'dead' ? undefined : state, cursor, limit, payload }), { signal });
}

function headerOf(text) {
  const colon = text.indexOf(':');
  return colon > 0 ? { name: text.slice(0, colon).trim(), value: text.slice(colon + 1).trim() } : null;
}

function matcher({ tag, header, error, text }) {
  const pair = header && headerOf(header);
  return (message) =>
    (!tag || message.tags?.includes(tag)) &&
    (!pair || message.headers?.[pair.name] === pair.value) &&
    (!error || message.history.some((attempt) => attempt.error?.includes(error)) || lastError(message).includes(error)) &&
    (!text || message.id.includes(text) || message.payload?.includes(text));
}

function Matching({ p, queue, filter }) {
  const page = async (cursor, signal) => {
    const got = await pageOf(p, queue, filter.state, { cursor, limit: SCAN_PAGE, payload: true }, signal);
    return { rows: got.messages, next: got.next };
  };
  const scan = useScan(page, matcher(filter), [p, queue, filter]);
  return html`<${Problem} error=${scan.error} retry=${scan.restart} />
    ${scan.rows.length > 0 && html`<${MessageTable} messages=${scan.rows} />`}
    ${!scan.running && !scan.rows.length && html`<${Empty} title="No message matches">Errors are known of dead letters only: choose the state <em>dead</em> to search in them.</${Empty}>`}
    <${ScanState} scan=${scan} what="messages" />`;
}

function InState({ p, queue, state, cursor }) {
  const loaded = useLoad((signal) => pageOf(p, queue, state, { cursor, limit: PAGE, payload: state === 'dead' }, signal), [p, queue, state, cursor], { every: state === 'dead' ? 10_000 : 3000 });
  return html`<${Loaded} state=${loaded}>${({ messages, next }) => html`
    ${messages.length
      ? html`<${MessageTable} messages=${messages} />`
      : html`<${Empty} title=${state ? `No message is ${state}` : 'The queue is empty'} command=${`sluice send ${queue} hello`} />`}
    <${Pages} next=${next} name="cursor" />`}
  </${Loaded}>`;
}

/** The filter of a bulk: what the server can match. A text in payloads is not among it. */
function bulkFilter(queue, { state, tag, header, error }) {
  const filter = { queue };
  if (state) filter.state = state;
  if (tag) filter.tag = tag;
  if (header && headerOf(header)) filter.header = headerOf(header);
  if (error) filter.error_contains = error;
  return filter;
}

function Bulk({ queue, filter }) {
  const { can } = useHere();
  const [verb, setVerb] = useState('cancel');
  if (!can('operate')) return null;
  const field = { name: 'verb', label: 'Change all that match', type: 'select', options: Object.keys(BULK_VERBS) };
  return html`<${Field} field=${field} value=${verb} onInput=${setVerb} />
    <${BulkAction} key=${verb} verb=${verb} filter=${bulkFilter(queue, filter)} disabled=${Boolean(filter.text)} />`;
}

export default function Messages() {
  const { p, parameters, search } = useHere();
  const { queue } = parameters;
  const { state = '', cursor, tag = '', header = '', error = '', text = '' } = search;
  const filter = { state, tag, header, error, text };
  const set = (name) => (value) => setSearch({ [name]: value, cursor: undefined }, { replace: true });
  const filtered = tag || error || text || (header && headerOf(header));
  return html`<${QueueFrame} here="messages">
    <div class="toolbar ends" role="search">
      <${Field} field=${STATE} value=${state} onInput=${set('state')} />
      ${FILTERS.map((field) => html`<${Field} key=${field.name} field=${field} value=${filter[field.name]} onInput=${set(field.name)} />`)}
    </div>
    <div class="toolbar ends"><${Bulk} queue=${queue} filter=${filter} /></div>
    ${filtered ? html`<${Matching} p=${p} queue=${queue} filter=${filter} />` : html`<${InState} p=${p} queue=${queue} state=${state} cursor=${cursor} />`}
  </${QueueFrame}>`;
}
