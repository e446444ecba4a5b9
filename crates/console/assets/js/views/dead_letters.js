// The queues that have dead letters, most first.

import { Empty, Heading, Problem, ScanState, Table, api, html, number, useHere, useScan } from '../kit.js';

export default function DeadLetters() {
  const { p, to } = useHere();
  const page = async (after, signal) => {
    const got = await api.get(`${p}/queues${api.query({ after, limit: 1000 })}`, { signal });
    return { rows: got.queues, next: got.next };
  };
  const scan = useScan(page, (queue) => queue.counts.dead > 0, [p]);
  const rows = [...scan.rows].sort((a, b) => b.counts.dead - a.counts.dead);
  const columns = [
    { name: 'Queue', cell: (queue) => html`<a href=${to('dead', { queue: queue.name })}>${queue.name}</a>` },
    { name: 'Dead letters', number: true, cell: (queue) => number(queue.counts.dead) },
    { name: 'Died since its creation', number: true, hide: true, cell: (queue) => number(queue.totals.died) },
    { name: 'Redriven', number: true, cell: (queue) => number(queue.totals.redriven) },
    { name: 'Redrive', cell: (queue) => (queue.redriving ? `${number(queue.redriving.left)} left, ${queue.redriving.per_second}/s` : '') },
  ];
  return html`<${Heading} title="Dead letters" note="Messages that are not tried again until somebody decides. Choose a queue to see them by error." />
    <${Problem} error=${scan.error} retry=${scan.restart} />
    ${rows.length > 0 && html`<${Table} label="Queues with dead letters" columns=${columns} rows=${rows} keyOf=${(queue) => queue.name} />`}
    ${!scan.running && !rows.length && html`<${Empty} title="No dead letters">A message becomes one after its last attempt, or when a consumer rejects it.</${Empty}>`}
    <${ScanState} scan=${scan} what="queues" />`;
}
