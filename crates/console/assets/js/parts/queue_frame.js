// The heading and the tabs of one queue's views.

import { html } from '../../vendor/preact.js';
import { useHere } from '../app.js';
import { Heading, Tabs } from './basics.js';

const TABS = [
  ['queue', 'State'],
  ['messages', 'Messages'],
  ['dead', 'Dead letters'],
  ['settings', 'Settings'],
];

export function QueueFrame({ here: shown, actions, note, children }) {
  const { to, parameters } = useHere();
  const { queue } = parameters;
  const tabs = TABS.map(([id, text]) => [text, to(id, { queue }), id === shown]);
  return html`<${Heading} title=${queue} mono trail=${[['Queues', to('queues')]]} note=${note}>${actions}</${Heading}>
    <${Tabs} label="Views of the queue" tabs=${[...tabs, ['Live events', to('events', {}, { queue })]]} />
    ${children}`;
}
