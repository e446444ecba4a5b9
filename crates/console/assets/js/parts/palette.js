// The palette: anywhere by a few letters.

import { Dialog, api, go, html, useEffect, useHere, useRef, useState } from '../kit.js';
import { ROUTES } from '../routes.js';

const QUEUES_SHOWN = 8;
const looksLikeMessage = (text) => /^[0-9a-v]{20}$/.test(text);

const viewsFor = (text, { can, to }) =>
  ROUTES.filter((route) => route.group !== undefined && can(route.right, route.at ?? {}))
    .filter((route) => route.title.toLowerCase().includes(text.toLowerCase()))
    .map((route) => ({ kind: 'View', text: route.title, address: to(route.id) }));

function directFor(text, { can, to }) {
  if (!text) return [];
  const message = looksLikeMessage(text) && { kind: 'Message', text, address: to('message', { id: text }) };
  const lock = can('observe', { key: text }) && { kind: 'Lock', text, address: to('lock', { key: text }) };
  const document = can('read', { key: text }) && { kind: 'Document', text, address: to('document', { key: text }) };
  return [message, !message && lock, !message && document].filter(Boolean);
}

async function queuesFor(text, { p, to, can }, signal) {
  if (!can('observe', {})) return [];
  const { queues } = await api.get(`${p}/queues${api.query({ prefix: text, limit: QUEUES_SHOWN })}`, { signal });
  return queues.map(({ name }) => ({ kind: 'Queue', text: name, address: to('queue', { queue: name }) }));
}

function useEntries(text, here) {
  const [queues, setQueues] = useState([]);
  useEffect(() => {
    const control = new AbortController();
    const timer = setTimeout(() => queuesFor(text, here, control.signal).then(setQueues, () => {}), 60);
    return () => {
      clearTimeout(timer);
      control.abort();
    };
  }, [text, here.p]);
  const namespaces = here.namespaces
    .filter((name) => text && name.includes(text))
    .map((name) => ({ kind: 'Namespace', text: name, address: here.inNamespace(name) }));
  return [...viewsFor(text, here), ...queues, ...namespaces, ...directFor(text, here)];
}

export function Palette({ onClose }) {
  const here = useHere();
  const [text, setText] = useState('');
  const [chosen, setChosen] = useState(0);
  const list = useRef(null);
  const entries = useEntries(text.trim(), here);
  const at = Math.min(chosen, entries.length - 1);
  const open = (entry) => {
    onClose();
    if (entry) go(entry.address);
  };
  const onKey = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) setChosen((at + step + entries.length) % Math.max(1, entries.length));
    else if (event.key === 'Enter') open(entries[at]);
    else return;
    event.preventDefault();
  };
  useEffect(() => list.current?.children[at]?.scrollIntoView({ block: 'nearest' }), [at]);
  return html`<${Dialog} title="Go to" kind="palette" onClose=${onClose}>
    <input type="text" role="combobox" aria-expanded="true" aria-controls="palette-list" aria-label="Go to a view, queue, message, lock or document"
      aria-activedescendant=${entries[at] ? `palette-${at}` : undefined} autofocus autocomplete="off" spellcheck=${false}
      placeholder="A view, queue, message id, lock or document" value=${text}
      onInput=${(event) => (setText(event.currentTarget.value), setChosen(0))} onKeyDown=${onKey} />
    <ul role="listbox" id="palette-list" aria-label="Places" ref=${list}>
      ${entries.map((entry, index) => html`<li key=${entry.kind + entry.text} id=${`palette-${index}`} role="option" aria-selected=${index === at}
        onClick=${() => open(entry)}><span>${entry.text}</span><span class="muted">${entry.kind}</span></li>`)}
    </ul>
    <p class="hint">↑ ↓ choose, Enter opens, Esc closes</p>
  </${Dialog}>`;
}
