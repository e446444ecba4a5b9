// The messages of a queue that match a filter, found by the server's search.

import { Empty, Problem, ScanState, api, html, useHere, useScan } from '../kit.js';
import { MessageTable } from './message_table.js';

const PAGE = 50;

export function Matching({ queue, where, label }) {
  const { p } = useHere();
  const page = async (cursor, signal) => {
    const got = await api.post(`${p}${api.path('queues', queue)}/search`, { where, cursor, limit: PAGE, payload: true }, { signal });
    return { ...got, rows: got.messages };
  };
  const scan = useScan(page, () => true, [p, queue, where], PAGE);
  return html`<${Problem} error=${scan.error} retry=${scan.restart} />
    ${scan.rows.length > 0 && html`<${MessageTable} messages=${scan.rows} label=${label} />`}
    ${!scan.running && !scan.error && !scan.rows.length && html`<${Empty} title="No message matches" />`}
    <${ScanState} scan=${scan} what="messages" />`;
}
