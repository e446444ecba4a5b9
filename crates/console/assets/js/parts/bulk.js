// A bulk: one change to all messages of a queue that match a filter. It counts first, then changes, and tells
// how far it is; the server goes on with it although this page is closed.

import { Action, api, capital, counted, html, number, readNumber, useHere } from '../kit.js';
import { BLANK_CHANGE, CHANGES, TO, WHY, readChange } from './changes.js';

export const RATE = { name: 'per_second', label: 'Messages per second', type: 'number', aside: true, hint: 'Empty: as fast as possible.' };

/**
 * What may be changed, what is asked for it, whether it drops something, and the right beside that to
 * operate, at the queue or `at` another place.
 */
export const BULK_VERBS = {
  cancel: { fields: [], danger: true, states: 'any but done', says: 'deletes them' },
  hold: { fields: [], states: 'delayed, ready, blocked', says: 'holds them until a person decides' },
  approve: { fields: [], states: 'held', says: 'makes them ready' },
  deny: { fields: [], danger: true, states: 'held', says: 'makes them dead letters' },
  retry: { fields: [], states: 'delayed, dead', says: 'makes them ready now', right: 'send' },
  move: { fields: [TO], states: 'all but leased and done', says: 'moves them to another queue', right: 'send', at: {} },
  change: { fields: CHANGES, states: 'delayed, ready, blocked, held', says: 'changes the fields given' },
};

const POLL_MS = 300;
const pause = () => new Promise((resolve) => setTimeout(resolve, POLL_MS));

/** Waits for the end of a bulk, which goes on while nobody answers; `report` hears how far it is. */
async function follow(p, { bulk }, { report, signal } = {}) {
  let state = { state: 'running', scanned: 0, changed: 0 };
  for (;;) {
    state = await api.getOr(state, `${p}/bulk/${bulk}`, {}, [0, 503]);
    if (state.state !== 'running') return state;
    report?.({ done: state.scanned, total: state.total, text: `${number(state.changed)} changed of ${number(state.scanned)} looked at` });
    if (signal?.aborted) return api.remove(`${p}/bulk/${bulk}`);
    await pause();
  }
}

const begin = (p, request) => api.post(`${p}/bulk`, request);
export const filterText = ({ queue, where }) => `queue ${queue}${where ? `, ${JSON.stringify(where)}` : ''}`;

function resultOf(state) {
  if (state.state === 'failed') throw new api.ApiError(409, state.error);
  const skipped = state.skipped ? ` ${counted(state.skipped, 'message')} skipped, since their state does not allow it or changed meanwhile.` : '';
  return `${counted(state.changed, 'message')} changed${state.state === 'cancelled' ? ' until it was stopped' : ''}.${skipped}`;
}

/** A button for a bulk. `about` is shown in the place of what the verb does. */
export function BulkAction({ verb, filter, about, label = 'Preview…', title = `${capital(verb)} all messages that match`, confirm = `${capital(verb)} all`, onDone }) {
  const { p, to, can, by } = useHere();
  const { fields, danger, says, states, right, at = filter } = BULK_VERBS[verb];
  if (!can(right, at)) return null;
  const preview = async (values, signal) => {
    const { why, ...change } = readChange(values);
    if (fields.length && !Object.keys(change).length) return { nothing: true };
    const state = await follow(p, await begin(p, { action: verb, filter, ...change, dry_run: true }), { signal });
    const count = state.matched - state.skipped;
    return { ...state, count, nothing: count === 0 };
  };
  const body = (found) => html`
    ${about ?? html`<p><code>${verb}</code> ${says}. It applies to messages that are ${states}.</p>`}
    ${found.total === undefined
      ? html`<p>Fill in the fields below: the messages are counted then.</p>`
      : html`<p>It would touch <span class="preview-count">${counted(found.count, 'message')}</span>, of ${number(found.total)} looked at.</p>`}
    <p class="muted">Filter: ${filterText(filter)}</p>`;
  const run = async (values, _, tools) => {
    const rate = readNumber('per_second', values.per_second);
    const begun = await begin(p, { action: verb, filter, by, ...readChange(values), per_second: rate });
    if (rate === undefined) return resultOf(await follow(p, begun, tools));
    return html`The server changes ${rate} a second, also when this page is closed: <a href=${to('bulks')}>Bulks</a> show how far it is.`;
  };
  return html`<${Action} label=${label} right="operate" at=${filter} danger=${danger} title=${title} confirm=${confirm}
    fields=${[...fields, RATE, WHY]} initial=${{ ...BLANK_CHANGE, per_second: '' }} preview=${preview} body=${body} run=${run} onDone=${onDone} />`;
}
