// One consumer with the messages that it holds.

import { Action, Badge, Card, Empty, Facts, Heading, Loaded, Table, Time, api, counted, duration, html, number, readDuration, useGet, useHere } from '../kit.js';

const GRACE = { name: 'grace_ms', label: 'Grace period', hint: 'It keeps what it holds for this time, in which it may settle: 0s to 1h.' };

function Detach({ consumer, url, onDone }) {
  const run = async ({ grace_ms: text }) => {
    await api.remove(url + api.query({ grace_ms: readDuration('grace_ms', text) }));
    return 'The consumer is detached.';
  };
  const body = () => html`<p>It gets no more messages. It holds <span class="preview-count">${counted(consumer.in_flight, 'message')}</span>, which return to their queues after the grace period.</p>`;
  return html`<${Action} label="Detach" right="operate" danger title=${`Detach ${consumer.name || consumer.id}`} fields=${[GRACE]} initial=${{ grace_ms: '30s' }}
    body=${body} run=${run} onDone=${onDone} />`;
}

export default function Consumer() {
  const { p, to, parameters } = useHere();
  const url = p + api.path('consumers', parameters.consumer);
  const state = useGet(url, { every: 2000 });
  const one = state.data;
  const columns = [
    { name: 'Message', cell: (held) => html`<a class="mono" href=${to('message', { id: held.id })}>${held.id}</a>` },
    { name: 'Queue', cell: (held) => html`<a href=${to('queue', { queue: held.queue })}>${held.queue}</a>` },
    { name: 'Attempt', number: true, cell: (held) => number(held.attempt) },
    { name: 'Held since', cell: (held) => html`<${Time} at=${held.leased_at_ms} />` },
    { name: 'Lease ends', cell: (held) => html`<${Time} at=${held.lease_until_ms} />` },
  ];
  return html`<${Heading} title=${one?.name || parameters.consumer} trail=${[['Consumers', to('consumers')]]}>
      ${one && html`<${Badge} state=${one.state} />`}
      ${one?.state === 'attached' && html`<${Detach} consumer=${one} url=${url} onDone=${state.reload} />`}
    </${Heading}>
    <${Loaded} state=${state}>${(data) => html`
      <${Card}><${Facts} rows=${[
        ['queues', data.queues?.join(', ')],
        ['credit', data.credit],
        ['holds', number(data.in_flight)],
        ['lease', data.lease_ms && duration(data.lease_ms)],
        ['since', html`<${Time} at=${data.since_at_ms} />`],
      ]} /></${Card}>
      <${Card} title="Messages that it holds, longest held first">
        ${data.holds.length ? html`<${Table} label="Held messages" columns=${columns} rows=${data.holds} keyOf=${(held) => held.id} />` : html`<${Empty} title="It holds no message" />`}
      </${Card}>`}
    </${Loaded}>`;
}
