// What a person may do with one message, by its state and by their rights.

import { Action, api, capital, go, html, useHere } from '../kit.js';
import { BLANK_CHANGE, CHANGES, TO, WHY, readChange } from './changes.js';

const ALL = ['delayed', 'ready', 'leased', 'held', 'dead', 'blocked'];
const WAITING = ['delayed', 'ready', 'blocked'];

/** Verbs: in which states, what they do, what is asked, and the rights beside that to operate. */
const VERBS = [
  { verb: 'approve', states: ['held'], says: 'The message becomes ready, or delayed if its time has not come.', kind: 'primary' },
  { verb: 'deny', states: ['held'], says: 'The message becomes a dead letter.', danger: true },
  { verb: 'retry', states: ['delayed', 'dead'], says: 'The message is ready now; the attempts of a dead letter are counted from 0.', kind: 'primary', right: 'send' },
  { verb: 'hold', states: WAITING, says: 'The message waits until a person approves or denies it.' },
  { verb: 'move', states: [...WAITING, 'held', 'dead'], says: 'The message moves to another queue, with its id and history.', fields: [TO], right: 'send', at: {} },
  { verb: 'change', states: [...WAITING, 'held'], says: 'Fields that are left empty stay as they are.', fields: CHANGES },
  { verb: 'cancel', states: ALL, says: 'The message is deleted. A leased one is deleted when its consumer settles it, whatever the outcome.', danger: true },
];

export function MessageActions({ message, reload }) {
  const { p, to, can, by } = useHere();
  const here = { queue: message.queue };
  const run = (verb) => async (values) => {
    await api.post(`${p}${api.path('messages', message.id)}/${verb}`, { by, ...readChange(values), version: message.version });
    if (verb === 'cancel' && message.state !== 'leased') go(to('messages', here));
    return 'Done.';
  };
  const shown = VERBS.filter((one) => one.states.includes(message.state) && can(one.right, one.at ?? here));
  return html`
    ${can('propose', here) && html`<a class="button" href=${to('send', {}, { from: message.id })}>Edit and resend</a>`}
    ${shown.map((one) => html`<${Action} key=${one.verb} label=${capital(one.verb)} confirm=${`${capital(one.verb)} the message`} right="operate" at=${here}
      danger=${one.danger} kind=${one.kind} title=${`${capital(one.verb)} ${message.id}`} fields=${[...(one.fields ?? []), WHY]} initial=${BLANK_CHANGE}
      body=${() => html`<p>${one.says}</p>`} run=${run(one.verb)} onDone=${reload} />`)}`;
}
