// What those with narrow rights are offered and told, and what nobody may do.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { button, caller, inDialog, settled, start } from './support.mjs';

const POLICY = `
[[rule]]
name = 'people approve'
identities = ['ann']
role = 'operator'
queues = ['pay']
`;

let world;
let admin;
const tokens = {};

before(async () => {
  world = await start();
  const create = async (call, name, scopes) => (tokens[name] = (await call('POST', '/tokens', { name, scopes })).token);
  admin = caller(world.address, await create(world.call, 'root', ['sluice://ns/*?perm=admin']));
  await admin('PUT', '/policy', { policy: POLICY });
  await create(admin, 'ann', []);
});
after(() => world.stop());

/** Opens a view as somebody who is signed in. */
async function openAs(name, view, namespace = 'default') {
  const page = await world.page();
  await page.context().addCookies([{ name: 'sluice-token', value: tokens[name], url: world.base, httpOnly: true, sameSite: 'Strict' }]);
  await page.goto(`${world.base}/console/${encodeURIComponent(namespace)}/${view}`);
  await settled(page);
  return page;
}

const held = async () => (await admin('POST', '/queues/pay/messages', { payload: 'pay 9,000', hold: true })).id;

test('a bulk that sends is offered only to those who may send', async () => {
  await held();
  const verbs = async (name) => (await openAs(name, 'queues/pay/messages')).getByLabel('Change all that match').locator('option').allTextContents();
  assert.deepEqual(await verbs('ann'), ['cancel', 'hold', 'approve', 'deny', 'change']);
  assert.deepEqual(await verbs('root'), ['cancel', 'hold', 'approve', 'deny', 'retry', 'move', 'change']);
});

test('what is shown only to those who may look at the whole namespace is not asked for others, and they are told', async () => {
  const id = await held();
  const queue = await openAs('ann', 'queues/pay');
  await queue.getByText('Your rights do not include the statistics and consumers').waitFor();
  assert.equal(await queue.getByText('No consumer is attached').count(), 0);
  const message = await openAs('ann', `messages/${id}`);
  await message.getByText('Your rights do not include the flows').waitFor();
  const asked = [...queue.asked, ...message.asked];
  assert.deepEqual(asked.filter((url) => /\/v1\/(consumers|statistics|flows)/.test(url)), []);
});

test('an administrator looks at what the server keeps for itself, and is offered nothing else', async () => {
  const page = await openAs('root', 'queues/audit', '$sys');
  await page.getByText('Totals since it was created').waitFor();
  assert.deepEqual(await page.locator('main').locator('button, a.button').allTextContents(), []);
  assert.equal(await page.getByRole('link', { name: 'Send a message' }).count(), 0);
  const [entry] = (await admin('GET', '/namespaces/$sys/queues/audit/messages?limit=1')).messages;
  for (const view of ['queues/audit/messages', `messages/${entry.id}`]) {
    const other = await openAs('root', view, '$sys');
    for (const name of ['Preview…', 'Cancel', 'Hold']) assert.equal(await button(other, name).count(), 0, name);
    assert.equal(await other.getByRole('link', { name: 'Edit and resend' }).count(), 0);
  }
});

test('a name with a line separator fits a pattern that all names fit', async () => {
  const page = await openAs('root', `documents/${encodeURIComponent('a\u2028b')}`);
  assert.equal(await page.getByText('You may not look at this').count(), 0);
});

test('the history of a message tells who has decided', async () => {
  const id = await held();
  const page = await openAs('ann', `messages/${id}`);
  await button(page, 'Approve').click();
  await inDialog(page, 'Approve the message').click();
  await page.getByText('approve by ann').waitFor();
  const bulk = await openAs('ann', 'queues/pay/messages');
  await bulk.getByLabel('Change all that match').selectOption('hold');
  await button(bulk, 'Preview…').click();
  await inDialog(bulk, 'Hold all').click();
  await bulk.getByText('changed.').waitFor();
  const { changes } = await admin('GET', `/messages/${id}`);
  assert.deepEqual(changes.map(({ change, by }) => [change, by]), [['approve', 'ann'], ['hold', 'ann']]);
});

test('a name that is too long for a history is cut', async () => {
  const id = await held();
  const page = await openAs('ann', 'queues');
  await page.route('**/v1/whoami', async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ json: { ...(await answer.json()), name: 'ä'.repeat(300) } });
  });
  await page.goto(`${world.base}/console/default/messages/${id}`);
  await button(page, 'Approve').click();
  await inDialog(page, 'Approve the message').click();
  await page.getByText('Done.').waitFor();
});
