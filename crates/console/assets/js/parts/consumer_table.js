// The table of consumers.

import { Badge, Table, Time, html, number, useHere } from '../kit.js';

export function ConsumerTable({ consumers }) {
  const { to } = useHere();
  const columns = [
    { name: 'Consumer', cell: (one) => html`<a href=${to('consumer', { consumer: one.id })}>${one.name || `number ${one.id}`}</a>` },
    { name: 'State', cell: (one) => html`<${Badge} state=${one.state} />` },
    { name: 'Holds', number: true, cell: (one) => number(one.in_flight) },
    { name: 'Credit', number: true, hide: true, cell: (one) => number(one.credit) },
    { name: 'Queues', hide: true, cell: (one) => (one.queues ?? []).join(', ') || html`<span class="muted">pulls</span>` },
    { name: 'Oldest held', cell: (one) => html`<${Time} at=${one.oldest_leased_at_ms} />` },
    { name: 'Since', hide: true, cell: (one) => html`<${Time} at=${one.since_at_ms} />` },
  ];
  return html`<${Table} label="Consumers" columns=${columns} rows=${consumers} keyOf=${(one) => one.id} />`;
}
