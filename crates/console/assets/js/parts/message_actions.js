// What a person may do with one message, by its state.

import { html } from '../../vendor/preact.js';
import * as api from '../api.js';
import { useHere } from '../app.js';
import { capital } from '../format.js';
import { go } from '../router.js';
import { Action } from './dialog.js';
import { given, readDuration, readList, readNumber, readText } from './fields.js';

const WHY = { name: 'why', label: 'Why', wide: true, hint: 'Stands in the history of the message.' };
const TO = { name: 'to', label: 'To queue', required: true };
const CHANGES = [
  { name: 'priority', label: 'Priority', type: 'number', min: 0, max: 9 },
  { name: 'delay_ms', label: 'Delay from now', hint: 'Such as 30s or 1h; 0 makes it ready.' },
  { name: 'max_attempts', label: 'Maximum attempts', type: 'number', min: 1 },
  { name: 'tags', label: 'Tags', hint: 'Separated by commas.' },
];

const ALL = ['delayed', 'ready', 'leased', 'held', 'dead', 'blocked'];
const WAITING = ['delayed', 'ready', 'blocked'];

/** Verbs: in which states, what they do, what is asked. */
const VERBS = [
  { verb: 'approve', states: ['held'], says: 'The message becomes ready, or delayed if its time has not come.', kind: 'primary' },
  { verb: 'deny', states: ['held'], says: 'The message becomes a dead letter.', danger: true },
  { verb: 'retry', states: ['delayed', 'dead'], says: 'The message is ready now; the attempts of a dead letter are counted from 0.', kind: 'primary' },
  { verb: 'hold', states: WAITING, says: 'The message waits until a person approves or denies it.' },
  { verb: 'move', states: [...WAITING, 'held', 'dead'], says: 'The message moves to another queue, with its id and history.', fields: [TO] },
  { verb: 'change', states: [...WAITING, 'held'], says: 'Fields that are left empty stay as they are.', fields: CHANGES },
  { verb: 'cancel', states: ALL, says: 'The message is deleted. A leased one is deleted when its consumer settles it, whatever the outcome.', danger: true },
];

const readFields = (values) => given({
  to: readText(values.to),
  why: readText(values.why),
  priority: readNumber('priority', values.priority),
  delay_ms: readDuration('delay_ms', values.delay_ms),
  max_attempts: readNumber('max_attempts', values.max_attempts),
  tags: readList(values.tags),
});

const BLANK = { why: '', to: '', priority: '', delay_ms: '', max_attempts: '', tags: '' };

export function MessageActions({ message, reload }) {
  const { p, to, can } = useHere();
  const run = (verb) => async (values) => {
    await api.post(`${p}${api.path('messages', message.id)}/${verb}`, { ...readFields(values), version: message.version });
    if (verb === 'cancel' && message.state !== 'leased') go(to('messages', { queue: message.queue }));
    return 'Done.';
  };
  return html`
    ${can('send') && html`<a class="button" href=${to('send', {}, { from: message.id })}>Edit and resend</a>`}
    ${VERBS.filter((one) => one.states.includes(message.state)).map((one) => html`<${Action} key=${one.verb} label=${capital(one.verb)} confirm=${`${capital(one.verb)} the message`} right="operate"
      danger=${one.danger} kind=${one.kind} title=${`${capital(one.verb)} this message`} fields=${[...(one.fields ?? []), WHY]} initial=${BLANK}
      body=${() => html`<p>${one.says}</p>`} run=${run(one.verb)} onDone=${reload} />`)}`;
}
