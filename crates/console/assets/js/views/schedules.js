// Schedules with their next time.

import { Badge, Empty, Heading, Loaded, Pages, Table, Time, api, duration, html, number, useGet, useHere } from '../kit.js';

export const timesOf = (schedule) => (schedule.cron ? `${schedule.cron} ${schedule.time_zone ?? 'UTC'}` : `every ${duration(schedule.every_ms)}`);

export default function Schedules() {
  const { p, to, search, can } = useHere();
  const { after } = search;
  const state = useGet(`${p}/schedules${api.query({ after, limit: 50 })}`, { every: 3000 });
  const columns = [
    { name: 'Schedule', cell: (one) => html`<a href=${to('schedule', { schedule: one.name })}>${one.name}</a>` },
    { name: 'Times', cell: (one) => html`<span class="mono">${timesOf(one)}</span>` },
    { name: 'Next', cell: (one) => (one.paused ? html`<${Badge} state="paused" tone="warn" />` : html`<${Time} at=${one.next_at_ms} />`) },
    { name: 'Queue', hide: true, cell: (one) => html`<a href=${to('queue', { queue: one.queue })}>${one.queue}</a>` },
    { name: 'Fired', number: true, hide: true, cell: (one) => number(one.fired) },
    { name: 'Refused', number: true, hide: true, cell: (one) => number(one.refused) },
    { name: 'Last error', hide: true, cell: (one) => one.last_error && html`<code class="bad-text">${one.last_error}</code>` },
  ];
  return html`<${Heading} title="Schedules" note="A schedule sends a message at times of day or at an interval.">
      ${can('operate') && can('send', {}) && html`<a class="button primary" href=${to('schedule-new')}>New schedule</a>`}
    </${Heading}>
    <${Loaded} state=${state}>${({ schedules, next }) =>
      schedules.length
        ? html`<${Table} label="Schedules" columns=${columns} rows=${schedules} keyOf=${(one) => one.name} /><${Pages} next=${next} />`
        : html`<${Empty} title="No schedule yet" command="sluice schedule set daily reports hello --cron '0 9 * * MON-FRI'" />`}
    </${Loaded}>`;
}
