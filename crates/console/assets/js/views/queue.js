// One queue: its states, throughput, age, consumers, and what an operator may do with it.

import { Card, Empty, Facts, Figure, Loaded, Problem, QueueFlags, Quick, Time, api, bytes, counted, duration, go, html, number, useHere, useLoad, useStatistics } from '../kit.js';
import { ConsumerTable } from '../parts/consumer_table.js';
import { DeleteQueue, PurgeQueue } from '../parts/queue_actions.js';
import { QueueFrame } from '../parts/queue_frame.js';
import { StatisticsCharts } from '../parts/statistics.js';
import { WHOLE } from '../rights.js';

const EVERY_MS = 2000;
const STATES = ['ready', 'leased', 'delayed', 'blocked', 'held', 'dead', 'done'];
const TONE = { held: 'warn', dead: 'bad' };

/** With the consumers, if the caller may look at the `whole` namespace. */
async function load(p, name, whole, signal) {
  const [queue, consumers] = await Promise.all([
    api.get(p + api.path('queues', name), { signal }),
    whole && api.get(`${p}/consumers?limit=1000`, { signal }),
  ]);
  return { queue, consumers: whole && consumers.consumers.filter((one) => one.queues?.includes(name)) };
}

function blockedNote({ blocked_by: by }) {
  if (!by) return undefined;
  const texts = { ordering_key: 'ordering key', limit: 'limit', parents: 'parents', consumer: 'consumer' };
  return Object.entries(texts).filter(([key]) => by[key]).map(([key, text]) => `${number(by[key])} by ${text}`).join(', ');
}

const States = ({ queue, to }) => html`<div class="figures">
  ${STATES.map((state) => html`<${Figure} name=${state} value=${number(queue.counts[state])}
    tone=${queue.counts[state] ? TONE[state] : ''} note=${state === 'blocked' ? blockedNote(queue) : state === 'ready' && queue.oldest_ready_age_ms !== undefined ? `oldest ${duration(queue.oldest_ready_age_ms)}` : undefined}
    to=${state === 'dead' ? to('dead', { queue: queue.name }) : to('messages', { queue: queue.name }, { state })} />`)}
</div>`;

const Totals = ({ queue }) => html`<${Card} title="Totals since it was created">
  <${Facts} rows=${[
    ...Object.entries(queue.totals).map(([name, value]) => [name.replaceAll('_', ' '), number(value)]),
    ['payloads', bytes(queue.bytes)],
    ['created', html`<${Time} at=${queue.created_at_ms} />`],
  ]} />
</${Card}>`;

function Rules({ queue, to }) {
  const { settings, name } = queue;
  const link = (id, parameter, value) => value && html`<a href=${to(id, { [parameter]: value })}>${value}</a>`;
  return html`<${Card} title="Rules" actions=${html`<a href=${to('settings', { queue: name })}>All settings</a>`}>
    <${Facts} rows=${[
      ['lease', duration(settings.lease_ms)],
      ['attempts', settings.max_attempts],
      ['backoff', `${settings.backoff.kind ?? 'exponential'}, from ${duration(settings.backoff.base_ms)} to ${duration(settings.backoff.cap_ms)}`],
      ['limit', link('limit', 'limit', settings.limit)],
      ['dead letter queue', link('queue', 'queue', settings.dead_letter_queue)],
      ['maximum length', settings.max_messages ? counted(settings.max_messages, 'message') : undefined],
      ['maximum age', settings.max_age_ms ? duration(settings.max_age_ms) : undefined],
      ['placement', settings.placement],
      ['search index', settings.search_index?.replaceAll('_', ' ')],
    ]} />
  </${Card}>`;
}

function Charts({ p, name }) {
  const { samples, error } = useStatistics(p, name);
  return html`<${Problem} error=${error} /><${StatisticsCharts} samples=${samples} />`;
}

const Consumers = ({ consumers, queue }) => html`<${Card} title="Attached consumers">
  ${consumers.length
    ? html`<${ConsumerTable} consumers=${consumers} />`
    : html`<${Empty} title="No consumer is attached to this queue" command=${`sluice work ${queue} -- COMMAND`}>
        Consumers that pull are in the list of <em>Consumers</em> while they hold messages.</${Empty}>`}
</${Card}>`;

function Switches({ queue, p, reload }) {
  const call = (verb) => () => api.post(`${p}${api.path('queues', queue.name)}/${verb}`);
  const { paused, closed } = queue.settings;
  const common = { right: 'operate', onDone: reload };
  return html`
    <${Quick} ...${common} label=${paused ? 'Resume' : 'Pause'} run=${call(paused ? 'resume' : 'pause')} />
    <${Quick} ...${common} label=${closed ? 'Open' : 'Close'} run=${call(closed ? 'open' : 'close')} />`;
}

export default function QueueView() {
  const { p, to, parameters, can } = useHere();
  const name = parameters.queue;
  const whole = can('observe', WHOLE);
  const state = useLoad((signal) => load(p, name, whole, signal), [p, name], { every: EVERY_MS });
  const queue = state.data?.queue;
  const actions = queue && html`<${QueueFlags} settings=${queue.settings} />
    ${can('propose') && html`<a class="button" href=${to('send', {}, { queue: name })}>Send a message</a>`}
    <${Switches} queue=${queue} p=${p} reload=${state.reload} />
    <${PurgeQueue} name=${name} onDone=${state.reload} />
    <${DeleteQueue} name=${name} onDone=${() => go(to('queues'))} />`;
  return html`<${QueueFrame} here="queue" actions=${actions} note=${queue?.settings.description}>
    <${Loaded} state=${state}>${(data) => html`
      ${data.queue.settings.paused && html`<p class="hint-box warn">This queue is paused: it accepts messages and delivers none.</p>`}
      ${data.queue.settings.push_paused && html`<p class="hint-box warn">Its pushes are paused: <a href=${to('pushes', { queue: name })}>see why</a>.</p>`}
      ${data.queue.settings.closed && html`<p class="hint-box warn">This queue is closed: it refuses sends.</p>`}
      <${States} queue=${data.queue} to=${to} />
      ${whole ? html`<${Charts} p=${p} name=${name} />` : html`<p class="muted">Your rights do not include the statistics and consumers of the namespace.</p>`}
      <div class="grid"><${Rules} queue=${data.queue} to=${to} /><${Totals} queue=${data.queue} /></div>
      ${whole && html`<${Consumers} consumers=${data.consumers} queue=${name} />`}`}
    </${Loaded}>
  </${QueueFrame}>`;
}
