// Dead letters by their errors.

import assert from 'node:assert/strict';
import { button, makeDead, worldOfFlows } from './support.mjs';

const { flow, call } = worldOfFlows();

flow('those without an error text are another group than those whose text says so', async (page) => {
  await makeDead(call, 'silent', ['(without an error text)', undefined, undefined]);
  await page.open('queues/silent/dead');
  for (const [at, count] of [1, 2].entries()) {
    await page.getByRole('region', { name: 'Dead letters by error' }).getByRole('button', { name: '(without an error text)' }).nth(at).click();
    await page.getByText('Looked at').waitFor();
    assert.equal(await page.getByRole('region', { name: 'Dead letters of the group' }).locator('tbody tr').count(), count);
    await button(page, 'Show all').click();
  }
});

flow('those whose error text is damaged are counted', async (page) => {
  await makeDead(call, 'damaged', ['smtp: 451']);
  await page.route('**/dead/errors', async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ json: { ...(await answer.json()), with_damaged_text: 4 } });
  });
  await page.open('queues/damaged/dead');
  await page.getByText('4 more with texts that the disk has damaged.').waitFor();
});
