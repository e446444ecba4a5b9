// Who has changed what, the oldest entry first.

import { Badge, Empty, Heading, Instant, Loaded, Pages, Table, api, html, useGet, useHere } from '../kit.js';

const toneOf = (outcome) => (/^2|committed|ok/.test(String(outcome)) ? 'good' : 'warn');

const COLUMNS = [
  { name: 'Time', cell: (entry) => html`<${Instant} at=${entry.at_ms} />` },
  { name: 'Who', cell: (entry) => html`${entry.who} <span class="muted">${entry.proof ?? ''}</span>` },
  { name: 'Operation', cell: (entry) => html`<code>${entry.operation}</code>${entry.count ? ` × ${entry.count}` : ''}` },
  { name: 'Target', wide: true, hide: true, cell: (entry) => html`<span class="mono">${entry.target}${entry.details && ` ${JSON.stringify(entry.details)}`}</span>` },
  { name: 'Outcome', cell: (entry) => html`<${Badge} state=${String(entry.outcome)} tone=${toneOf(entry.outcome)} />` },
  { name: 'Address', hide: true, cell: (entry) => entry.address },
];

export default function Audit() {
  const { search } = useHere();
  const { cursor } = search;
  const state = useGet(`/v1/admin/audit${api.query({ cursor, limit: 100 })}`);
  return html`<${Heading} title="Audit log" note="Every change of namespaces, tokens, policy, queues, limits, schedules and waiting messages, and refusals. The oldest entry stands first." />
    <${Loaded} state=${state}>${({ entries, next }) => html`
      ${entries.length
        ? html`<${Table} label="Audit log" columns=${COLUMNS} rows=${entries.map((entry, at) => ({ ...entry, at }))} keyOf=${(entry) => entry.at} />`
        : html`<${Empty} title="No entry yet" command="sluice token create admin --scope '*=admin'">The server writes the log once callers must authenticate.</${Empty}>`}
      <${Pages} next=${next} name="cursor" />`}
    </${Loaded}>`;
}
