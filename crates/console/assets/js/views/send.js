// Sends a message: a new one, or another one edited.

import { Card, Fields, Heading, Loaded, Problem, api, html, useForm, useHere, useLoad, useState } from '../kit.js';
import { BLANK_MESSAGE, MESSAGE_FIELDS, readMessage, writeMessage } from '../parts/message_form.js';

const QUEUE = { name: 'queue', label: 'Queue', required: true };
const ORIGINAL = { name: 'cancel_original', type: 'checkbox', label: 'Delete the original message after the send', wide: true };

function Result({ id, note }) {
  const { to, can } = useHere();
  const name = can('observe', {}) ? html`<a class="mono" href=${to('message', { id })}>${id}</a>` : html`<span class="mono">${id}</span>`;
  return html`<p class="hint-box" role="status">Sent as ${name}. ${note}</p>`;
}

/** A message as the form has it: what is not stored in this form is found from what is. */
const asSent = (original) => ({
  ...original,
  ttl_ms: original.expires_at_ms && original.expires_at_ms - original.sent_at_ms,
  hold: original.state === 'held',
});

/** What a message has that the form does not. */
const leftOut = ({ unique_key: unique, state, payload_damaged: damaged }, flow) => {
  const { parents, children, chain, on_failure: failure } = flow ?? {};
  return [
    damaged && 'its payload, which is damaged',
    !flow && 'its flow, which is not known',
    unique && `its unique key ${unique}`,
    state === 'delayed' && 'its delay',
    parents?.length && 'the messages that it waits for',
    children?.length && 'the messages that wait for it',
    chain?.length && `its chain to ${chain.join(', ')}`,
    failure && `its step to ${failure} if it fails`,
  ].filter(Boolean).join('; ');
};

function Form({ original, flow, queue }) {
  const { p, can, by } = useHere();
  const form = useForm({ queue: queue ?? '', cancel_original: false, ...BLANK_MESSAGE, ...(original && { ...writeMessage(asSent(original)), queue: original.queue }) });
  const [state, setState] = useState({ error: null });
  const [key, setKey] = useState(api.requestKey);
  const { queue: target } = form.values;
  const mayCancel = original && can('operate', { queue: original.queue });
  const proposes = target && can('propose', { queue: target }) && !can('send', { queue: target });
  const left = original && leftOut(original, flow);
  const submit = async (event) => {
    event.preventDefault();
    setState({ error: null, busy: true });
    try {
      const { id } = await api.post(`${p}${api.path('queues', target)}/messages`, readMessage({ ...form.values, ...(proposes && { hold: true }) }), { headers: { 'Idempotency-Key': key } });
      setState({ id, note: mayCancel && form.values.cancel_original ? await cancelled(p, original, by) : '' });
      setKey(api.requestKey());
    } catch (error) {
      setState({ error });
      if (error.status < 500) setKey(api.requestKey());
    }
  };
  return html`<form onSubmit=${submit} noValidate>
    ${left && html`<p class="hint-box warn">Not taken over from the original: ${left}.</p>`}
    <${Fields} fields=${[QUEUE, ...MESSAGE_FIELDS, mayCancel && ORIGINAL]} form=${form} error=${state.error} />
    <${Problem} error=${state.error} />
    ${proposes && html`<p class="hint-box">You may propose messages to this queue: this one is held until a person approves it.</p>`}
    ${state.id && html`<${Result} ...${state} />`}
    <div class="buttons"><button class="primary" disabled=${state.busy || !target}>Send</button></div>
  </form>`;
}

async function cancelled(p, { id, version }, by) {
  try {
    await api.post(`${p}${api.path('messages', id)}/cancel`, { by, version, why: 'edited and sent again' });
    return 'The original is deleted.';
  } catch (error) {
    return `The original stays: ${error.message}`;
  }
}

async function load(p, id, signal) {
  if (!id) return {};
  const [original, flow] = await Promise.all([api.get(p + api.path('messages', id), { signal }), api.getOr(null, p + api.path('flows', id), { signal })]);
  return { original, flow };
}

export default function Send() {
  const { p, search, to } = useHere();
  const { from, queue } = search;
  const state = useLoad((signal) => load(p, from, signal), [p, from]);
  const trail = from ? [[from, to('message', { id: from })]] : [];
  return html`<${Heading} title=${from ? 'Edit and resend' : 'Send a message'} trail=${trail} note=${from ? 'This sends a new message with a new id.' : undefined} />
    <${Loaded} state=${state}>${(data) => html`<${Card}><${Form} ...${data} queue=${queue} /></${Card}>`}</${Loaded}>`;
}
