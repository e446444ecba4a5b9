// What a form takes from a message or a document and gives back: all of it, or it says what it leaves.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { start } from './support.mjs';

/** Names, values and tags that the short form of their fields cannot say. */
const ODD = [
  { 'a:b': 'v', m: 'l1\nx: y', ' s ': ' t ' },
  { ':x': 'no name before the colon' },
  { '{"x"': 'y' },
  { '{x': 'y' },
  { constructor: 'c', 1: 'one' },
];
const TAGS = [['red, blue'], ['[x]', 'y'], ['["x"]'], [' a ', 'b'], ['plain', 'tags']];

let world;
let call;

before(async () => {
  world = await start();
  call = world.call;
});
after(() => world.stop());

/** Runs a test on a page of its own, which must end without faults. */
const form = (name, run) =>
  test(name, async (t) => {
    const page = await world.page();
    t.after(() => page.context().close());
    page.setDefaultTimeout(8000);
    await run(page);
    assert.deepEqual(page.faults, []);
  });

/** Sends the message again by the console, with these fields changed; answers the new one. */
async function resend(page, id, values = {}) {
  await page.open(`send?from=${id}`);
  for (const [label, text] of Object.entries(values)) await page.getByLabel(label, { exact: true }).fill(text);
  await page.getByRole('button', { name: 'Send' }).click();
  const sent = page.getByText('Sent as').locator('.mono');
  return call('GET', `/messages/${(await sent.textContent()).trim()}`);
}

form('headers and tags are sent again as they are', async (page) => {
  for (const [at, headers] of ODD.entries()) {
    const { id } = await call('POST', '/queues/odd/messages', { payload: 'x', headers, tags: TAGS[at] });
    const sent = await resend(page, id, { Payload: 'y' });
    assert.deepEqual([sent.payload, sent.headers, sent.tags.sort()], ['y', headers, [...TAGS[at]].sort()]);
  }
});

form('headers and tags are written in the short form where it says them, and may be JSON', async (page) => {
  const { id } = await call('POST', '/queues/odd/messages', { payload: 'x', headers: { to: 'ann', re: 'a: b' }, tags: ['red', 'blue'] });
  await page.open(`send?from=${id}`);
  assert.equal(await page.getByLabel('Headers').inputValue(), 'to: ann\nre: a: b');
  assert.equal(await page.getByLabel('Tags').inputValue(), 'red, blue');
  const sent = await resend(page, id, { Headers: '{"a:b": "c"}', Tags: '["x, y"]' });
  assert.deepEqual([sent.headers, sent.tags], [{ 'a:b': 'c' }, ['x, y']]);
  await page.open(`send?from=${id}`);
  await page.getByLabel('Tags').fill('[x');
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByRole('alert').getByText('Expected JSON').waitFor();
  assert.equal(await page.getByLabel('Tags').getAttribute('aria-invalid'), 'true');
});

form('lines keep their ends when one of them is edited', async (page) => {
  const { id } = await call('POST', '/queues/odd/messages', { payload: 'l1\r\nl2' });
  assert.equal((await resend(page, id, { Payload: 'l1\nL2' })).payload, 'l1\r\nL2');
});

form('what is sent again expires after the same time, and is held if its original is', async (page) => {
  const { id } = await call('POST', '/queues/odd/messages', { payload: 'x', ttl_ms: 86_400_000, hold: true });
  const sent = await resend(page, id);
  assert.deepEqual([sent.expires_at_ms - sent.sent_at_ms, sent.state], [86_400_000, 'held']);
  assert.equal(await page.getByText('Not taken over').count(), 0);
});

form('what is not sent again is told before', async (page) => {
  const { id: parent } = await call('POST', '/queues/odd/messages', { payload: 'x' });
  const { id } = await call('POST', '/queues/odd/messages', {
    payload: 'x', unique: { key: 'u1' }, depends_on: [parent], chain: [{ queue: 'next' }, { queue: 'last' }], on_failure: { queue: 'trouble' },
  });
  await page.open(`send?from=${id}`);
  const left = page.getByText('Not taken over');
  for (const what of ['unique key u1', 'messages that it waits for', 'chain to next, last', 'step to trouble if it fails']) await left.getByText(what).waitFor();
});

form('attributes of a document stay as they are when it is edited', async (page) => {
  for (const attributes of ODD) {
    await call('PUT', '/documents/odd', { content: 'a\r\nb', attributes });
    await page.open('documents/odd');
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('Content', { exact: true }).fill('a\nc');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('button', { name: 'Edit' }).waitFor();
    const { content, attributes: stored } = await call('GET', '/documents/odd');
    assert.deepEqual([content, stored], ['a\r\nc', attributes]);
  }
});
