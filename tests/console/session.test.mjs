// Signing in by a token, and what a role that may only observe sees.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { caller, makeEverything, settled, start } from './support.mjs';

/** People who approve what an agent proposes, and only that. */
const POLICY = `
[[rule]]
name = 'people approve'
identities = ['ann']
role = 'operator'
queues = ['pay']

[[rule]]
name = 'the agent proposes'
identities = ['agent']
role = 'proposer'
queues = ['pay']
`;

let world;
let admin;
let observer;

before(async () => {
  world = await start();
  await makeEverything(world.call);
  const root = await world.call('POST', '/tokens', { name: 'root', scopes: ['sluice://ns/*?perm=admin'] });
  admin = caller(world.address, root.token);
  observer = await tokenOf('looks', ['sluice://ns/*?perm=observer']);
});
after(() => world.stop());

const tokenOf = async (name, scopes = []) => (await admin('POST', '/tokens', { name, scopes })).token;

/** Names of the buttons that stand in the heading of the view. */
const offered = (page) => page.locator('.heading .actions').first().locator('button, a.button').allTextContents();

async function signIn(page, token) {
  await page.open('queues/invoices');
  await page.getByLabel('Token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

test('a wrong token is refused in the words of the server', async () => {
  const page = await world.page();
  await signIn(page, 'wrong');
  await page.getByRole('alert').getByText('unauthenticated').waitFor();
});

test('an observer sees what is there, and no button that it may not use', async () => {
  const page = await world.page();
  await signIn(page, observer);
  await page.getByRole('heading', { name: 'invoices' }).waitFor();
  await page.getByText('Totals since it was created').waitFor();
  for (const name of ['Purge', 'Delete', 'Pause', 'Close']) assert.equal(await page.getByRole('button', { name }).count(), 0, name);
  assert.equal(await page.getByRole('link', { name: 'Send a message' }).count(), 0);
  assert.equal(await page.getByRole('link', { name: 'Tokens' }).count(), 0);
  await page.open('tokens');
  await page.getByText('You may not look at this').waitFor();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('Token').waitFor();
});

test('an observer is offered nothing to do with messages, dead letters, documents and locks', async () => {
  const page = await world.page();
  await signIn(page, observer);
  await page.getByRole('heading', { name: 'invoices' }).waitFor();
  const held = await admin('POST', '/queues/pay/messages', { payload: 'pay', hold: true });
  for (const view of [`messages/${held.id}`, 'queues/invoices/dead', 'queues/hooks/pushes', 'documents/config%2Fweb', 'locks/orders%2F17', 'schedules/daily', 'limits/smtp']) {
    await page.open(view);
    await settled(page);
    assert.deepEqual(await offered(page), [], view);
    for (const name of ['Redrive', 'Upload', 'Delete']) assert.equal(await page.getByRole('button', { name }).count(), 0, `${view}: ${name}`);
  }
  await page.open('documents');
  await page.getByRole('region', { name: 'Indexes' }).waitFor();
  for (const name of ['New index', 'Drop']) assert.equal(await page.getByRole('button', { name }).count(), 0, name);
});

test('who may operate one queue approves there, and is offered nothing elsewhere', async () => {
  await admin('PUT', '/policy', { policy: POLICY });
  const { id } = await admin('POST', '/queues/pay/messages', { payload: 'pay 9,000', hold: true });
  const page = await world.page();
  await signIn(page, await tokenOf('ann'));
  await page.getByText('You may not look at this').waitFor();
  await page.open('');
  await page.getByRole('row', { name: /pay/ }).waitFor();
  assert.equal(await page.getByRole('row', { name: /invoices/ }).count(), 0);
  for (const name of ['Overview', 'Limits', 'Live events', 'Send a message', 'Tokens']) assert.equal(await page.getByRole('link', { name }).count(), 0, name);
  await page.open(`messages/${id}`);
  await page.getByRole('button', { name: 'Approve' }).waitFor();
  assert.deepEqual(await offered(page), ['Approve', 'Deny', 'Change', 'Cancel']);
  await page.getByRole('button', { name: 'Deny' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Deny the message' }).click();
  await page.getByText('Done.').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
  await page.getByRole('button', { name: 'Cancel' }).waitFor();
  // A retry puts a message into the queue, which an operator alone may not.
  assert.deepEqual(await offered(page), ['Cancel']);
  assert.equal((await admin('GET', `/messages/${id}`)).state, 'dead');
});

test('a proposer begins where it may propose, and what it sends is held', async () => {
  await admin('PUT', '/policy', { policy: POLICY });
  const page = await world.page();
  await signIn(page, await tokenOf('agent'));
  await page.getByText('You may not look at this').waitFor();
  await page.open('');
  await page.getByRole('heading', { name: 'Send a message' }).waitFor();
  assert.deepEqual(await page.getByRole('navigation', { name: 'Views' }).getByRole('link').allTextContents(), ['Send a message']);
  await page.getByLabel('Queue', { exact: false }).first().fill('pay');
  await page.getByText('this one is held until a person approves it').waitFor();
  await page.getByLabel('Payload', { exact: true }).fill('pay 12');
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByText('Sent as').waitFor();
  const id = (await page.getByText('Sent as').locator('.mono').textContent()).trim();
  const sent = await admin('GET', `/messages/${id}`);
  assert.deepEqual([sent.state, sent.payload], ['held', 'pay 12']);
});

test('the first token stays shown until its dialog is closed, and its maker is signed in with it', async (t) => {
  const open = await start();
  t.after(() => open.stop());
  const page = await open.page();
  await page.open('tokens');
  await page.getByRole('button', { name: 'New token' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name').fill('root');
  await dialog.getByLabel('Scopes').fill('*=admin');
  await dialog.getByRole('button', { name: 'Create' }).click();
  const token = (await dialog.locator('.payload').textContent()).trim();
  await page.getByRole('row', { name: /root/ }).waitFor();
  assert.equal(await dialog.locator('.payload').textContent(), token);
  assert.equal((await caller(open.address, token)('GET', '/whoami')).name, 'root');
  await dialog.getByRole('button', { name: 'Close' }).click();
  await page.getByText('Sign out').waitFor();
  assert.equal(await page.locator('.identity').textContent(), 'root');
  assert.deepEqual(page.faults, []);
});

test('a session that ends leaves the dialog that is open', async (t) => {
  const { id, token } = await admin('POST', '/tokens', { name: 'leaves', scopes: ['sluice://ns/*?perm=admin'] });
  const page = await world.page();
  t.after(() => page.context().close());
  await signIn(page, token);
  await page.getByRole('heading', { name: 'invoices' }).waitFor();
  await page.open('documents/config%2Fweb');
  await page.getByRole('button', { name: 'Upload' }).click();
  await admin('DELETE', `/tokens/${id}`);
  await page.getByLabel('Name', { exact: true }).fill('typed');
  await page.getByRole('dialog').locator('input[type=file]').setInputFiles({ name: 'a', mimeType: 'text/plain', buffer: Buffer.from('a') });
  await page.getByRole('dialog').getByRole('button', { name: 'Upload' }).click();
  await page.getByLabel('Token').waitFor();
  assert.equal(await page.getByRole('dialog').getByLabel('Name', { exact: true }).inputValue(), 'typed');
});

test('the session is a cookie that scripts cannot read', async () => {
  const page = await world.page();
  await signIn(page, observer);
  await settled(page);
  await page.getByText('Totals since it was created').waitFor();
  const [cookie] = await page.context().cookies();
  assert.ok(cookie.httpOnly);
  assert.equal(cookie.sameSite, 'Strict');
  assert.equal(await page.evaluate(() => document.cookie), '');
  assert.ok(!(await page.evaluate(() => JSON.stringify(localStorage))).includes(observer));
});
