// The table of messages.

import { Badge, Table, Time, bytes, cut, html, lastError, useHere } from '../kit.js';

const ERROR_SHOWN = 160;

const what = (message) => lastError(message) || message.reason || (message.blocked_by && `by ${message.blocked_by.replace('_', ' ')}`) || message.holder?.name || '';

export function MessageTable({ messages, label = 'Messages' }) {
  const { to } = useHere();
  const columns = [
    { name: 'Message', cell: (message) => html`<a class="mono id" href=${to('message', { id: message.id })}>${message.id}</a>` },
    { name: 'State', cell: (message) => html`<${Badge} state=${message.state} />` },
    { name: 'Attempts', number: true, hide: true, cell: (message) => `${message.attempts} of ${message.max_attempts}` },
    { name: 'Sent', hide: true, cell: (message) => html`<${Time} at=${message.sent_at_ms} />` },
    messages.some((message) => message.deadline_ms) && { name: 'Until', hide: true, cell: (message) => html`<${Time} at=${message.deadline_ms} />` },
    { name: 'Why', wide: true, cell: (message) => cut(what(message), ERROR_SHOWN) },
    messages.some((message) => message.tags) && { name: 'Tags', hide: true, cell: (message) => (message.tags ?? []).join(', ') },
    { name: 'Size', number: true, hide: true, cell: (message) => bytes(message.size_bytes) },
  ];
  return html`<${Table} label=${label} columns=${columns} rows=${messages} keyOf=${(message) => message.id} />`;
}
