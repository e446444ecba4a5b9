// The heading and the tabs of one queue's views.

import { Heading, Tabs, html, useHere } from '../kit.js';
import { WHOLE } from '../rights.js';

const TABS = [
  ['queue', 'State'],
  ['messages', 'Messages'],
  ['dead', 'Dead letters'],
  ['pushes', 'Pushes'],
  ['settings', 'Settings'],
];

export function QueueFrame({ here: shown, actions, note, children }) {
  const { to, parameters, can } = useHere();
  const { queue } = parameters;
  const tabs = TABS.map(([id, text]) => [text, to(id, { queue }), id === shown]);
  return html`<${Heading} title=${queue} mono trail=${[['Queues', to('queues')]]} note=${note}>${actions}</${Heading}>
    <${Tabs} label="Views of the queue" tabs=${[...tabs, can('observe', WHOLE) && ['Live events', to('events', {}, { queue })]]} />
    ${children}`;
}
