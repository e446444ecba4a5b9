// The state of the namespace and its server on one page: what flows, what waits, what needs a person.

import { Card, Empty, Facts, Figure, Heading, Loaded, Problem, Table, api, bytes, counted, duration, html, number, useHere, useLoad, useStatistics } from '../kit.js';
import { StatisticsCharts } from '../parts/statistics.js';
import { SERVER } from '../rights.js';
import { latencies } from '../parts/latency.js';

const EVERY_MS = 5000;

async function load({ p, can }, signal) {
  const options = { signal };
  const server = can('observe', SERVER);
  const [status, cluster, schedules, doubt] = await Promise.all([
    server ? api.getOr(null, '/v1/status', options) : null,
    server ? api.getOr(null, '/v1/cluster/status', options) : null,
    api.getOr({ schedules: [] }, `${p}/schedules?limit=100`, options),
    api.getOr({ transactions: [] }, `${p}/in-doubt-transactions?limit=10`, options),
  ]);
  return { status, cluster, schedules: schedules.schedules, doubt: doubt.transactions };
}

const sumOf = (shards, name) => shards.reduce((sum, shard) => sum + shard[name], 0);

function diskProblems(shards) {
  const problems = [];
  if (shards.some((shard) => shard.disk_full)) problems.push('The disk is full: sends are refused until messages are settled.');
  else if (shards.some((shard) => shard.disk_low)) problems.push('The disk is nearly full.');
  const damaged = sumOf(shards, 'damaged_blobs');
  if (damaged) problems.push(`${counted(damaged, 'payload')} could not be read back from the disk.`);
  return problems;
}

/** What needs a person: `[tone, text, address?, link?]`, worst first. */
function attention({ status, cluster, schedules, doubt }, counts, to) {
  const refused = schedules.filter((schedule) => schedule.last_error);
  return [
    ...(cluster?.problems ?? []).map((text) => ['bad', text, to('nodes'), 'Nodes']),
    ...diskProblems(status?.shards ?? []).map((text) => ['bad', text, to('nodes'), 'Shards']),
    doubt.length && ['bad', `${counted(doubt.length, 'transaction')} in doubt`, to('transactions'), 'Look'],
    counts?.dead && ['bad', `${counted(counts.dead, 'dead letter')}: retry, change or delete`, to('dead-letters'), 'Group by error'],
    counts?.held && ['warn', `${counted(counts.held, 'held message')}: approve or deny`, to('queues', {}, { show: 'held' }), 'Show queues'],
    ...refused.map(({ name, last_error: code }) => ['warn', `Schedule ${name} was refused: ${code}`, to('schedule', { schedule: name }), 'Show']),
  ].filter(Boolean);
}

function Attention({ entries }) {
  if (!entries.length) return html`<p class="good-text">Nothing waits for a person.</p>`;
  return html`<ul class="attention">${entries.map(([tone, text, address, link]) => html`<li>
    <span class=${`badge ${tone}`}>${tone === 'bad' ? 'act' : 'check'}</span><span>${text}</span><a href=${address}>${link}</a></li>`)}</ul>`;
}

function Backlog({ sample, to }) {
  const { counts } = sample;
  const show = (state) => to('queues', {}, { show: state });
  return html`<div class="figures">
    <${Figure} name="Queues" value=${number(sample.queues)} to=${to('queues')} />
    <${Figure} name="Ready" value=${number(counts.ready)} to=${show('ready')} />
    <${Figure} name="Oldest ready" value=${counts.ready ? duration(sample.oldest_ready_age_ms) : '–'} />
    <${Figure} name="Leased" value=${number(counts.leased)} to=${to('consumers')} />
    <${Figure} name="Delayed" value=${number(counts.delayed)} to=${show('delayed')} />
    <${Figure} name="Blocked" value=${number(counts.blocked)} to=${show('blocked')} />
    <${Figure} name="Held" value=${number(counts.held)} tone=${counts.held ? 'warn' : ''} to=${show('held')} />
    <${Figure} name="Dead letters" value=${number(counts.dead)} tone=${counts.dead ? 'bad' : ''} to=${to('dead-letters')} />
    <${Figure} name="Payloads" value=${bytes(sample.bytes)} />
  </div>`;
}

const LATENCY_COLUMNS = [
  { name: 'Call', cell: (row) => row.route },
  { name: 'Requests', number: true, hide: true, cell: (row) => number(row.count) },
  { name: 'Half within', number: true, cell: (row) => row.p50 },
  { name: '99 % within', number: true, cell: (row) => row.p99 },
];

function Latency() {
  const state = useLoad((signal) => api.getText('/metrics', { signal }).then(latencies), [], { every: EVERY_MS });
  return html`<${Card} title="Latency since the start">
    <${Loaded} state=${state}>${(rows) =>
      rows.length
        ? html`<${Table} label="Latency of calls" columns=${LATENCY_COLUMNS} rows=${rows} keyOf=${(row) => row.route} />`
        : html`<p class="muted">No calls have been measured yet.</p>`}
    </${Loaded}>
  </${Card}>`;
}

function Server({ status, cluster, to }) {
  if (!status) return html`<${Card} title="Server"><p class="muted">Your rights do not include the state of the server.</p></${Card}>`;
  const { shards } = status;
  const onDisk = sumOf(shards, 'disk_bytes');
  const health = !cluster ? 'one server' : cluster.healthy ? 'healthy' : counted(cluster.problems.length, 'problem');
  return html`<${Card} title="Server" actions=${html`<a href=${to('nodes')}>Nodes and shards</a>`}>
    <${Facts} rows=${[
      ['Cluster', html`<span class=${cluster && !cluster.healthy ? 'bad-text' : ''}>${health}</span>`],
      ['Nodes that may fail', cluster?.tolerates],
      ['Durability', status.durability],
      ['On disk', status.durability === 'memory' ? 'nothing' : bytes(onDisk)],
      ['Disk free', status.durability === 'memory' ? undefined : bytes(Math.min(...shards.map((shard) => shard.disk_free_bytes)))],
      ['Waiting receives', number(sumOf(shards, 'waiting_receives'))],
      ['Up for', duration(status.uptime_ms)],
      ['Version', status.version],
    ]} />
  </${Card}>`;
}

export default function Overview() {
  const here = useHere();
  const { to } = here;
  const { samples, error } = useStatistics(here.p);
  const state = useLoad((signal) => load(here, signal), [here.p], { every: EVERY_MS });
  const last = samples.at(-1);
  const data = state.data ?? { schedules: [], doubt: [] };
  return html`<${Heading} title="Overview" />
    <${Problem} error=${state.error ?? error} retry=${state.reload} />
    ${last && html`<${Backlog} sample=${last} to=${to} />`}
    ${last?.queues === 0 && html`<${Empty} title="No queue yet" command="sluice send emails hello">A queue is created by its first message.</${Empty}>`}
    <${Card} title="Needs a person">${state.data || last ? html`<${Attention} entries=${attention(data, last?.counts, to)} />` : html`<p class="muted">Looking…</p>`}</${Card}>
    <${StatisticsCharts} samples=${samples} />
    <div class="grid">
      <${Server} ...${data} to=${to} />
      ${here.can('observe', SERVER) && html`<${Latency} />`}
    </div>`;
}
