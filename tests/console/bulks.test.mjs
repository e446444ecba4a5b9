// Changes to many messages, by a bulk or a redrive: what is counted, what runs, and what stops it.

import assert from 'node:assert/strict';
import { button, inDialog, makeDead, worldOfFlows } from './support.mjs';

const { flow, call } = worldOfFlows();

flow('a rate of 0 is refused beside its field, and changes nothing', async (page) => {
  await makeDead(call, 'never', Array(3).fill('smtp: 451'));
  await page.open('queues/never/dead');
  for (const [open, confirm] of [['Redrive all', 'Redrive all'], ['Delete', 'Delete']]) {
    await button(page, open).click();
    await page.getByLabel('Messages per second').fill('0');
    await inDialog(page, confirm).click();
    await page.getByRole('dialog').locator('.hint').getByText('per_second: expected a number from 1').waitFor();
    await inDialog(page, 'Close').click();
  }
  assert.equal((await call('GET', '/queues/never')).counts.dead, 3);
});
