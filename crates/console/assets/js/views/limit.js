// One limit: who waits for what, and why.

import { Action, Card, Facts, Field, Heading, Loaded, Pages, Table, Time, api, counted, go, html, number, setSearch, useGet, useHere } from '../kit.js';
import { SetLimit, rateText } from '../parts/limit_form.js';

const ONLY_WAITING = { name: 'waiting', label: 'Only keys with messages that wait', type: 'checkbox' };

/** What is spent of the burst of a rate, and debt apart. */
function Spent({ spent = 0, rate }) {
  const burst = rate.burst ?? rate.count;
  const text = `${number(Math.min(spent, burst))} of ${number(burst)}`;
  return spent > burst ? html`${text}, <b class="warn-text">${number(spent - burst)} of debt</b>` : text;
}

/** Why the limit as a whole, or a key of it, delivers nothing now. */
function reasons({ in_flight: used, next_at_ms: next }, most, rate) {
  return [
    most && used >= most && `all ${number(most)} places in flight are taken`,
    next && html`the rate of ${rateText(rate)} is used up until <${Time} at=${next} />`,
  ].filter(Boolean);
}

const Because = ({ list }) => list.map((reason, at) => html`${at ? ', and ' : ''}${reason}`);

/** Why messages of a key wait: what is used up, or those before them. */
function WhyKey({ limit, list }) {
  if (list.length) return html`<${Because} list=${list} />`;
  return html`<span class="muted">${limit.waiting ? 'a message before them is ready and not received yet' : 'it has room'}</span>`;
}

function Why({ limit }) {
  const { settings, waiting } = limit;
  if (!waiting) return html`<p class="good-text">Nothing waits for this limit.</p>`;
  const list = reasons(limit, settings.in_flight, settings.rate);
  return html`<p><b>${counted(waiting, 'message')}</b> wait${list.length ? html`, because <${Because} list=${list} />` : ' for their keys, below'}.</p>`;
}

function Keys({ limit }) {
  const { settings } = limit;
  const columns = [
    { name: 'Key', cell: (key) => html`<span class="mono">${key.key}</span>` },
    { name: 'In flight', number: true, cell: (key) => `${number(key.in_flight)}${settings.in_flight_per_key ? ` of ${number(settings.in_flight_per_key)}` : ''}` },
    settings.rate_per_key && { name: 'Spent', number: true, cell: (key) => html`<${Spent} spent=${key.spent} rate=${settings.rate_per_key} />` },
    { name: 'Waiting', number: true, cell: (key) => number(key.waiting) },
    { name: 'Why', wide: true, cell: (key) => html`<${WhyKey} limit=${key} list=${reasons(key, settings.in_flight_per_key, settings.rate_per_key)} />` },
  ].filter(Boolean);
  return limit.keys.length
    ? html`<${Table} label="Keys" columns=${columns} rows=${limit.keys} keyOf=${(key) => key.key} />`
    : html`<p class="muted">No key on this page.</p>`;
}

const Settings = ({ limit, to }) => html`<${Facts} rows=${[
  ['in flight', `${number(limit.in_flight)} of ${limit.settings.in_flight ? number(limit.settings.in_flight) : 'any number'}`],
  ['in flight per key', limit.settings.in_flight_per_key && number(limit.settings.in_flight_per_key)],
  ['rate', rateText(limit.settings.rate)],
  ['spent', limit.settings.rate && html`<${Spent} spent=${limit.spent} rate=${limit.settings.rate} />`],
  ['rate per key', rateText(limit.settings.rate_per_key)],
  ['queues', limit.queues.length ? limit.queues.map((name, at) => html`${at ? ', ' : ''}<a href=${to('queue', { queue: name })}>${name}</a>`) : 'none follows it'],
]} />`;

export default function Limit() {
  const { p, to, parameters, search } = useHere();
  const name = parameters.limit;
  const url = p + api.path('limits', name);
  const waiting = search.waiting === 'true';
  const state = useGet(url + api.query({ waiting, cursor: search.cursor, limit: 100 }), { every: 2000 });
  const remove = async () => {
    await api.remove(url);
    go(to('limits'));
  };
  return html`<${Heading} title=${name} trail=${[['Limits', to('limits')]]}>
      ${state.data && html`<${SetLimit} limit=${state.data} onDone=${state.reload} />
        <${Action} label="Delete" right="operate" danger title=${`Delete ${name}`} run=${remove} body=${() => html`<p>A limit can be deleted when no queue follows it.</p>`} />`}
    </${Heading}>
    <${Loaded} state=${state}>${(limit) => html`
      <${Card}><${Settings} limit=${limit} to=${to} /></${Card}>
      <${Card} title="Who waits, and why"><${Why} limit=${limit} /></${Card}>
      <${Card} title="Keys" actions=${html`<${Field} field=${ONLY_WAITING} value=${waiting} onInput=${(on) => setSearch({ waiting: on ? 'true' : undefined, cursor: undefined }, { replace: true })} />`}><${Keys} limit=${limit} /></${Card}>
      <${Pages} next=${limit.next} name="cursor" />`}
    </${Loaded}>`;
}
