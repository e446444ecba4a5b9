// The pushes of a queue to its endpoint: where they go, whether they are paused, and the log of the latest.

import { Badge, Card, Empty, Facts, Instant, Loaded, Quick, Table, api, duration, html, number, useHere, useLoad } from '../kit.js';
import { QueueFrame } from '../parts/queue_frame.js';

const TONES = { acked: 'good', failed: 'bad', delayed: 'warn', gone: 'bad' };

const detailOf = (push) => [push.error, push.delay_ms && `asked to wait ${duration(push.delay_ms)}`, push.unsettled && `not settled: ${push.unsettled}`].filter(Boolean).join('; ');

async function load(url, signal) {
  const [{ settings }, { pushes }] = await Promise.all([api.get(url, { signal }), api.get(`${url}/pushes`, { signal })]);
  return { settings, pushes };
}

const Endpoint = ({ settings }) => html`<${Facts} rows=${[
  ['endpoint', html`<span class="mono">${settings.push_url}</span>`],
  ['signatures', settings.push_secrets?.length ?? 'none'],
  ['at a time', number(settings.push_concurrency ?? 16)],
  ['in a second', settings.push_rate ? number(settings.push_rate) : 'any number'],
  ['time for each', duration(settings.push_timeout_ms ?? 15_000)],
]} />`;

function Log({ pushes }) {
  const { to } = useHere();
  const columns = [
    { name: 'Message', cell: (push) => html`<a class="mono id" href=${to('message', { id: push.id })}>${push.id}</a>` },
    { name: 'Outcome', cell: (push) => html`<${Badge} state=${push.outcome} tone=${TONES[push.outcome]} />` },
    { name: 'Status', number: true, hide: true, cell: (push) => push.status ?? '–' },
    { name: 'Attempt', number: true, hide: true, cell: (push) => number(push.attempt) },
    { name: 'Begun', hide: true, cell: (push) => html`<${Instant} at=${push.at_ms} />` },
    { name: 'Took', number: true, hide: true, cell: (push) => duration(push.took_ms) },
    { name: 'Why', wide: true, cell: detailOf },
  ];
  return pushes.length
    ? html`<${Table} label="Latest pushes" columns=${columns} rows=${pushes} keyOf=${(push) => `${push.id} ${push.attempt} ${push.at_ms}`} />`
    : html`<${Empty} title="Nothing has been pushed">The node that pushes keeps the latest 100, until it starts anew or another one pushes.</${Empty}>`;
}

export default function Pushes() {
  const { p, parameters } = useHere();
  const url = p + api.path('queues', parameters.queue);
  const state = useLoad((signal) => load(url, signal), [url], { every: 2000 });
  const { push_url: endpoint, push_paused: paused = false } = state.data?.settings ?? {};
  const turn = () => api.patch(url, { push_paused: !paused });
  return html`<${QueueFrame} here="pushes" actions=${endpoint && html`<${Quick} label=${paused ? 'Resume pushes' : 'Pause pushes'} right="operate" run=${turn} onDone=${state.reload} />`}>
    <${Loaded} state=${state}>${({ settings, pushes }) =>
      endpoint
        ? html`${paused && html`<p class="hint-box warn">The pushes are paused, by a person or since the endpoint answered 410 (Gone).</p>`}
          <${Card}><${Endpoint} settings=${settings} /></${Card}>
          <${Card} title="Latest pushes"><${Log} pushes=${pushes} /></${Card}>`
        : html`<${Empty} title="This queue pushes nothing" command=${`sluice queue set ${parameters.queue} --push-url URL`}>With an endpoint the server pushes each message there.</${Empty}>`}
    </${Loaded}>
  </${QueueFrame}>`;
}
