// Limits, and how many messages each holds back.

import { Empty, Heading, Loaded, Pages, Table, Time, api, html, number, useGet, useHere } from '../kit.js';
import { SetLimit, rateText } from '../parts/limit_form.js';

export default function Limits() {
  const { p, to, search } = useHere();
  const { after } = search;
  const state = useGet(`${p}/limits${api.query({ after, limit: 50 })}`, { every: 2000 });
  const columns = [
    { name: 'Limit', cell: (one) => html`<a href=${to('limit', { limit: one.name })}>${one.name}</a>` },
    { name: 'In flight', number: true, cell: (one) => `${number(one.in_flight)}${one.settings.in_flight ? ` of ${number(one.settings.in_flight)}` : ''}` },
    { name: 'Spent', number: true, hide: true, cell: (one) => (one.settings.rate ? `${number(one.spent ?? 0)} of ${number(one.settings.rate.burst ?? one.settings.rate.count)}` : '–') },
    { name: 'Waiting', number: true, cell: (one) => (one.waiting ? html`<b class="warn-text">${number(one.waiting)}</b>` : '0') },
    { name: 'Per key', number: true, hide: true, cell: (one) => number(one.settings.in_flight_per_key) },
    { name: 'Rate', hide: true, cell: (one) => rateText(one.settings.rate) ?? '–' },
    { name: 'Rate per key', hide: true, cell: (one) => rateText(one.settings.rate_per_key) ?? '–' },
    { name: 'Next delivery', hide: true, cell: (one) => html`<${Time} at=${one.next_at_ms} />` },
    { name: 'Queues', hide: true, cell: (one) => one.queues.slice(0, 5).join(', ') + (one.queues.length > 5 ? ` and ${one.queues.length - 5} more` : '') },
  ];
  return html`<${Heading} title="Limits" note="A limit bounds how many messages are in flight and how fast they are delivered, for all queues that follow it."><${SetLimit} onDone=${state.reload} /></${Heading}>
    <${Loaded} state=${state}>${({ limits, next }) =>
      limits.length
        ? html`<${Table} label="Limits" columns=${columns} rows=${limits} keyOf=${(one) => one.name} /><${Pages} next=${next} />`
        : html`<${Empty} title="No limit yet" command="sluice limit set smtp --in-flight 100" />`}
    </${Loaded}>`;
}
