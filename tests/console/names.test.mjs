// New things do not replace what has their name already.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { start } from './support.mjs';

let world;
let call;

before(async () => {
  world = await start();
  call = world.call;
});
after(() => world.stop());

/** A test that fills in a form with a name that is taken, is refused beside the name, and takes another. */
const taken = (what, { make, open, fill, submit, stored, done }) =>
  test(`a new ${what} does not replace one with its name`, async (t) => {
    await make();
    const before = await stored();
    const page = await world.page();
    t.after(() => page.context().close());
    page.setDefaultTimeout(8000);
    await open(page);
    const name = page.getByLabel('Name');
    await name.fill('taken');
    await fill(page);
    await page.getByRole('button', { name: submit, exact: true }).click();
    await page.getByRole('alert').getByText('There is one with this name').waitFor();
    assert.equal(await name.getAttribute('aria-invalid'), 'true');
    assert.deepEqual(await stored(), before);
    await name.fill('other');
    await page.getByRole('button', { name: submit, exact: true }).click();
    await page.getByText(done).waitFor();
    assert.deepEqual(page.faults, []);
  });

const byButton = (view, label) => async (page) => {
  await page.open(view);
  await page.getByRole('button', { name: label }).click();
};

taken('limit', {
  make: () => call('PUT', '/limits/taken', { in_flight: 7 }),
  open: byButton('limits', 'New limit'),
  fill: (page) => page.getByLabel('In flight, of all queues').fill('1'),
  submit: 'Set',
  stored: async () => (await call('GET', '/limits/taken')).settings,
  done: 'The limit is in force.',
});

taken('schedule', {
  make: () => call('PUT', '/schedules/taken', { cron: '0 9 * * *', queue: 'reports', message: { payload: 'daily' } }),
  open: (page) => page.open('new-schedule'),
  fill: async (page) => {
    await page.getByLabel('Queue', { exact: false }).first().fill('others');
    await page.getByLabel('Cron expression').fill('0 1 * * *');
  },
  submit: 'Create',
  stored: () => call('GET', '/schedules/taken'),
  done: 'Next times',
});

taken('index of documents', {
  make: () => call('PUT', '/document-indexes/taken', { pointer: '/state' }),
  open: byButton('documents', 'New index'),
  fill: (page) => page.getByLabel('JSON pointer').fill('/total'),
  submit: 'Declare',
  stored: async () => (await call('GET', '/document-indexes')).indexes.map(({ name, pointer }) => [name, pointer]),
  done: 'The index is declared',
});

test('what has a name is changed as before', async (t) => {
  await call('PUT', '/limits/known', { in_flight: 7 });
  const page = await world.page();
  t.after(() => page.context().close());
  await byButton('limits/known', 'Change')(page);
  await page.getByLabel('In flight, of all queues').fill('8');
  await page.getByRole('button', { name: 'Set', exact: true }).click();
  await page.getByText('The limit is in force.').waitFor();
  assert.equal((await call('GET', '/limits/known')).settings.in_flight, 8);
});

const FILES = 120;

test('a document with more than a page of attachments shows all of them, and tells that there are more', async (t) => {
  await call('PUT', '/documents/full', { content: 'x' });
  for (let at = 0; at < FILES; at += 1) await call('PUT', `/documents/full/attachments/raw?name=f${String(at).padStart(3, '0')}`, Buffer.from('x'));
  const page = await world.page();
  t.after(() => page.context().close());
  page.setDefaultTimeout(8000);
  await page.open('documents/full');
  const says = async (text) => {
    await page.locator('.heading').getByRole('button', { name: 'Delete' }).click();
    await page.getByText(text).waitFor();
    await page.keyboard.press('Escape');
  };
  await says('with 1 version and more than 100 attachments');
  await page.getByRole('button', { name: 'Next page' }).click();
  await page.getByRole('link', { name: 'f119' }).waitFor();
  await says('with 1 version and more than 100 attachments');
  await page.getByRole('button', { name: 'Back' }).click();
  await page.getByRole('link', { name: 'f000' }).waitFor();
  assert.deepEqual(page.faults, []);
});
