// The flow of a message as a graph: its parents above it, its children and the steps of its chain below it.

import { cut, html } from '../kit.js';

const WIDTH = 176;
const HEIGHT = 46;
const GAP_X = 16;
const GAP_Y = 38;

const childrenOf = (node) => [
  ...(node.children ?? []),
  ...chainOf(node.chain ?? []),
  ...(node.on_failure ? [{ queue: node.on_failure, label: 'on failure', edge: 'failure' }] : []),
];

/** The steps of a chain follow one another: each is the child of the one before. */
function chainOf(queues) {
  if (!queues.length) return [];
  return [{ queue: queues[0], label: 'next step', edge: 'chain', chain: queues.slice(1) }];
}

/** Places a node above its children; the width of its tree in columns is the sum of theirs. */
function place(node, column, row, out, parent) {
  const self = { node, row, parent };
  out.push(self);
  let width = 0;
  for (const child of childrenOf(node)) width += place(child, column + width, row + 1, out, self);
  width = Math.max(1, width);
  self.x = (column + (width - 1) / 2) * (WIDTH + GAP_X);
  self.y = row * (HEIGHT + GAP_Y);
  return width;
}

function layout(flow) {
  const nodes = [];
  const own = place(flow, 0, flow.parents.length ? 1 : 0, nodes, null);
  const columns = Math.max(own, flow.parents.length);
  const spread = (count, at) => ((columns - count) / 2 + at) * (WIDTH + GAP_X);
  nodes.forEach((node) => (node.x += spread(own, 0)));
  const parents = flow.parents.map((parent, at) => ({ node: parent, x: spread(flow.parents.length, at), y: 0 }));
  const height = Math.max(...nodes.map((node) => node.y)) + HEIGHT;
  return { nodes, parents, width: columns * (WIDTH + GAP_X) - GAP_X, height };
}

function Edge({ from, to, kind = '' }) {
  const [x1, y1, x2, y2] = [from.x + WIDTH / 2, from.y + HEIGHT, to.x + WIDTH / 2, to.y];
  const bend = (y1 + y2) / 2;
  return html`<path class=${`edge ${kind}`} d=${`M${x1} ${y1} C${x1} ${bend} ${x2} ${bend} ${x2} ${y2}`} marker-end="url(#arrow)" />`;
}

function Node({ at, self, link }) {
  const { node } = at;
  const state = node.state ?? node.ended ?? (node.label ? '' : 'gone');
  const title = node.queue ?? 'unknown queue';
  const note = node.label ?? (node.group ? `${state}, group: ${node.group.pending} left` : state);
  const box = html`<g transform=${`translate(${at.x} ${at.y})`} class=${`node ${state} ${self ? 'self' : ''} ${node.edge ?? ''}`}>
    <rect width=${WIDTH} height=${HEIGHT} rx="6" />
    <text x="12" y="19" class="node-title">${cut(title, 22)}</text>
    <text x="12" y="36" class="node-note">${note}${node.id ? ` · …${node.id.slice(-8)}` : ''}</text>
    <title>${`${title} ${node.id ?? ''} ${note}`}</title>
  </g>`;
  return node.id && !self ? html`<a href=${link(node.id)}>${box}</a>` : box;
}

export function FlowGraph({ flow, link }) {
  const { nodes, parents, width, height } = layout(flow);
  return html`<div class="flow" tabindex="0" role="region" aria-label="Flow of the message">
    <svg width=${width + 4} height=${height + 4} viewBox=${`-2 -2 ${width + 4} ${height + 4}`}>
      <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" class="arrow" /></marker></defs>
      ${parents.map((parent) => html`<${Edge} from=${parent} to=${nodes[0]} />`)}
      ${nodes.filter((at) => at.parent).map((at) => html`<${Edge} from=${at.parent} to=${at} kind=${at.node.edge} />`)}
      ${parents.map((parent) => html`<${Node} at=${parent} link=${link} />`)}
      ${nodes.map((at) => html`<${Node} at=${at} self=${at === nodes[0]} link=${link} />`)}
    </svg>
    ${flow.truncated && html`<p class="muted">There are more messages than a flow names.</p>`}
  </div>`;
}

/** Whether a message belongs to a flow at all. */
export const hasFlow = (flow) => flow.parents.length > 0 || childrenOf(flow).length > 0;
