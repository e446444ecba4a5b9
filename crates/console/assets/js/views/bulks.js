// Bulks that run or have ended within the last hour.

import { Badge, Empty, Heading, Loaded, Quick, Table, Time, api, html, number, useGet, useHere } from '../kit.js';
import { filterText } from '../parts/bulk.js';

export default function Bulks() {
  const { p } = useHere();
  const state = useGet(`${p}/bulk`, { every: 1000 });
  const columns = [
    { name: 'Action', cell: (bulk) => `${bulk.action}${bulk.to ? ` to ${bulk.to}` : ''}${bulk.dry_run ? ' (count only)' : ''}` },
    { name: 'State', cell: (bulk) => html`<${Badge} state=${bulk.state} />` },
    { name: 'Filter', wide: true, cell: (bulk) => filterText(bulk.filter) },
    { name: 'Looked at', number: true, hide: true, cell: (bulk) => `${number(bulk.scanned)} of ${number(bulk.total)}` },
    { name: 'Changed', number: true, cell: (bulk) => number(bulk.changed) },
    { name: 'Skipped', number: true, hide: true, cell: (bulk) => number(bulk.skipped) },
    { name: 'Rate', number: true, hide: true, cell: (bulk) => (bulk.per_second ? `${number(bulk.per_second)}/s` : '–') },
    { name: 'Begun', hide: true, cell: (bulk) => html`<${Time} at=${bulk.started_at_ms} />` },
    { name: 'Actions', cell: (bulk) => bulk.state === 'running' && html`<${Quick} label="Stop" right="operate" at=${bulk.filter} run=${() => api.remove(`${p}/bulk/${bulk.bulk}`)} onDone=${state.reload} />` },
  ];
  return html`<${Heading} title="Bulks" note="Changes to all messages of a queue that match a filter. An ended bulk is remembered for an hour." />
    <${Loaded} state=${state}>${({ bulks }) =>
      bulks.length
        ? html`<${Table} label="Bulks" columns=${columns} rows=${[...bulks].reverse()} keyOf=${(bulk) => bulk.bulk} />`
        : html`<${Empty} title="No bulk has run" command="sluice bulk --help">Begin one in the list of a queue's messages.</${Empty}>`}
    </${Loaded}>`;
}
