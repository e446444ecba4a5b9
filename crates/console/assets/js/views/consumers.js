// Who takes messages, and how many each holds.

import { Empty, Heading, Loaded, Pages, api, html, useGet, useHere } from '../kit.js';
import { ConsumerTable } from '../parts/consumer_table.js';

export default function Consumers() {
  const { p, search } = useHere();
  const { after } = search;
  const state = useGet(`${p}/consumers${api.query({ after, limit: 50 })}`, { every: 2000 });
  return html`<${Heading} title="Consumers" note="Attached consumers, and those that pull under a name as long as they hold messages." />
    <${Loaded} state=${state}>${({ consumers, next }) =>
      consumers.length
        ? html`<${ConsumerTable} consumers=${consumers} /><${Pages} next=${next} />`
        : html`<${Empty} title="No consumer holds a message" command="sluice work emails -- sh -c 'cat; echo'">A worker takes messages and runs a command for each.</${Empty}>`}
    </${Loaded}>`;
}
