// Changes to many messages, by a bulk or a redrive: what is counted, what runs, and what stops it.

import assert from 'node:assert/strict';
import { button, inDialog, makeDead, settled, worldOfFlows } from './support.mjs';

const { flow, call } = worldOfFlows();

flow('a rate of 0, or one that is no number, is refused beside its field, and changes nothing', async (page) => {
  await makeDead(call, 'never', Array(3).fill('smtp: 451'));
  await page.open('queues/never/dead');
  for (const [open, confirm] of [['Redrive all', 'Redrive all'], ['Delete', 'Delete']]) {
    await button(page, open).click();
    const said = page.getByRole('dialog').locator('.hint');
    for (const [rate, refusal] of [['0', 'per_second: expected a number from 1'], ['100/s', 'Expected a whole number'], ['5-', 'Expected a whole number']]) {
      await page.getByLabel('Messages per second').fill(rate);
      await inDialog(page, confirm).click();
      await said.getByText(refusal).waitFor();
    }
    await inDialog(page, 'Close').click();
  }
  assert.equal((await call('GET', '/queues/never')).counts.dead, 3);
});

const READY = encodeURIComponent('{"/state":"ready"}');
const bulkOf = async (queue) => (await call('GET', '/bulk')).bulks.findLast((bulk) => bulk.filter.queue === queue && !bulk.dry_run);

/** Begins to hold all of so many messages, which the server does at a rate that the page does not know of. */
async function holdSlowly(page, queue, count, rate) {
  await call('POST', `/queues/${queue}/messages`, { messages: Array(count).fill({ payload: 'a' }) });
  await page.route('**/v1/bulk', (route) => {
    const request = route.request().postDataJSON();
    return route.continue({ postData: JSON.stringify(request.dry_run ? request : { ...request, per_second: rate }) });
  });
  await page.open(`queues/${queue}/messages?where=${READY}`);
  await page.getByLabel('Change all that match').selectOption('hold');
  await button(page, 'Preview…').click();
  await inDialog(page, 'Hold all').click();
  await inDialog(page, 'Stop').waitFor();
}

flow('a bulk goes on when its dialog is closed, and the list follows at its end', async (page) => {
  await holdSlowly(page, 'closed', 12, 5);
  await page.keyboard.press('Escape');
  await page.getByText('No message matches').waitFor();
  const bulk = await bulkOf('closed');
  assert.deepEqual([bulk.state, bulk.changed], ['done', 12]);
});

flow('a bulk ends by Stop', async (page) => {
  await holdSlowly(page, 'halfway', 100, 5);
  await inDialog(page, 'Stop').click();
  await page.getByText('changed until it was stopped').waitFor();
  assert.equal((await bulkOf('halfway')).state, 'cancelled');
});

flow('the messages that match are looked for again after a bulk', async (page) => {
  await call('POST', '/queues/fresh/messages', { messages: Array(2).fill({ payload: 'a', tags: ['red'] }) });
  await page.open('queues/fresh/messages?tag=red');
  await button(page, 'Preview…').click();
  await inDialog(page, 'Cancel all').click();
  await page.getByText('2 messages changed.').waitFor();
  await inDialog(page, 'Close').click();
  await page.getByText('No message matches').waitFor();
});

flow('the dead letters of a group are looked for again after it is redriven', async (page) => {
  await makeDead(call, 'regrouped', ['smtp: 451', 'no such user']);
  await page.open('queues/regrouped/dead?error=no such user');
  await page.getByRole('region', { name: 'Dead letters of the group' }).waitFor();
  await page.getByRole('row', { name: /no such user/ }).first().getByRole('button', { name: 'Redrive' }).click();
  await inDialog(page, 'Redrive').click();
  await page.getByText('1 message changed.').waitFor();
  await inDialog(page, 'Close').click();
  await page.getByText('No message matches').waitFor();
});

flow('a move is counted once its queue is written, and by what a move may touch', async (page) => {
  await call('PUT', '/queues/elsewhere', {});
  await call('POST', '/queues/moved/messages', { messages: Array(5).fill({ payload: 'a' }) });
  await call('POST', '/queues/moved/receive', { max: 3 });
  await page.open('queues/moved/messages');
  await page.getByLabel('Change all that match').selectOption('move');
  await button(page, 'Preview…').click();
  await page.getByText('the messages are counted then').waitFor();
  assert.ok(await inDialog(page, 'Move all').isDisabled());
  const counts = () => page.asked.filter((url) => url.endsWith('/v1/bulk')).length;
  assert.equal(counts(), 0);
  await page.getByLabel('To queue').pressSequentially('else', { delay: 40 });
  await page.getByRole('alert').getByText('queue "else" does not exist').waitFor();
  await page.keyboard.type('where', { delay: 40 });
  assert.equal(await page.locator('.preview-count').textContent(), '2 messages');
  assert.equal(counts(), 2);
});

flow('a count ends with its dialog', async (page) => {
  await call('POST', '/queues/counted/messages', { payload: 'a' });
  await page.route('**/v1/bulk/*', (route) => (route.request().method() === 'GET' ? route.fulfill({ json: { state: 'running', scanned: 0, total: 1, changed: 0 } }) : route.continue()));
  await page.open('queues/counted/messages');
  const asked = page.waitForRequest((request) => request.method() === 'GET' && request.url().includes('/v1/bulk/'));
  await button(page, 'Preview…').click();
  const address = (await asked).url();
  const ended = page.waitForRequest((request) => request.method() === 'DELETE');
  await inDialog(page, 'Close').click();
  assert.equal((await ended).url(), address);
});

flow('a count that finds no place is tried again', async (page) => {
  await call('POST', '/queues/slow/messages', { messages: Array(100).fill({ payload: 'a' }) });
  const slow = await Promise.all(Array.from({ length: 8 }, () => call('POST', '/bulk', { action: 'hold', filter: { queue: 'slow' }, per_second: 1 })));
  await page.open('queues/slow/messages');
  await button(page, 'Preview…').click();
  await page.getByRole('alert').getByText('too many bulks').waitFor();
  for (const { bulk } of slow) await call('DELETE', `/bulk/${bulk}`);
  await inDialog(page, 'Try again').click();
  assert.equal(await page.locator('.preview-count').textContent(), '100 messages');
});

flow('what is no filter is said beside its field, and neither searched for nor changed', async (page) => {
  await call('POST', '/queues/wide/messages', { messages: [{ payload: 'a', headers: { to: 'ann' } }, { payload: 'b' }] });
  for (const [label, text] of [['Header', 'to=ann'], ['Filter', 'null'], ['Filter', '0'], ['Filter', '""'], ['Filter', '[]'], ['Filter', '{"/tags":'], ['Filter', '{"/size_bytes":{"ge":1},"/size_bytes":{"ge":9}}'], ['Filter', '{"/payload/id":9007199254740993}']]) {
    await page.open('queues/wide/messages');
    await settled(page);
    await page.getByLabel(label, { exact: true }).fill(text);
    await page.locator('.field .bad-text').getByText('Expected').waitFor();
    assert.equal(await button(page, 'Preview…').count(), 0, text);
    assert.equal(await page.getByRole('table').count(), 0, text);
    assert.equal(await page.getByText('Looked at').count(), 0, text);
  }
  await page.open('queues/wide/messages');
  await page.getByLabel('Header').fill('to: ann');
  await page.getByText('Looked at 2 of 2 messages.').waitFor();
  assert.equal(await page.locator('tbody tr').count(), 1);
});

flow('a bulk is followed on when the server did not answer for a while', async (page) => {
  await call('POST', '/queues/followed/messages', { payload: 'a' });
  let asked = 0;
  await page.route('**/v1/bulk/*', (route) => {
    asked += 1;
    if (asked === 2) return route.abort();
    return asked === 3 ? route.fulfill({ status: 503, json: { error: { code: 'no_leader', message: 'nobody leads' } } }) : route.continue();
  });
  await page.open('queues/followed/messages');
  await page.getByLabel('Change all that match').selectOption('hold');
  await button(page, 'Preview…').click();
  await page.getByText('1 message').first().waitFor();
  await inDialog(page, 'Hold all').click();
  await page.getByText('1 message changed.').waitFor();
  assert.ok(asked > 3);
});

flow('a dialog stays when somebody clicks beside it, and says which message it is about', async (page) => {
  const { ids: [id] } = await call('POST', '/queues/beside/messages', { messages: [{ payload: 'a' }] });
  await page.open(`messages/${id}`);
  await button(page, 'Cancel').click();
  await page.getByRole('dialog').getByRole('heading', { name: `Cancel ${id}` }).waitFor();
  await page.mouse.click(5, 5);
  await inDialog(page, 'Cancel the message').click();
  await page.waitForURL(/messages(\?|$)/);
  assert.equal((await call('GET', '/queues/beside')).counts.ready, 0);
});

flow('a message whose outcome is unknown is sent again under the same key', async (page) => {
  const keys = [];
  await page.route('**/v1/queues/twice/messages', async (route) => {
    keys.push(route.request().headers()['idempotency-key']);
    const answer = await route.fetch();
    await (keys.length === 1 ? route.fulfill({ status: 503, json: { error: { code: 'outcome_unknown', message: 'it may be stored' } } }) : route.fulfill({ response: answer }));
  });
  await page.open('send?queue=twice');
  await page.getByLabel('Payload', { exact: true }).fill('a');
  await button(page, 'Send').click();
  await page.getByRole('alert').getByText('it may be stored').waitFor();
  await button(page, 'Send').click();
  await page.getByText('Sent as').waitFor();
  assert.equal(keys[0], keys[1]);
  assert.equal((await call('GET', '/queues/twice')).counts.ready, 1);
});
