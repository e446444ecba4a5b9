// Nodes and shards: who leads, who is behind, what is wrong, and what is on the disks.

import { Action, Badge, Card, Empty, Facts, Heading, Loaded, Table, Time, api, bytes, duration, html, number, useLoad } from '../kit.js';

const NODE_COLUMNS = (leads) => [
  { name: 'Node', cell: (node) => node.number },
  { name: 'Address', cell: (node) => html`<span class="mono">${node.address}</span>` },
  { name: 'State', cell: (node) => (node.reached ? html`<${Badge} state="reached" tone="good" />` : html`<${Badge} state="silent" tone="bad" /> ${node.silent_because ?? ''} ${node.silent_ms ? `for ${duration(node.silent_ms)}` : ''}`) },
  { name: 'Leads shards', cell: (node) => (leads.get(node.number) ?? []).join(', ') || '–' },
  { name: 'Version', hide: true, cell: (node) => node.version ?? '–' },
  { name: 'Clock ahead', hide: true, number: true, cell: (node) => (node.clock_ahead_ms === undefined ? '–' : `${node.clock_ahead_ms} ms`) },
  { name: 'Actions', cell: (node) => html`<${TakeOver} node=${node} />` },
];

function TakeOver({ node }) {
  const run = async () => {
    await api.post('/v1/cluster/transfer', { node: node.number });
    return `Node ${node.number} leads all shards.`;
  };
  return node.reached && html`<${Action} label="Let it lead" right="admin" title=${`Let node ${node.number} lead all shards`} confirm="Hand over"
    body=${() => html`<p>Callers notice a short pause. Leaderships are spread evenly again after 30 s.</p>`} run=${run} />`;
}

const FOLLOWER_COLUMNS = [
  { name: 'Shard', cell: (one) => one.shard },
  { name: 'Leader', cell: (one) => (one.leader === undefined ? html`<${Badge} state="none" tone="bad" />` : `node ${one.leader}`) },
  { name: 'Term', number: true, hide: true, cell: (one) => number(one.term) },
  { name: 'Followers', wide: true, cell: (one) => one.followers.map((follower) => html`<div>node ${follower.node}: ${follower.heard ? (follower.records_behind ? `${number(follower.records_behind)} records, ${bytes(follower.bytes_behind)}, ${duration(follower.ms_behind)} behind` : 'up to date') : html`<span class="bad-text">not heard</span>`}${follower.votes ? '' : ', does not vote'}</div>`) },
];

function Cluster({ cluster }) {
  if (!cluster) return html`<${Card} title="Cluster"><${Empty} title="This server belongs to no cluster" command="sluice cluster init">Three machines hold the same data, and one of them may fail.</${Empty}></${Card}>`;
  const leads = new Map();
  for (const { shard, leader } of cluster.shards) leads.set(leader, [...(leads.get(leader) ?? []), shard]);
  return html`<${Card} title="Cluster" actions=${html`<${Badge} state=${cluster.healthy ? 'healthy' : 'problems'} tone=${cluster.healthy ? 'good' : 'bad'} />`}>
      ${cluster.problems.length > 0 && html`<ul class="attention">${cluster.problems.map((text) => html`<li class="bad-text">${text}</li>`)}</ul>`}
      <${Facts} rows=${[['cluster', html`<span class="mono">${cluster.cluster}</span>`], ['this node', cluster.node], ['nodes that may fail now', cluster.tolerates], ['behaviour version', cluster.behaviour]]} />
    </${Card}>
    <${Card} title="Nodes"><${Table} label="Nodes" columns=${NODE_COLUMNS(leads)} rows=${cluster.nodes} keyOf=${(node) => node.number} /></${Card}>
    <${Card} title="Replication"><${Table} label="Replication of shards" columns=${FOLLOWER_COLUMNS} rows=${cluster.shards} keyOf=${(one) => one.shard} /></${Card}>`;
}

const SHARD_COLUMNS = [
  { name: 'Shard', cell: (shard) => html`${shard.shard} ${shard.disk_full ? html`<${Badge} state="disk full" tone="bad" />` : shard.disk_low ? html`<${Badge} state="disk low" tone="warn" />` : ''}` },
  { name: 'Leads', hide: true, cell: (shard) => (shard.leads ? 'yes' : 'no') },
  { name: 'Queues', number: true, cell: (shard) => number(shard.queues) },
  { name: 'Messages', number: true, cell: (shard) => number(Object.values(shard.counts).reduce((sum, count) => sum + count, 0)) },
  { name: 'On disk', number: true, cell: (shard) => bytes(shard.disk_bytes) },
  { name: 'Free', number: true, cell: (shard) => bytes(shard.disk_free_bytes) },
  { name: 'Segments', number: true, hide: true, cell: (shard) => number(shard.segments) },
  { name: 'Records', number: true, hide: true, cell: (shard) => number(shard.records) },
  { name: 'Syncs', number: true, hide: true, cell: (shard) => number(shard.fsyncs) },
  { name: 'Cache', number: true, hide: true, cell: (shard) => bytes(shard.cache_bytes) },
  { name: 'Damaged payloads', number: true, hide: true, cell: (shard) => number(shard.damaged_blobs) },
];

const Server = ({ status }) => html`<${Card} title="The server that answers">
  <${Facts} rows=${[
    ['version', status.version],
    ['durability', status.durability],
    ['ready', status.ready ? 'yes' : html`<span class="bad-text">no</span>`],
    ['started', html`<${Time} at=${status.started_at_ms} />`],
  ]} />
</${Card}>`;

async function load(signal) {
  const [status, cluster] = await Promise.all([api.get('/v1/status', { signal }), api.getOr(null, '/v1/cluster/status', { signal })]);
  return { status, cluster };
}

export default function Nodes() {
  const state = useLoad(load, [], { every: 3000 });
  return html`<${Heading} title="Nodes and shards" />
    <${Loaded} state=${state}>${({ status, cluster }) => html`
      <${Cluster} cluster=${cluster} />
      <${Server} status=${status} />
      <${Card} title="Shards of this server"><${Table} label="Shards" columns=${SHARD_COLUMNS} rows=${status.shards} keyOf=${(shard) => shard.shard} /></${Card}>`}
    </${Loaded}>`;
}
