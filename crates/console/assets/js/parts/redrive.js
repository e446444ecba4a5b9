// Redriving and deleting dead letters. All of a queue: by the server, at a rate, also when this page is closed.
// A group of one error text: by their ids, in slices that this page sends.

import { html } from '../../vendor/preact.js';
import * as api from '../api.js';
import { counted, cut, lastError, number } from '../format.js';
import { Action } from './dialog.js';
import { readNumber } from './fields.js';

const RATE = { name: 'per_second', label: 'Messages per second', type: 'number', min: 1, max: 100000, hint: 'Empty: as fast as possible.' };
const SLICE = 1000;
const PAGE = 1000;

/**
 * The ids of all dead letters whose last attempt has this error text; `null`: no text. The list has the texts
 * only together with the payloads.
 */
async function idsOf(url, error) {
  const ids = [];
  for (let cursor; ; ) {
    const { messages, next } = await api.get(url + api.query({ cursor, limit: PAGE }));
    ids.push(...messages.filter((message) => (lastError(message) || null) === error).map(({ id }) => id));
    if (!next) return ids;
    cursor = next;
  }
}

/** Acts on a slice as a whole; if one of it is no dead letter any more, on each by itself. */
async function actOn(url, ids) {
  try {
    await api.post(url, { ids });
    return ids.length;
  } catch (error) {
    if (!['message_not_found', 'wrong_state', 'queue_full', 'unique_key_taken'].includes(error.code)) throw error;
    if (ids.length === 1) return 0;
  }
  let done = 0;
  for (const id of ids) done += await actOn(url, [id]);
  return done;
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Acts on all ids, at most `perSecond` of them each second. */
async function paced(url, ids, perSecond, { report, signal }) {
  const size = Math.min(SLICE, perSecond ?? SLICE);
  const begun = Date.now();
  let [sent, done] = [0, 0];
  while (sent < ids.length && !signal.aborted) {
    const due = perSecond ? begun + (sent / perSecond) * 1000 : 0;
    await pause(Math.max(0, due - Date.now()));
    if (signal.aborted) break;
    done += await actOn(url, ids.slice(sent, sent + size));
    sent = Math.min(ids.length, sent + size);
    report({ done: sent, total: ids.length });
  }
  return { sent, done };
}

const told = (verb, { sent, done }, ids) =>
  `${counted(done, 'dead letter')} ${verb}.${sent > done ? ` ${number(sent - done)} were none any more, or had no room.` : ''}${sent < ids.length ? ` Stopped: ${number(ids.length - sent)} are left.` : ''}`;

function GroupAction({ url, error, name, verb, done, fields = [], note, ...rest }) {
  const preview = async () => {
    const ids = await idsOf(url, error);
    return { ids, nothing: !ids.length };
  };
  const body = ({ ids }) => html`<p><span class="preview-count">${counted(ids.length, 'dead letter')}</span> with this error:</p>
    <pre class="error-text">${cut(name, 600)}</pre><p>${note}</p>`;
  const run = async (values, { ids }, tools) => told(done, await paced(`${url}/${verb}`, ids, readNumber('per_second', values.per_second), tools), ids);
  return html`<${Action} ...${rest} right="operate" fields=${fields} initial=${{ per_second: '' }} preview=${preview} body=${body} run=${run} />`;
}

export const RedriveGroup = (props) => html`<${GroupAction} ...${props} verb="redrive" done="redriven" fields=${[RATE]} label="Redrive" title="Redrive a group"
  note="They become ready again, with attempts counted from 0. Keep this page open until it is done." />`;

export const DeleteGroup = (props) => html`<${GroupAction} ...${props} verb="delete" done="deleted" label="Delete" title="Delete a group" danger
  note="They are deleted for good." />`;

export function RedriveAll({ url, count, onDone }) {
  const body = () => html`<p>All <span class="preview-count">${counted(count, 'dead letter')}</span> of the queue become ready again, oldest first, with attempts counted from 0.
    With a rate the server goes on by itself, also when this page is closed.</p>`;
  const run = async ({ per_second: text }) => {
    const rate = readNumber('per_second', text);
    const { redriven } = await api.post(`${url}/redrive`, { all: true, ...(rate && { per_second: rate }) });
    return `${counted(redriven, 'dead letter')} ${rate ? `will be redriven at ${rate} a second` : 'redriven'}.`;
  };
  return html`<${Action} label="Redrive all" right="operate" kind="primary" title="Redrive all dead letters" fields=${[RATE]} initial=${{ per_second: '' }} body=${body} run=${run} onDone=${onDone} />`;
}
