// What happens to messages, as it happens: at most 100 rows a second are shown, the rest is counted.

import { Badge, Empty, Field, Heading, Problem, Table, absolute, api, counted, html, number, setSearch, useEffect, useHere, useRef, useState } from '../kit.js';

const ROWS_PER_SECOND = 100;
const ROWS_KEPT = 500;
const DRAW_MS = 250;

const TYPES = ['sent', 'delayed', 'due', 'delivered', 'acked', 'nacked', 'released', 'rejected', 'expired', 'died', 'redriven', 'retried', 'held', 'approved', 'changed', 'moved', 'cancelled', 'dropped'];
const TONES = { acked: 'good', nacked: 'bad', rejected: 'bad', expired: 'bad', died: 'bad', held: 'warn', gap: 'warn' };

const QUEUE = { name: 'queue', label: 'Queues (* is any text)', type: 'search' };
const TYPE = { name: 'type', label: 'Type', type: 'select', options: [['', 'all types'], ...TYPES.map((type) => [type, type])] };

/** Rows that a reader can follow: those above the rate are counted, not kept. */
class Rows {
  list = [];
  seen = 0;
  left = 0;
  second = 0;
  inSecond = 0;

  add(event) {
    const second = Math.floor(Date.now() / 1000);
    if (second !== this.second) [this.second, this.inSecond] = [second, 0];
    this.seen += 1;
    this.inSecond += 1;
    if (this.inSecond > ROWS_PER_SECOND && event.type !== 'gap') this.left += 1;
    else this.list = [{ ...event, row: this.seen }, ...this.list.slice(0, ROWS_KEPT - 1)];
  }
}

function useEvents(url, paused) {
  const rows = useRef(new Rows());
  const [, draw] = useState(0);
  const [error, setError] = useState(null);
  useEffect(() => {
    rows.current = new Rows();
    draw((n) => n + 1);
  }, [url]);
  useEffect(() => {
    if (paused) return undefined;
    const close = api.stream(url, (_, event) => rows.current.add(event), setError);
    const timer = setInterval(() => draw((n) => n + 1), DRAW_MS);
    return () => (close(), clearInterval(timer));
  }, [url, paused]);
  return { rows: rows.current, error };
}

function detailOf(event) {
  if (event.type === 'gap') return `${event.lost === undefined ? 'an unknown number of' : number(event.lost)} events missed: ${event.reason}`;
  return [
    event.attempt && `attempt ${event.attempt}`,
    event.reason,
    event.consumer && `to ${event.consumer}`,
    event.from_queue && `from ${event.from_queue}`,
    event.messages && counted(event.messages, 'message'),
    event.ready_at_ms && `ready at ${absolute(event.ready_at_ms)}`,
  ].filter(Boolean).join(', ');
}

export default function Events() {
  const { p, to, search } = useHere();
  const { queue = '', type = '' } = search;
  const [paused, setPaused] = useState(false);
  const { rows, error } = useEvents(`${p}/events${api.query({ queue, types: type })}`, paused);
  const set = (name) => (value) => setSearch({ [name]: value }, { replace: true });
  const columns = [
    { name: 'Time', cell: (event) => html`<span class="mono">${event.at_ms ? absolute(event.at_ms).slice(11) : ''}</span>` },
    { name: 'Type', cell: (event) => html`<${Badge} state=${event.type} tone=${TONES[event.type] ?? 'calm'} />` },
    { name: 'Queue', cell: (event) => event.queue && html`<a href=${to('queue', { queue: event.queue })}>${event.queue}</a>` },
    { name: 'Message', hide: true, cell: (event) => event.id && html`<a class="mono" href=${to('message', { id: event.id })}>${event.id}</a>` },
    { name: 'Details', wide: true, cell: detailOf },
  ];
  return html`<${Heading} title="Live events" note="Reading events changes nothing. The latest stands first."><button type="button" onClick=${() => setPaused(!paused)}>${paused ? 'Continue' : 'Pause'}</button></${Heading}>
    <div class="toolbar ends"><${Field} field=${QUEUE} value=${queue} onInput=${set('queue')} /><${Field} field=${TYPE} value=${type} onInput=${set('type')} /></div>
    <${Problem} error=${error} />
    <p class="muted">${counted(rows.seen, 'event')}${rows.left ? `, ${number(rows.left)} of them not shown: more than ${ROWS_PER_SECOND} came within a second` : ''}${paused ? '. Paused' : ''}</p>
    ${rows.list.length
      ? html`<${Table} label="Events" columns=${columns} rows=${rows.list} keyOf=${(event) => event.row} live />`
      : html`<${Empty} title="Waiting for events" command="sluice send emails hello" />`}`;
}
