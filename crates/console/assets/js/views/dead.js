// The dead letters of a queue, grouped by the text of their last error.

import { Card, Empty, Loaded, Pages, Quick, Table, api, cut, html, number, setSearch, useGet, useHere, useLoad } from '../kit.js';
import { Matching } from '../parts/matching.js';
import { MessageTable } from '../parts/message_table.js';
import { QueueFrame } from '../parts/queue_frame.js';
import { GroupActions, RedriveAll, groupOf } from '../parts/redrive.js';

const TEXT_SHOWN = 300;

/** Groups `{error, messages}`; the one without a text has `null` as its error, and an address of its own. */
const groupsOf = (errors) => [
  ...errors.errors,
  ...(errors.without_text ? [{ error: null, messages: errors.without_text }] : []),
];

const nameOf = (error) => error ?? '(without an error text)';
const addressOf = (error) => ({ error, without_error: error === null || undefined });

function Groups({ errors, queue, onDone }) {
  const columns = [
    { name: 'Error of the last attempt', wide: true, cell: (group) => html`<button type="button" class="link left" onClick=${() => setSearch(addressOf(group.error))}>${cut(nameOf(group.error), TEXT_SHOWN)}</button>` },
    { name: 'Dead letters', number: true, cell: (group) => number(group.messages) },
    { name: 'Actions', cell: (group) => html`<${GroupActions} queue=${queue} error=${group.error} name=${nameOf(group.error)} onDone=${onDone} />` },
  ];
  return html`<${Table} label="Dead letters by error" columns=${columns} rows=${groupsOf(errors)} keyOf=${(group) => JSON.stringify(group.error)} />
    ${errors.with_other_texts > 0 && html`<p class="muted">${number(errors.with_other_texts)} more with other texts.</p>`}
    ${errors.with_damaged_text > 0 && html`<p class="muted">${number(errors.with_damaged_text)} more with texts that the disk has damaged.</p>`}
    ${errors.next && html`<p class="muted">Of the first ${number(errors.scanned)} dead letters.</p>`}`;
}

const InGroup = ({ queue, error }) => html`<${Card} title=${`Dead letters with: ${cut(nameOf(error), 120)}`} actions=${html`<button type="button" onClick=${() => setSearch(addressOf())}>Show all</button>`}>
  <${Matching} queue=${queue} where=${groupOf(error)} label="Dead letters of the group" />
</${Card}>`;

function AllDead({ url, cursor }) {
  const state = useGet(url + api.query({ cursor, limit: 50 }), { every: 10_000 });
  return html`<${Card} title="All dead letters"><${Loaded} state=${state}>${({ messages, next }) => html`
    ${messages.length ? html`<${MessageTable} messages=${messages} label="Dead letters" />` : html`<p class="muted">None on this page.</p>`}
    <${Pages} next=${next} name="cursor" />`}</${Loaded}></${Card}>`;
}

function Redriving({ queue, url, reload }) {
  const { redriving } = queue;
  return redriving && html`<p class="hint-box" role="status">The server redrives at ${redriving.per_second} a second: ${number(redriving.left)} left.${' '}
    <${Quick} label="End the redrive" right="operate" run=${() => api.remove(`${url}/redrive`)} onDone=${reload} /></p>`;
}

async function load(p, url, name, signal) {
  const [queue, errors] = await Promise.all([api.get(p + api.path('queues', name), { signal }), api.get(`${url}/errors`, { signal })]);
  return { queue, errors };
}

export default function Dead() {
  const { p, parameters, search } = useHere();
  const name = parameters.queue;
  const url = `${p}${api.path('queues', name)}/dead`;
  const state = useLoad((signal) => load(p, url, name, signal), [url], { every: 3000 });
  const group = search.without_error ? null : search.error;
  const some = state.data?.queue.counts.dead > 0;
  return html`<${QueueFrame} here="dead" actions=${some && html`<${RedriveAll} url=${url} count=${state.data.queue.counts.dead} onDone=${state.reload} />`}>
    <${Loaded} state=${state}>${({ queue, errors }) =>
      some
        ? html`<${Redriving} queue=${queue} url=${url} reload=${state.reload} />
          <${Card} title="By error"><${Groups} errors=${errors} queue=${name} onDone=${state.reload} /></${Card}>
          ${group === undefined ? html`<${AllDead} key=${state.round} url=${url} cursor=${search.cursor} />` : html`<${InGroup} key=${state.round} queue=${name} error=${group} />`}`
        : html`<${Empty} title="No dead letters in this queue">A message becomes one after its last attempt, or when a consumer rejects it.</${Empty}>`}
    </${Loaded}>
  </${QueueFrame}>`;
}
