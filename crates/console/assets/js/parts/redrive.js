// Redriving and deleting dead letters, at a rate too, by the server; those of one error by a bulk.

import { Action, api, counted, cut, html, readNumber } from '../kit.js';
import { BulkAction, RATE } from './bulk.js';

/** The filter of a group of dead letters; `null`: those without an error text. */
export const groupOf = (error) => ({ '/state': 'dead', '/error': error ?? { exists: false } });

export function GroupActions({ queue, error, name, onDone }) {
  const common = { filter: { queue, where: groupOf(error) }, onDone };
  const about = (what) => html`<pre class="error-text">${cut(name, 600)}</pre><p>Dead letters with this error ${what}.</p>`;
  return html`<div class="actions">
    <${BulkAction} ...${common} verb="retry" label="Redrive" title="Redrive a group" confirm="Redrive" about=${about('become ready again, with attempts counted from 0')} />
    <${BulkAction} ...${common} verb="cancel" label="Delete" title="Delete a group" confirm="Delete" about=${about('are deleted for good')} />
  </div>`;
}

export function RedriveAll({ url, count, onDone }) {
  const body = () => html`<p>All <span class="preview-count">${counted(count, 'dead letter')}</span> of the queue become ready again, oldest first, with attempts counted from 0.
    With a rate the server goes on by itself, also when this page is closed.</p>`;
  const run = async ({ per_second: text }) => {
    const rate = readNumber('per_second', text);
    const { redriven } = await api.post(`${url}/redrive`, { all: true, per_second: rate });
    return `${counted(redriven, 'dead letter')} ${rate ? `will be redriven at ${rate} a second` : 'redriven'}.`;
  };
  return html`<${Action} label="Redrive all" right=${['operate', 'send']} kind="primary" title="Redrive all dead letters" fields=${[RATE]} initial=${{ per_second: '' }} body=${body} run=${run} onDone=${onDone} />`;
}
