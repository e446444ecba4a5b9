// A bulk: one change to all messages of a queue that match a filter. It counts first, then changes, and tells
// how far it is; the server goes on with it although this page is closed.

import { html } from '../../vendor/preact.js';
import * as api from '../api.js';
import { useHere } from '../app.js';
import { capital, counted, number } from '../format.js';
import { Action } from './dialog.js';
import { given, readDuration, readList, readNumber, readText } from './fields.js';

const WHY = { name: 'why', label: 'Why', wide: true, hint: 'Stands in the history of each message.' };
const CHANGE_FIELDS = [
  { name: 'priority', label: 'Priority', type: 'number', min: 0, max: 9 },
  { name: 'delay_ms', label: 'Delay', hint: 'Such as 30s or 1h; 0 makes them ready.' },
  { name: 'max_attempts', label: 'Maximum attempts', type: 'number', min: 1 },
  { name: 'tags', label: 'Tags', hint: 'Separated by commas; they replace all tags.' },
];

/** What may be changed, what is asked for it, and whether it drops something. */
export const BULK_VERBS = {
  cancel: { fields: [], danger: true, states: 'any but done', says: 'deletes them' },
  hold: { fields: [], states: 'delayed, ready, blocked', says: 'holds them until a person decides' },
  approve: { fields: [], states: 'held', says: 'makes them ready' },
  deny: { fields: [], danger: true, states: 'held', says: 'makes them dead letters' },
  retry: { fields: [], states: 'delayed, dead', says: 'makes them ready now' },
  move: { fields: [{ name: 'to', label: 'To queue', required: true }], states: 'all but leased and done', says: 'moves them to another queue' },
  change: { fields: CHANGE_FIELDS, states: 'delayed, ready, blocked, held', says: 'changes the fields given' },
};

const POLL_MS = 300;
const pause = () => new Promise((resolve) => setTimeout(resolve, POLL_MS));

const readFields = (values) => given({
  to: readText(values.to),
  why: readText(values.why),
  priority: readNumber('priority', values.priority),
  delay_ms: readDuration('delay_ms', values.delay_ms),
  max_attempts: readNumber('max_attempts', values.max_attempts),
  tags: readList(values.tags),
});

/** Begins a bulk and waits for its end; `report` hears how far it is. */
async function follow(p, request, { report, signal } = {}) {
  const { bulk } = await api.post(`${p}/bulk`, request);
  for (;;) {
    const state = await api.get(`${p}/bulk/${bulk}`);
    if (state.state !== 'running') return state;
    report?.({ done: state.scanned, total: state.total, text: `${number(state.changed)} changed of ${number(state.scanned)} looked at` });
    if (signal?.aborted) return api.remove(`${p}/bulk/${bulk}`);
    await pause();
  }
}

const filterText = ({ queue, ...rest }) =>
  [`queue ${queue}`, ...Object.entries(rest).map(([name, value]) => `${name.replace('_', ' ')} ${typeof value === 'object' ? `${value.name}: ${value.value}` : `"${value}"`}`)].join(', ');

function resultOf(state) {
  if (state.state === 'failed') throw new api.ApiError(409, state.error);
  const skipped = state.skipped ? ` ${counted(state.skipped, 'message')} skipped, since their state does not allow it or changed meanwhile.` : '';
  return `${counted(state.changed, 'message')} changed${state.state === 'cancelled' ? ' until it was stopped' : ''}.${skipped}`;
}

/** A harmless action to count with, where the fields of the real one are not filled in yet. */
const countable = (verb, values) => {
  const fields = readFields(values);
  const ready = verb === 'move' ? fields.to : verb === 'change' ? Object.keys(fields).some((name) => name !== 'why') : true;
  return ready ? { action: verb, ...fields } : { action: 'cancel' };
};

export function BulkAction({ verb, filter, label = 'Preview…', disabled, onDone }) {
  const { p } = useHere();
  const { fields, danger, says, states } = BULK_VERBS[verb];
  const preview = async (values) => {
    const state = await follow(p, { ...countable(verb, values), filter, dry_run: true });
    const matched = state.matched - (state.skipped ?? 0);
    return { ...state, count: matched, nothing: matched === 0 };
  };
  const body = (found) => html`
    <p><code>${verb}</code> ${says}. It applies to messages that are ${states}.</p>
    <p>It would touch <span class="preview-count">${counted(found.count, 'message')}</span>, of ${number(found.total)} looked at.</p>
    <p class="muted">Filter: ${filterText(filter)}</p>`;
  const run = async (values, _, tools) => resultOf(await follow(p, { action: verb, filter, ...readFields(values) }, tools));
  return html`<${Action} label=${label} right="operate" danger=${danger} disabled=${disabled} title=${`${capital(verb)} all messages that match`} confirm=${`${capital(verb)} all`}
    fields=${[...fields, WHY]} initial=${{ why: '', to: '', priority: '', delay_ms: '', max_attempts: '', tags: '' }} preview=${preview} body=${body} run=${run} onDone=${onDone} />`;
}

export { filterText };
