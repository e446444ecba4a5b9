// A payload as text, as a tree of JSON, or in hex.

import { bytes as size, html, useMemo, useState } from '../kit.js';
import { Tree, readTree } from './json_tree.js';

const fromBase64 = (text) => Uint8Array.from(atob(text), (char) => char.charCodeAt(0));

/** `{text, octets, json}` of a payload; `text` is absent if the octets are not UTF-8, `json` if it is not JSON. */
function contentOf(text, base64) {
  if (base64 !== undefined) return { octets: fromBase64(base64) };
  const content = { text: text ?? '', octets: new TextEncoder().encode(text ?? '') };
  if (/^\s*[[{"\d-]|^\s*(true|false|null)\s*$/.test(content.text)) {
    try {
      JSON.parse(content.text);
      content.json = readTree(content.text);
    } catch {
      // No JSON: it is shown as text.
    }
  }
  return content;
}

const HEX_ROWS = 256;

function hexRows(octets) {
  const rows = [];
  for (let at = 0; at < octets.length && rows.length < HEX_ROWS; at += 16) {
    const part = octets.subarray(at, at + 16);
    const hex = Array.from(part, (octet) => octet.toString(16).padStart(2, '0')).join(' ');
    const plain = Array.from(part, (octet) => (octet > 31 && octet < 127 ? String.fromCharCode(octet) : '.')).join('');
    rows.push(`${at.toString(16).padStart(6, '0')}  ${hex.padEnd(47)}  ${plain}`);
  }
  return rows.join('\n');
}

const Hex = ({ octets }) => html`<pre class="payload" tabindex="0">${hexRows(octets)}</pre>
  ${octets.length > HEX_ROWS * 16 && html`<p class="muted">The first ${size(HEX_ROWS * 16)} of ${size(octets.length)}.</p>`}`;

/** The viewer, with a choice of the ways that fit. */
export function Payload({ text, base64, contentType }) {
  const content = useMemo(() => contentOf(text, base64), [text, base64]);
  const ways = [content.json !== undefined && 'JSON', content.text !== undefined && 'Text', 'Hex'].filter(Boolean);
  const [chosen, setChosen] = useState(null);
  const way = ways.includes(chosen) ? chosen : ways[0];
  return html`<div>
    <div class="toolbar">
      <div class="choice" role="group" aria-label="Show as">
        ${ways.map((one) => html`<button type="button" aria-pressed=${one === way} onClick=${() => setChosen(one)}>${one}</button>`)}
      </div>
      <span class="muted">${size(content.octets.length)}${contentType ? `, ${contentType}` : ''}</span>
    </div>
    ${way === 'JSON' && html`${content.json.twice && html`<p class="warn-text">A name stands twice in one object: programs read one of its values, not all the same one.</p>`}
      <div class="payload tree" tabindex="0" role="region" aria-label="JSON tree"><${Tree} node=${content.json.tree} /></div>`}
    ${way === 'Text' && html`<pre class="payload" tabindex="0">${content.text || ' '}</pre>`}
    ${way === 'Hex' && html`<${Hex} octets=${content.octets} />`}
  </div>`;
}
