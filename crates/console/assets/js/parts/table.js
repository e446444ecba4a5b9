// The one table of all views, and the links between its pages.

import { html } from '../../vendor/preact.js';
import { useApp } from '../app.js';
import { number } from '../format.js';
import { setSearch } from '../router.js';

/** Arrow keys go from row to row, by the first link or button of each. */
function onKey(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const row = event.target.closest('tr');
  if (!step || !row || event.target.matches('input, select, textarea')) return;
  const next = step > 0 ? row.nextElementSibling : row.previousElementSibling;
  const target = next?.querySelector('a, button, input');
  if (!target) return;
  event.preventDefault();
  target.focus();
}

/**
 * `columns` are `{name, cell(row), number?, wide?, hide?}`: `hide` leaves a column out on narrow screens. The
 * first column is the heading of its row.
 */
export function Table({ label, columns, rows, keyOf, live }) {
  const shown = columns.filter(Boolean);
  const kind = (column) => [column.number && 'number', column.hide && 'hide', column.wide && 'wide-cell'].filter(Boolean).join(' ');
  return html`<div class="table-box" role="region" aria-label=${label} tabindex="0">
    <table onKeyDown=${onKey} aria-live=${live ? 'off' : undefined}>
      <caption class="hidden">${label}</caption>
      <thead><tr>${shown.map((column) => html`<th scope="col" class=${kind(column)}>${column.name}</th>`)}</tr></thead>
      <tbody>
        ${rows.map(
          (row) => html`<tr key=${keyOf(row)}>
            ${shown.map((column, at) =>
              at === 0
                ? html`<th scope="row" class=${kind(column)}>${column.cell(row)}</th>`
                : html`<td class=${kind(column)}>${column.cell(row)}</td>`,
            )}
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

/** Links to the first and the next page; `name` is the parameter of the address that holds the place. */
export function Pages({ next, name = 'after' }) {
  const { search } = useApp();
  const at = search[name];
  if (!next && !at) return null;
  return html`<nav class="pages" aria-label="Pages">
    <button type="button" disabled=${!at} onClick=${() => setSearch({ [name]: undefined })}>First page</button>
    <button type="button" disabled=${!at} onClick=${() => history.back()}>Back</button>
    <button type="button" disabled=${!next} onClick=${() => setSearch({ [name]: next })}>Next page</button>
  </nav>`;
}

/** How far a look through pages has come, with a button that goes on. */
export function ScanState({ scan, what }) {
  const count = number(scan.scanned) + (scan.total && !scan.index ? ` of ${number(scan.total)}` : '');
  const by = scan.index ? `, by the index of ${scan.index}` : '';
  if (scan.running) return html`<p class="muted" role="status">Looking: ${count} ${what} so far…</p>`;
  return html`<p class="muted" role="status">
    Looked at ${count} ${what}${by}.${' '}
    ${scan.next && html`<button type="button" class="link" onClick=${scan.more}>Look further</button>`}
  </p>`;
}
