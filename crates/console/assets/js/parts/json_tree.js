// JSON as a tree of what is written in it: numbers keep their digits, and of names that are there twice both
// are shown.

import { html, useState } from '../kit.js';

/** The place behind a text that begins here, in JSON that is valid. */
function endOfText(json, begin) {
  let at = begin + 1;
  while (json[at] !== '"') at += json[at] === '\\' ? 2 : 1;
  return at + 1;
}

/** `{tree, twice}` of JSON that is valid: what is in it, and whether an object has a name twice. */
export function readTree(json) {
  const root = { entries: [] };
  const within = [root];
  const token = /[[\]{}:"]|[^\s,[\]{}:"]+/g;
  let twice = false;
  let name;
  for (let found = token.exec(json); found; found = token.exec(json)) {
    const [mark] = found;
    const { entries, names } = within.at(-1);
    if (mark === ':') {
      name = JSON.parse(entries.pop()[1].written);
      twice ||= names.has(name);
      names.add(name);
    } else if (mark === ']' || mark === '}') {
      within.pop();
    } else {
      if (mark === '"') token.lastIndex = endOfText(json, found.index);
      const node = { written: json.slice(found.index, token.lastIndex) };
      entries.push([name ?? entries.length, node]);
      name = undefined;
      if (mark === '[' || mark === '{') within.push(Object.assign(node, { entries: [], names: new Set() }));
    }
  }
  return { tree: root.entries[0][1], twice };
}

const ITEMS_SHOWN = 200;
const ROWS_OPEN = 500;
const LEVELS_OPEN = 3;
const LEVELS_MAX = 20;

function Leaf({ written }) {
  if (written[0] === '"') return html`<span class="good-text">${JSON.stringify(JSON.parse(written))}</span>`;
  return html`<span class=${/^[tfn]/.test(written) ? '' : 'warn-text'}>${written}</span>`;
}

/** What is in an array or object, if it is open; at first it is where few rows are. */
function Branch({ label, brackets, entries, depth, room }) {
  const [open, setOpen] = useState(!depth || (depth < LEVELS_OPEN && entries.length <= room));
  const [count, setCount] = useState(ITEMS_SHOWN);
  const left = entries.length - count;
  return html`<details class="json" open=${open} onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary>${label}<span class="muted">${brackets[0]}${entries.length}${brackets[1]}</span></summary>
    ${open && entries.slice(0, count).map(([name, node]) => html`<${Tree} name=${name} node=${node} depth=${depth + 1} room=${room / entries.length} />`)}
    ${open && left > 0 && html`<button type="button" class="link" onClick=${() => setCount(count + ITEMS_SHOWN)}>Show more of the other ${left}</button>`}
  </details>`;
}

export function Tree({ name, node, depth = 0, room = ROWS_OPEN }) {
  const { written, entries } = node;
  const label = name === undefined ? '' : html`<span class="json-name">${name}</span>: `;
  const brackets = written === '[' ? '[]' : '{}';
  if (entries?.length && depth < LEVELS_MAX) return html`<${Branch} ...${{ label, brackets, entries, depth, room }} />`;
  const row = !entries ? html`<${Leaf} written=${written} />` : entries.length ? html`<span class="muted">what is deeper is in Text only</span>` : brackets;
  return html`<div class="json-row">${label}${row}</div>`;
}
