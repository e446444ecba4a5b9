// All queues by name, or those with messages in a state.

import { Action, Empty, Field, Heading, Loaded, Pages, Problem, ScanState, api, go, html, setSearch, useGet, useHere, useScan } from '../kit.js';
import { QueueTable } from '../parts/queue_table.js';

const PAGE = 50;
const SCAN_PAGE = 1000;
const EVERY_MS = 2000;

const SHOW = [
  ['', 'all queues'],
  ['ready', 'with ready messages'],
  ['leased', 'with leased messages'],
  ['delayed', 'with delayed messages'],
  ['blocked', 'with blocked messages'],
  ['held', 'with held messages'],
  ['dead', 'with dead letters'],
  ['paused', 'paused or closed'],
];
const SHOW_FIELD = { name: 'show', label: 'Show', type: 'select', options: SHOW };
const PREFIX_FIELD = { name: 'prefix', label: 'Name begins with', type: 'search' };

const wantedBy = (show) => (queue) =>
  show === 'paused' ? queue.settings.paused || queue.settings.closed : queue.counts[show] > 0;

function ByName({ prefix, after }) {
  const { p } = useHere();
  const state = useGet(`${p}/queues${api.query({ prefix, after, limit: PAGE })}`, { every: EVERY_MS });
  return html`<${Loaded} state=${state}>${({ queues, next }) =>
    queues.length
      ? html`<${QueueTable} queues=${queues} /><${Pages} next=${next} />`
      : html`<${Empty} title=${prefix ? `No queue begins with "${prefix}"` : 'No queue yet'} command="sluice send emails hello">
          A queue is created by its first message, or when its settings are declared.</${Empty}>`}
  </${Loaded}>`;
}

function Wanted({ prefix, show }) {
  const { p } = useHere();
  const page = async (after, signal) => {
    const got = await api.get(`${p}/queues${api.query({ prefix, after, limit: SCAN_PAGE })}`, { signal });
    return { rows: got.queues, next: got.next };
  };
  const scan = useScan(page, wantedBy(show), [p, prefix, show]);
  return html`<${Problem} error=${scan.error} retry=${scan.restart} />
    ${scan.rows.length > 0 && html`<${QueueTable} queues=${scan.rows} />`}
    ${!scan.running && !scan.rows.length && html`<${Empty} title=${`No queue ${SHOW.find(([key]) => key === show)?.[1] ?? show}`} />`}
    <${ScanState} scan=${scan} what="queues" />`;
}

const NAME = { name: 'name', label: 'Name', required: true, hint: '1 to 128 of A-Z a-z 0-9 . _ -' };

export default function Queues() {
  const { p, to, search } = useHere();
  const { prefix = '', show = '', after } = search;
  const set = (changes) => setSearch({ ...changes, after: undefined }, { replace: true });
  const create = async ({ name }) => {
    await api.put(p + api.path('queues', name), {});
    go(to('settings', { queue: name }));
  };
  return html`<${Heading} title="Queues"><${Action} label="New queue" right="operate" kind="primary" title="New queue" confirm="Create"
      fields=${[NAME]} initial=${{ name: '' }} run=${create} /></${Heading}>
    <div class="toolbar ends">
      <${Field} field=${PREFIX_FIELD} value=${prefix} onInput=${(value) => set({ prefix: value })} />
      <${Field} field=${SHOW_FIELD} value=${show} onInput=${(value) => set({ show: value })} />
    </div>
    ${show ? html`<${Wanted} prefix=${prefix} show=${show} />` : html`<${ByName} prefix=${prefix} after=${after} />`}`;
}
