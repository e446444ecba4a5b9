// One message: payload, headers, history, flow, and what a person may do with it.

import { Badge, Card, Facts, Heading, Loaded, Table, Time, api, bytes, duration, html, number, useHere, useLoad } from '../kit.js';
import { FlowGraph, hasFlow } from '../parts/flow.js';
import { MessageActions } from '../parts/message_actions.js';
import { Payload } from '../parts/payload.js';
import { Timeline } from '../parts/timeline.js';
import { WHOLE } from '../rights.js';

/** With the flow, if the caller may learn the fate of all messages of the namespace. */
async function load(p, id, whole, signal) {
  const [message, flow] = await Promise.all([
    api.get(p + api.path('messages', id), { signal }),
    whole && api.getOr(null, p + api.path('flows', id), { signal }),
  ]);
  return { message, flow };
}

const HEADER_COLUMNS = [
  { name: 'Name', cell: ([name]) => html`<span class="mono">${name}</span>` },
  { name: 'Value', wide: true, cell: ([, value]) => html`<span class="mono">${value}</span>` },
];

const Headers = ({ headers }) => {
  const rows = Object.entries(headers ?? {});
  return rows.length > 0 && html`<${Card} title="Headers"><${Table} label="Headers" columns=${HEADER_COLUMNS} rows=${rows} keyOf=${([name]) => name} /></${Card}>`;
};

const UNTIL = { delayed: 'ready', leased: 'lease ends' };

function MessageFacts({ message, to }) {
  const queue = (name) => name && html`<a href=${to('queue', { queue: name })}>${name}</a>`;
  const time = (at) => at && html`<${Time} at=${at} />`;
  return html`<${Facts} rows=${[
    ['queue', queue(message.queue)],
    ['attempts', `${message.attempts} of ${message.max_attempts}`],
    ['deliveries', message.deliveries],
    ['sent', time(message.sent_at_ms)],
    [UNTIL[message.state] ?? 'until', time(message.deadline_ms)],
    ['reason', message.reason],
    ['blocked by', message.blocked_by?.replace('_', ' ')],
    ['held by', message.holder && html`<a href=${to('consumer', { consumer: message.holder.consumer })}>${message.holder.name || message.holder.consumer}</a>`],
    ['progress', message.progress && `${message.progress.percent} % ${message.progress.note ?? ''}`],
    ['priority', message.priority],
    ['tags', message.tags?.join(', ')],
    ['ordering key', message.ordering_key],
    ['fair key', message.fair_key],
    ['limit key', message.limit_key],
    ['cost', message.cost === undefined ? undefined : number(message.cost)],
    ['unique key', message.unique_key],
    ['expires', time(message.expires_at_ms)],
    ['correlation id', message.correlation_id],
    ['replies to', queue(message.reply_to)],
    ['died in', queue(message.from_queue)],
    ['backoff', `${message.backoff.kind ?? 'exponential'} from ${duration(message.backoff.base_ms)}`],
    ['size', bytes(message.size_bytes)],
    ['cancelled', message.cancelled && 'at its next settlement'],
    ['kept until', time(message.kept_until_ms)],
  ]} />`;
}

const LastError = ({ message }) => {
  const last = message.history.at(-1);
  return message.state === 'dead' && last?.error && html`<${Card} title=${`Error of the last attempt (${last.end})`}><pre class="error-text">${last.error}</pre></${Card}>`;
};

function Contents({ message }) {
  if (message.payload_damaged) return html`<p class="bad-text">The stored payload could not be read back.</p>`;
  return html`<${Payload} text=${message.payload} base64=${message.payload_base64} contentType=${message.content_type} />`;
}

const Extra = ({ title, text, base64, type }) =>
  (text !== undefined || base64 !== undefined) && html`<${Card} title=${title}><${Payload} text=${text} base64=${base64} contentType=${type} /></${Card}>`;

export default function MessageView() {
  const { p, to, parameters, can } = useHere();
  const { id } = parameters;
  const whole = can('result', WHOLE);
  const state = useLoad((signal) => load(p, id, whole, signal), [p, id], { every: 3000 });
  const message = state.data?.message;
  const trail = [['Queues', to('queues')], message && [message.queue, to('messages', { queue: message.queue })]].filter(Boolean);
  return html`<${Heading} title=${id} mono trail=${trail}>
      ${message && html`<${Badge} state=${message.state} /><${MessageActions} message=${message} reload=${state.reload} />`}
    </${Heading}>
    <${Loaded} state=${state}>${(data) => html`
      <${LastError} message=${data.message} />
      <${Card}><${MessageFacts} message=${data.message} to=${to} /></${Card}>
      <div class="grid">
        <${Card} title="Payload"><${Contents} message=${data.message} /></${Card}>
        <${Card} title="History"><${Timeline} message=${data.message} /></${Card}>
      </div>
      ${!whole && html`<p class="muted">Your rights do not include the flows of the namespace.</p>`}
      ${data.flow && hasFlow(data.flow) && html`<${Card} title="Flow"><${FlowGraph} flow=${data.flow} link=${(other) => to('message', { id: other })} /></${Card}>`}
      <${Headers} headers=${data.message.headers} />
      <${Extra} title="Result" text=${data.message.result} base64=${data.message.result_base64} type=${data.message.result_content_type} />
      <${Extra} title="Checkpoint" text=${data.message.checkpoint} base64=${data.message.checkpoint_base64} type=${data.message.checkpoint_content_type} />`}
    </${Loaded}>`;
}
