// Signing in by a token, and what a role that may only observe sees.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { caller, makeEverything, settled, start } from './support.mjs';

let world;
let observer;

before(async () => {
  world = await start();
  await makeEverything(world.call);
  const admin = await world.call('POST', '/tokens', { name: 'root', scopes: ['sluice://ns/*?perm=admin'] });
  const looks = await caller(world.address, admin.token)('POST', '/tokens', { name: 'looks', scopes: ['sluice://ns/*?perm=observer'] });
  observer = looks.token;
});
after(() => world.stop());

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
