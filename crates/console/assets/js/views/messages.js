// The messages of a queue: by state page by page, or those that match a filter; and changes to all of them.

import { Empty, Field, Loaded, Pages, api, fault, html, readJson, readText, setSearch, useGet, useHere, useState } from '../kit.js';
import { BulkAction, BULK_VERBS } from '../parts/bulk.js';
import { readTree } from '../parts/json_tree.js';
import { Matching } from '../parts/matching.js';
import { MessageTable } from '../parts/message_table.js';
import { QueueFrame } from '../parts/queue_frame.js';

const PAGE = 50;
const STATES = ['', 'ready', 'delayed', 'blocked', 'leased', 'held', 'dead', 'done'];

const STATE = { name: 'state', label: 'State', type: 'select', options: STATES.map((state) => [state, state || 'all states']) };
const FILTERS = [
  { name: 'tag', label: 'Tag', type: 'search' },
  { name: 'header', label: 'Header', type: 'search', placeholder: 'name: value' },
  { name: 'error', label: 'Error contains', type: 'search' },
  { name: 'text', label: 'Payload or id contains', type: 'search' },
  { name: 'where', label: 'Filter', type: 'search', placeholder: '{"/payload/total":{"ge":100}}' },
];

function headerOf(text) {
  const colon = text.indexOf(':');
  if (colon < 1) throw fault('header', `Expected "name: value", got "${text}"`);
  return { [`/headers/${text.slice(0, colon).trim().replaceAll('~', '~0').replaceAll('/', '~1')}`]: text.slice(colon + 1).trim() };
}

function writtenFilter(text) {
  const filter = readJson('where', text);
  if (filter?.constructor !== Object) throw fault('where', `Expected a filter as a JSON object, got "${text}"`);
  if (readTree(text).twice) throw fault('where', 'Expected each name once: use and, or or');
  return filter;
}

/** The filter that the server takes. What is written in a field and is none is an error, not left out. */
function whereOf({ state, tag, header, error, text, where }) {
  const all = [
    state && { '/state': state },
    tag && { '/tags': { contains: tag } },
    readText(header) && headerOf(header),
    error && { '/errors': { contains: error } },
    text && { or: [{ '/id': { contains: text } }, { '/payload_text': { contains: text } }] },
    readText(where) && writtenFilter(where),
  ].filter(Boolean);
  return all.length > 1 ? { and: all } : all[0];
}

function readFilter(filter) {
  try {
    return { where: whereOf(filter) };
  } catch (wrong) {
    return { wrong };
  }
}

/** Dead letters are listed with their errors, other messages without. */
function InState({ p, queue, state, cursor }) {
  const dead = state === 'dead';
  const url = p + api.path('queues', queue, dead ? 'dead' : 'messages');
  const loaded = useGet(url + api.query({ state: dead ? '' : state, cursor, limit: PAGE, payload: dead }), { every: dead ? 10_000 : 3000 });
  return html`<${Loaded} state=${loaded}>${({ messages, next }) => html`
    ${messages.length
      ? html`<${MessageTable} messages=${messages} />`
      : html`<${Empty} title=${state ? `No message is ${state}` : 'The queue is empty'} command=${`sluice send ${queue} hello`} />`}
    <${Pages} next=${next} name="cursor" />`}
  </${Loaded}>`;
}

function Bulk({ queue, where, wrong, onDone }) {
  const { can } = useHere();
  const [verb, setVerb] = useState('cancel');
  if (wrong || !can('operate')) return null;
  const options = Object.keys(BULK_VERBS).filter((one) => can(BULK_VERBS[one].right, BULK_VERBS[one].at));
  return html`<${Field} field=${{ name: 'verb', label: 'Change all that match', type: 'select', options }} value=${verb} onInput=${setVerb} />
    <${BulkAction} key=${verb} verb=${verb} filter=${{ queue, where }} onDone=${onDone} />`;
}

export default function Messages() {
  const { p, parameters, search } = useHere();
  const { queue } = parameters;
  const { state = '', cursor, tag = '', header = '', error = '', text = '', where = '' } = search;
  const filter = { state, tag, header, error, text, where };
  const [round, setRound] = useState(0);
  const set = (name) => (value) => setSearch({ [name]: value, cursor: undefined }, { replace: true });
  const { where: matching, wrong } = readFilter(filter);
  const filtered = tag || header || error || text || where;
  return html`<${QueueFrame} here="messages">
    <div class="toolbar ends" role="search">
      <${Field} field=${STATE} value=${state} onInput=${set('state')} />
      ${FILTERS.map((field) => html`<${Field} key=${field.name} field=${field} value=${filter[field.name]} onInput=${set(field.name)}
        error=${wrong?.details.field === field.name && wrong.message} />`)}
    </div>
    <div class="toolbar ends"><${Bulk} queue=${queue} where=${matching} wrong=${wrong} onDone=${() => setRound((n) => n + 1)} /></div>
    ${!wrong && (filtered ? html`<${Matching} key=${round} queue=${queue} where=${matching} />` : html`<${InState} key=${round} p=${p} queue=${queue} state=${state} cursor=${cursor} />`)}
  </${QueueFrame}>`;
}
