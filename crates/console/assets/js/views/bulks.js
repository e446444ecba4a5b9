// Bulks that run or have ended within the last hour.

import { html } from '../../vendor/preact.js';
import * as api from '../api.js';
import { useHere, useLoad } from '../app.js';
import { number } from '../format.js';
import { Badge, Empty, Heading, Loaded, Time } from '../parts/basics.js';
import { filterText } from '../parts/bulk.js';
import { Quick } from '../parts/dialog.js';
import { Table } from '../parts/table.js';

export default function Bulks() {
  const { p } = useHere();
  const state = useLoad((signal) => api.get(`${p}/bulk`, { signal }), [p], { every: 1000 });
  const columns = [
    { name: 'Action', cell: (bulk) => `${bulk.action}${bulk.to ? ` to ${bulk.to}` : ''}${bulk.dry_run ? ' (count only)' : ''}` },
    { name: 'State', cell: (bulk) => html`<${Badge} state=${bulk.state} />` },
    { name: 'Filter', wide: true, cell: (bulk) => filterText(bulk.filter) },
    { name: 'Looked at', number: true, hide: true, cell: (bulk) => `${number(bulk.scanned)} of ${number(bulk.total)}` },
    { name: 'Changed', number: true, cell: (bulk) => number(bulk.changed) },
    { name: 'Skipped', number: true, hide: true, cell: (bulk) => number(bulk.skipped) },
    { name: 'Begun', hide: true, cell: (bulk) => html`<${Time} at=${bulk.started_at_ms} />` },
    { name: 'Actions', cell: (bulk) => bulk.state === 'running' && html`<${Quick} label="Stop" right="operate" run=${() => api.remove(`${p}/bulk/${bulk.bulk}`)} onDone=${state.reload} />` },
  ];
  return html`<${Heading} title="Bulks" note="Changes to all messages of a queue that match a filter. An ended bulk is remembered for an hour." />
    <${Loaded} state=${state}>${({ bulks }) =>
      bulks.length
        ? html`<${Table} label="Bulks" columns=${columns} rows=${[...bulks].reverse()} keyOf=${(bulk) => bulk.bulk} />`
        : html`<${Empty} title="No bulk has run" command="sluice bulk --help">Begin one in the list of a queue's messages.</${Empty}>`}
    </${Loaded}>`;
}
