// The table of queues, with the figures that matter while it is watched.

import { QueueFlags, Table, bytes, duration, html, number, rate, useHere, useRef } from '../kit.js';

const quiet = (value) => (value ? number(value) : html`<span class="zero">0</span>`);

/** Messages per second of each queue since the rows before. */
function useRates(queues) {
  const before = useRef({ at: 0, totals: new Map(), rates: new Map(), queues: null });
  if (before.current.queues === queues) return before.current.rates;
  const now = Date.now();
  const seconds = (now - before.current.at) / 1000;
  const rates = new Map();
  for (const { name, totals } of queues) {
    const past = before.current.totals.get(name);
    if (past) rates.set(name, { sent: (totals.sent - past.sent) / seconds, acked: (totals.acked - past.acked) / seconds });
  }
  before.current = { at: now, totals: new Map(queues.map(({ name, totals }) => [name, totals])), rates, queues };
  return rates;
}

const states = ['ready', 'leased', 'delayed', 'blocked', 'held', 'dead'];

export function QueueTable({ queues }) {
  const { to } = useHere();
  const rates = useRates(queues);
  const speed = (name) => (queue) => rate(rates.get(queue.name)?.[name] ?? NaN);
  const open = (queue, state) => to(state === 'dead' ? 'dead' : 'messages', { queue: queue.name }, state === 'dead' ? {} : { state });
  const columns = [
    { name: 'Queue', cell: (queue) => html`<a href=${to('queue', { queue: queue.name })}>${queue.name}</a> <${QueueFlags} settings=${queue.settings} />` },
    ...states.map((state) => ({
      name: state,
      number: true,
      hide: !['ready', 'dead'].includes(state),
      cell: (queue) => {
        const count = queue.counts[state];
        return count ? html`<a class=${state === 'dead' ? 'bad-text' : ''} href=${open(queue, state)}>${number(count)}</a>` : quiet(0);
      },
    })),
    { name: 'oldest ready', number: true, cell: (queue) => duration(queue.oldest_ready_age_ms) },
    { name: 'sent/s', number: true, hide: true, cell: speed('sent') },
    { name: 'acked/s', number: true, hide: true, cell: speed('acked') },
    { name: 'size', number: true, hide: true, cell: (queue) => bytes(queue.bytes) },
  ];
  return html`<${Table} label="Queues" columns=${columns} rows=${queues} keyOf=${(queue) => queue.name} />`;
}
