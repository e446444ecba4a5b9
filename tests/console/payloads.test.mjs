// What payloads look like, whatever is in them: people approve messages by what they see here.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { start } from './support.mjs';

let world;

before(async () => {
  world = await start();
});
after(() => world.stop());

/** Runs a test on the page of a held message with this payload. */
const shown = (name, payload, run) =>
  test(name, async (t) => {
    const { id } = await world.call('POST', '/queues/pay/messages', { payload, hold: true });
    const page = await world.page();
    t.after(() => page.context().close());
    page.setDefaultTimeout(20_000);
    await page.open(`messages/${id}`);
    const tree = page.getByRole('region', { name: 'JSON tree' });
    await tree.waitFor();
    await run(page, tree);
    assert.deepEqual(page.faults, []);
  });

const rows = async (tree) => (await tree.locator('.json-row').allTextContents()).map((text) => text.trim());

shown('numbers have the digits that were sent', '[9007199254740993, 1e400, 0.10, -0, 1E2]', async (page, tree) => {
  assert.deepEqual(await rows(tree), ['0: 9007199254740993', '1: 1e400', '2: 0.10', '3: -0', '4: 1E2']);
});

shown('names that are there twice are both shown, and told of', '{"amount":1,"to":"ann","\\u0061mount":9000}', async (page, tree) => {
  assert.deepEqual(await rows(tree), ['amount: 1', 'to: "ann"', 'amount: 9000']);
  await page.getByText('A name stands twice in one object').waitFor();
});

shown('texts, names and brackets of all kinds', '{"a\\"]:":"b\\\\","":[{},[],true,null,"\\u00e9\\n"],"__proto__":{"2":1,"1":2}}', async (page, tree) => {
  assert.deepEqual(await rows(tree), ['a"]:: "b\\\\"', '0: {}', '1: []', '2: true', '3: null', '4: "é\\n"', '2: 1', '1: 2']);
  assert.equal(await page.getByText('stands twice').count(), 0);
});

shown('levels without end are opened one by one', `${'[['.repeat(50_000)}7${']]'.repeat(50_000)}`, async (page, tree) => {
  const before = await tree.locator('details').count();
  assert.ok(before < 10, `${before}`);
  for (let count = before; count < 20; count += 1) {
    await tree.locator('summary').last().press('Enter');
    await tree.locator('details').nth(count).waitFor();
  }
  await tree.locator('summary').last().press('Enter');
  await tree.getByText('what is deeper is in Text only').waitFor();
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Approve the message' }).click();
  await page.getByText('Done.').waitFor();
});

const CUBE = JSON.stringify(Array(60).fill(Array(60).fill(Array(60).fill(1))));

shown('a wide payload shows some of it, and more when asked', CUBE, async (page, tree) => {
  assert.ok((await tree.locator('*').count()) < 5000);
  await tree.locator('summary').nth(1).click();
  await page.getByRole('button', { name: 'Approve' }).click({ timeout: 3000 });
});

shown('a long list is shown piece by piece', JSON.stringify(Array.from({ length: 450 }, (_, at) => at)), async (page, tree) => {
  for (const [shownRows, left] of [[200, 250], [400, 50]]) {
    assert.equal(await tree.locator('.json-row').count(), shownRows);
    await page.getByRole('button', { name: `Show more of the other ${left}` }).click();
  }
  assert.equal((await rows(tree)).at(-1), '449: 449');
  assert.equal(await page.getByRole('button', { name: 'Show more' }).count(), 0);
});
