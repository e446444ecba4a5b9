// One schedule: its next times, what it sends, and its last outcome.

import { Action, Badge, Card, Facts, Heading, Instant, Loaded, Quick, Time, api, go, html, number, useHere, useLoad } from '../kit.js';
import { Payload } from '../parts/payload.js';
import { timesOf } from './schedules.js';

async function load(url, signal) {
  const [schedule, next] = await Promise.all([api.get(url, { signal }), api.getOr({ next_at_ms: [] }, `${url}/next?count=10`, { signal })]);
  return { schedule, times: next.next_at_ms };
}

function Actions({ schedule, url, reload }) {
  const { to, can } = useHere();
  const { name, paused, queue } = schedule;
  const runNow = async () => {
    const { id, duplicate } = await api.post(`${url}/trigger`);
    return html`${duplicate ? 'A message with its unique key is there already: ' : 'Sent as '}<a class="mono" href=${to('message', { id })}>${id}</a>.`;
  };
  const remove = async () => {
    await api.remove(url);
    go(to('schedules'));
  };
  return html`
    ${can('send', { queue }) && html`<${Action} label="Run now" right="operate" kind="primary" title=${`Run ${name} now`} confirm="Send the message"
      body=${() => html`<p>This sends its message to <code>${queue}</code> now. Its times are not changed.</p>`} run=${runNow} onDone=${reload} />`}
    <${Quick} label=${paused ? 'Resume' : 'Pause'} right="operate" run=${() => api.post(`${url}/${paused ? 'resume' : 'pause'}`)} onDone=${reload} />
    ${can('operate') && can('send', {}) && html`<a class="button" href=${to('schedule-edit', { schedule: name })}>Edit</a>`}
    <${Action} label="Delete" right="operate" danger title=${`Delete ${name}`} body=${() => html`<p>Messages that it has sent stay.</p>`} run=${remove} />`;
}

const Outcome = ({ schedule, to }) => html`<${Facts} rows=${[
  ['times', html`<span class="mono">${timesOf(schedule)}</span>`],
  ['missed times', schedule.missed],
  ['queue', html`<a href=${to('queue', { queue: schedule.queue })}>${schedule.queue}</a>`],
  ['fired', number(schedule.fired)],
  ['duplicates', number(schedule.duplicates)],
  ['refused', number(schedule.refused)],
  ['last time', schedule.last_at_ms && html`<${Time} at=${schedule.last_at_ms} />`],
  ['last message', schedule.last_id && html`<a class="mono" href=${to('message', { id: schedule.last_id })}>${schedule.last_id}</a>`],
  ['last error', schedule.last_error && html`<code class="bad-text">${schedule.last_error}</code>`],
]} />`;

const Times = ({ times, paused }) =>
  times.length
    ? html`<ol>${times.map((at) => html`<li><${Instant} at=${at} /> <span class="muted">(<${Time} at=${at} />)</span></li>`)}</ol>`
    : html`<p class="muted">${paused ? 'None while it is paused.' : 'None.'}</p>`;

export default function Schedule() {
  const { p, to, parameters } = useHere();
  const url = p + api.path('schedules', parameters.schedule);
  const state = useLoad((signal) => load(url, signal), [url], { every: 3000 });
  const schedule = state.data?.schedule;
  return html`<${Heading} title=${parameters.schedule} trail=${[['Schedules', to('schedules')]]}>
      ${schedule && html`${schedule.paused && html`<${Badge} state="paused" tone="warn" />`}<${Actions} schedule=${schedule} url=${url} reload=${state.reload} />`}
    </${Heading}>
    <${Loaded} state=${state}>${(data) => html`
      <${Card}><${Outcome} schedule=${data.schedule} to=${to} /></${Card}>
      <div class="grid">
        <${Card} title="Next times"><${Times} times=${data.times} paused=${data.schedule.paused} /></${Card}>
        <${Card} title="Message"><${Payload} text=${data.schedule.message.payload} base64=${data.schedule.message.payload_base64} contentType=${data.schedule.message.content_type} /></${Card}>
      </div>`}
    </${Loaded}>`;
}
