// What drops messages of a queue: each shows first what it will touch.

import { Action, api, counted, html, number, useHere } from '../kit.js';

const PURGED = ['ready', 'delayed', 'blocked', 'held'];
const KEPT = ['leased', 'dead', 'done'];

const Counts = ({ counts, states }) => html`<ul>${states.map((state) => html`<li>${state}: <b>${number(counts[state])}</b></li>`)}</ul>`;
const sum = (counts, states) => states.reduce((total, state) => total + counts[state], 0);

async function preview(p, name, states) {
  const { counts } = await api.get(p + api.path('queues', name));
  return { counts, total: sum(counts, states) };
}

export function PurgeQueue({ name, onDone }) {
  const { p } = useHere();
  const body = ({ counts, total }) => html`
    <p>This drops <span class="preview-count">${counted(total, 'waiting message')}</span> of <code>${name}</code> for good:</p>
    <${Counts} counts=${counts} states=${PURGED} />
    <p>These stay:</p>
    <${Counts} counts=${counts} states=${KEPT} />`;
  const run = async () => {
    const { purged } = await api.post(`${p}${api.path('queues', name)}/purge`);
    return `${counted(purged, 'message')} dropped.`;
  };
  const load = async () => {
    const found = await preview(p, name, PURGED);
    return { ...found, nothing: found.total === 0 };
  };
  return html`<${Action} label="Purge" right="operate" danger title=${`Purge ${name}`} confirm="Purge" preview=${load} body=${body} run=${run} onDone=${onDone} />`;
}

const TYPED = { name: 'typed', label: 'Write the name of the queue to confirm', wide: true, aside: true };

export function DeleteQueue({ name, onDone }) {
  const { p } = useHere();
  const all = [...PURGED, ...KEPT];
  const body = ({ counts, total }) => html`
    <p>This deletes the queue <code>${name}</code>, its settings, and <span class="preview-count">${counted(total, 'message')}</span>, leased ones too:</p>
    <${Counts} counts=${counts} states=${all} />`;
  const run = async ({ typed }) => {
    if (typed !== name) throw Object.assign(new Error('This is not the name of the queue'), { details: { field: 'typed' } });
    const { deleted } = await api.remove(p + api.path('queues', name));
    onDone();
    return `The queue and ${counted(deleted, 'message')} are deleted.`;
  };
  return html`<${Action} label="Delete" right="operate" danger title=${`Delete ${name}`} confirm="Delete the queue" fields=${[TYPED]} initial=${{ typed: '' }}
    preview=${() => preview(p, name, all)} body=${body} run=${run} />`;
}
