// What people do with the console, from the first click to what the server then has.

import assert from 'node:assert/strict';
import { PUSHING, button, inDialog, makeDead, settled, worldOfFlows } from './support.mjs';

const { world, flow, call } = worldOfFlows();

flow('find a dead letter, read its error, edit and resend it', async (page) => {
  const [, id] = await makeDead(call, 'resend', ['smtp: 451', 'no such user']);
  await page.open('dead-letters');
  await page.getByRole('link', { name: 'resend' }).click();
  await button(page, 'no such user').click();
  await page.getByRole('region', { name: 'Dead letters of the group' }).getByRole('link', { name: id }).click();
  await page.getByText('Error of the last attempt').waitFor();
  assert.equal(await page.locator('.error-text').first().textContent(), 'no such user');
  await page.getByRole('link', { name: 'Edit and resend' }).click();
  await page.getByLabel('Payload', { exact: true }).fill('{"number":1,"user":"bob"}');
  await page.getByLabel('Delete the original message').check();
  await button(page, 'Send').click();
  await page.getByText('The original is deleted.').waitFor();
  const { counts } = await call('GET', '/queues/resend');
  assert.deepEqual([counts.ready, counts.dead], [1, 1]);
  const { messages } = await call('POST', '/queues/resend/receive');
  assert.equal(messages[0].payload, '{"number":1,"user":"bob"}');
  assert.deepEqual(messages[0].headers, { to: 'ann' });
});

flow('purge a queue, with a preview', async (page) => {
  await call('POST', '/queues/purged/messages', { messages: [{ payload: 'a' }, { payload: 'b' }, { payload: 'c', delay_ms: 60_000 }] });
  await page.open('queues/purged');
  await button(page, 'Purge').click();
  assert.equal(await page.locator('.preview-count').textContent(), '3 waiting messages');
  await inDialog(page, 'Purge').click();
  await page.getByText('3 messages dropped.').waitFor();
  assert.equal((await call('GET', '/queues/purged')).counts.ready, 0);
});

flow('pause a queue and resume it', async (page) => {
  await call('PUT', '/queues/halted', {});
  await page.open('queues/halted');
  await button(page, 'Pause').click();
  await page.getByText('it accepts messages and delivers none').waitFor();
  assert.equal((await call('GET', '/queues/halted')).settings.paused, true);
  await button(page, 'Resume').click();
  await button(page, 'Pause').waitFor();
  assert.equal((await call('GET', '/queues/halted')).settings.paused, false);
});

flow('redrive a group of dead letters at a rate', async (page) => {
  await makeDead(call, 'again', [...Array(6).fill('smtp: 451'), 'no such user']);
  await page.open('queues/again/dead');
  await page.getByRole('row', { name: /smtp: 451/ }).first().getByRole('button', { name: 'Redrive' }).click();
  assert.equal(await page.locator('.preview-count').textContent(), '6 messages');
  await page.getByLabel('Messages per second').fill('3');
  const begun = Date.now();
  await inDialog(page, 'Redrive').click();
  await page.getByText('The server changes 3 a second').waitFor();
  await page.getByRole('dialog').getByRole('link', { name: 'Bulks' }).click();
  const bulk = page.getByRole('row', { name: /smtp: 451/ }).filter({ hasText: '3/s' });
  await bulk.getByText('done').waitFor();
  assert.equal(await page.getByRole('dialog').count(), 0);
  assert.ok(Date.now() - begun >= 1600);
  const { counts } = await call('GET', '/queues/again');
  assert.deepEqual([counts.ready, counts.dead], [6, 1]);
});

flow('stop a bulk at a rate', async (page) => {
  await call('POST', '/queues/stopped/messages', { messages: Array(20).fill({ payload: '' }) });
  await page.open('queues/stopped/messages');
  await page.getByLabel('Change all that match').selectOption('hold');
  await button(page, 'Preview…').click();
  await page.getByLabel('Messages per second').fill('1');
  await inDialog(page, 'Hold all').click();
  await page.getByRole('dialog').getByRole('link', { name: 'Bulks' }).click();
  const bulk = page.getByRole('row', { name: /queue stopped/ }).filter({ hasText: '1/s' });
  await bulk.getByRole('button', { name: 'Stop' }).click();
  await bulk.getByText('cancelled').waitFor();
  assert.ok((await call('GET', '/queues/stopped')).counts.ready > 10);
});

flow('delete the dead letters without an error text', async (page) => {
  await makeDead(call, 'silent', ['smtp: 451', undefined, undefined]);
  await page.open('queues/silent/dead');
  await page.getByRole('row', { name: /without an error text/ }).getByRole('button', { name: 'Delete' }).click();
  assert.equal(await page.locator('.preview-count').textContent(), '2 messages');
  await inDialog(page, 'Delete').click();
  await page.getByText('2 messages changed.').waitFor();
  assert.equal((await call('GET', '/queues/silent')).counts.dead, 1);
});

flow('redrive all dead letters at a rate, by the server', async (page) => {
  await makeDead(call, 'slowly', Array(20).fill('no text'));
  await page.open('queues/slowly/dead');
  await button(page, 'Redrive all').click();
  await page.getByLabel('Messages per second').fill('1');
  await inDialog(page, 'Redrive all').click();
  await page.getByText('will be redriven at 1 a second').waitFor();
  await inDialog(page, 'Close').click();
  await button(page, 'End the redrive').click();
  await button(page, 'End the redrive').waitFor({ state: 'detached' });
  assert.equal((await call('GET', '/queues/slowly')).redriving, undefined);
});

flow('approve a held message', async (page) => {
  const { id } = await call('POST', '/queues/pay/messages', { payload: 'pay 9,000', hold: true });
  await page.open('');
  await page.getByRole('link', { name: 'Show queues' }).click();
  await page.getByRole('row', { name: /pay/ }).getByRole('link', { name: '1', exact: true }).click();
  await page.getByRole('link', { name: id }).click();
  await button(page, 'Approve').click();
  await page.getByLabel('Why').fill('checked with the customer');
  await inDialog(page, 'Approve the message').click();
  await page.getByText('Done.').waitFor();
  await inDialog(page, 'Close').click();
  await page.getByText('checked with the customer').waitFor();
  assert.equal((await call('GET', `/messages/${id}`)).state, 'ready');
});

flow('cancel all messages with a tag, by a bulk with a preview', async (page) => {
  await call('POST', '/queues/tagged/messages', { messages: [{ payload: 'a', tags: ['red'] }, { payload: 'b', tags: ['red'] }, { payload: 'c' }] });
  await page.open('queues/tagged/messages');
  await page.getByLabel('Tag', { exact: true }).fill('red');
  await button(page, 'Preview…').click();
  assert.equal(await page.locator('.preview-count').textContent(), '2 messages');
  await inDialog(page, 'Cancel all').click();
  await page.getByText('2 messages changed.').waitFor();
  assert.equal((await call('GET', '/queues/tagged')).counts.ready, 1);
});

flow('find a message by what is in its payload, and by a filter', async (page) => {
  const { ids } = await call('POST', '/queues/found/messages', { messages: [{ payload: '{"total":7}' }, { payload: '{"total":120}' }, { payload: 'no JSON' }] });
  const shows = (id) => page.getByRole('link', { name: id });
  await page.open('queues/found/messages');
  await shows(ids[0]).waitFor();
  await page.getByLabel('Payload or id contains').fill('no J');
  await page.getByText('Looked at 3 of 3 messages.').waitFor();
  assert.deepEqual([await shows(ids[0]).count(), await shows(ids[2]).count()], [0, 1]);
  await page.getByLabel('Payload or id contains').fill('');
  await page.getByLabel('Filter', { exact: true }).fill('{"/payload/total":{"ge":100}}');
  await shows(ids[1]).waitFor();
  await shows(ids[2]).waitFor({ state: 'detached' });
  assert.equal(await shows(ids[0]).count(), 0);
});

flow('a search tells which index it has used', async (page) => {
  await call('PUT', '/queues/indexed', { search_index: 'tags' });
  const { ids } = await call('POST', '/queues/indexed/messages', { messages: [{ payload: 'a', tags: ['red'] }, { payload: 'b' }, { payload: 'c' }] });
  await page.open('queues/indexed');
  await page.getByText('search index').waitFor();
  await page.open('queues/indexed/messages');
  await page.getByLabel('Tag', { exact: true }).fill('red');
  await page.getByText(/^Looked at [0-3] messages, by the index of tags\./).waitFor();
  assert.equal(await page.getByRole('link', { name: ids[0] }).count(), 1);
  await page.open('queues/indexed/settings');
  assert.equal(await page.getByLabel('search_index').inputValue(), 'tags');
});

flow('see why pushes fail, pause and resume them', async (page) => {
  await call('PUT', '/queues/hooks', PUSHING);
  const { id } = await call('POST', '/queues/hooks/messages', { payload: 'hello' });
  await page.open('queues/hooks/pushes');
  const push = page.getByRole('row', { name: id });
  await push.getByText('failed').waitFor();
  await push.getByText('is refused').waitFor();
  await button(page, 'Pause pushes').click();
  await page.getByText('The pushes are paused').waitFor();
  assert.equal((await call('GET', '/queues/hooks')).settings.push_paused, true);
  await button(page, 'Resume pushes').click();
  await button(page, 'Pause pushes').waitFor();
  assert.notEqual((await call('GET', '/queues/hooks')).settings.push_paused, true);
});

flow('create a schedule and run it now', async (page) => {
  await page.open('schedules');
  await page.getByRole('link', { name: 'New schedule' }).click();
  await page.getByLabel('Name').fill('daily');
  await page.getByLabel('Queue', { exact: false }).first().fill('reports');
  await page.getByLabel('Cron expression').fill('nonsense');
  await page.getByLabel('Payload', { exact: true }).fill('the daily report');
  await button(page, 'Create').click();
  await page.getByRole('alert').waitFor();
  await page.getByLabel('Cron expression').fill('0 9 * * MON-FRI');
  await page.getByLabel('Time zone').fill('Europe/Berlin');
  await button(page, 'Create').click();
  await page.getByText('Next times').waitFor();
  assert.equal(await page.locator('ol time').count(), 20);
  await button(page, 'Run now').click();
  await inDialog(page, 'Send the message').click();
  await page.getByText('Sent as').waitFor();
  const { messages } = await call('POST', '/queues/reports/receive');
  assert.equal(messages[0].payload, 'the daily report');
});

flow('break a lock', async (page) => {
  await call('POST', '/locks', { key: 'orders/17', owner: 'worker-3', ttl_ms: 600_000 });
  await page.open('locks');
  await page.getByRole('link', { name: 'orders/17' }).click();
  await button(page, 'Break').click();
  await page.getByText('This ends the grants of').waitFor();
  await inDialog(page, 'Break the lock').click();
  await page.getByText('1 holder lost the lock.').waitFor();
  assert.equal((await call('GET', '/locks/orders%2F17')).holder_count, 0);
});

flow('edit a document while somebody else writes it', async (page) => {
  const write = (colour) => call('PUT', '/documents/config%2Fweb', { content: `{"colour":"${colour}"}`, content_type: 'application/json', history: 5 });
  await write('red');
  await page.open('documents');
  await page.getByRole('link', { name: 'config/web' }).click();
  await button(page, 'Edit').click();
  await page.getByLabel('Content', { exact: true }).fill('{"colour":"blue"}');
  assert.equal(await page.getByRole('heading', { name: 'Versions that are kept' }).count(), 0, 'another version would end the edit');
  await write('green');
  await button(page, 'Save').click();
  await page.getByText('Somebody else was faster.').waitFor();
  await page.getByText('{"colour":"green"}').waitFor();
  await button(page, 'Keep mine, to replace version 2').click();
  await button(page, 'Save').click();
  await page.getByText('"blue"').waitFor();
  const stored = await call('GET', '/documents/config%2Fweb');
  assert.deepEqual([stored.version, stored.content], [3, '{"colour":"blue"}']);
});

flow('declare an index of documents, find by it, and drop it', async (page) => {
  await call('PUT', '/documents/orders%2F17', { content: '{"state":"paid"}', content_type: 'application/json' });
  await page.open('documents');
  await button(page, 'New index').click();
  await page.getByLabel('Name').fill('state');
  await page.getByLabel('JSON pointer').fill('state');
  await inDialog(page, 'Declare').click();
  await page.getByRole('alert').getByText('pointer').first().waitFor();
  await page.getByLabel('JSON pointer').fill('/state');
  await inDialog(page, 'Declare').click();
  await page.getByText('The index is declared').waitFor();
  await inDialog(page, 'Close').click();
  const index = page.getByRole('region', { name: 'Indexes' }).getByRole('row', { name: '/state' });
  await index.getByText('ready').waitFor();
  await page.getByLabel('Filter').fill('{"/state":"paid"}');
  await button(page, 'Find').click();
  await page.getByText('by index state').waitFor();
  await index.getByRole('button', { name: 'Drop' }).click();
  await inDialog(page, 'Drop').click();
  await page.getByText('The index is dropped.').waitFor();
  assert.deepEqual((await call('GET', '/document-indexes')).indexes, []);
});

flow('attach a file to a document, replace it only when asked to, and delete it', async (page) => {
  await call('PUT', '/documents/report', { content: 'see the file' });
  const attach = async (text, replace) => {
    await button(page, 'Upload').click();
    await page.locator('input[type=file]').setInputFiles({ name: 'table.csv', mimeType: 'text/csv', buffer: Buffer.from(text) });
    if (replace) await page.getByLabel('Replace an attachment').check();
    await inDialog(page, 'Upload').click();
  };
  const stored = () => fetch(`${world.base}/v1/documents/report/attachments/raw?name=table.csv`);
  await page.open('documents/report');
  await attach('a;b');
  await page.getByText('3 B are attached as table.csv.').waitFor();
  await inDialog(page, 'Close').click();
  const row = page.getByRole('region', { name: 'Attachments' }).getByRole('row', { name: 'table.csv' });
  await row.getByText('text/csv').waitFor();
  await attach('c;d;e');
  await page.getByRole('alert').getByText('version_mismatch').waitFor();
  await inDialog(page, 'Close').click();
  await attach('c;d;e', true);
  await page.getByText('5 B are attached').waitFor();
  await inDialog(page, 'Close').click();
  assert.equal(await (await stored()).text(), 'c;d;e');
  const [download] = await Promise.all([page.waitForEvent('download'), row.getByRole('link', { name: 'table.csv' }).click()]);
  assert.equal(download.suggestedFilename(), 'table.csv');
  await row.getByRole('button', { name: 'Delete' }).click();
  await inDialog(page, 'Delete').click();
  await page.getByText('The attachment is deleted.').waitFor();
  assert.equal((await stored()).status, 404);
});

flow('send a message, and see it as an event', async (page) => {
  const watcher = await world.page();
  await watcher.open('events?queue=mail.*');
  await watcher.getByText('0 events').waitFor();
  await watcher.waitForTimeout(500);
  await page.open('send');
  await page.getByLabel('Queue', { exact: false }).first().fill('mail.eu');
  await page.getByLabel('Payload', { exact: true }).fill('hello');
  await page.getByLabel('Headers').fill('to: ann\nfrom: bob');
  await page.getByLabel('Priority').fill('7');
  await page.getByLabel('Delay').fill('soon');
  await button(page, 'Send').click();
  await page.getByRole('alert').getByText('Expected a duration').waitFor();
  await page.getByLabel('Delay').fill('');
  await button(page, 'Send').click();
  await page.getByRole('link', { name: /^0000/ }).click();
  await page.getByText('mail.eu').first().waitFor();
  await page.reload();
  await page.getByText('hello').waitFor();
  await watcher.getByRole('region', { name: 'Events' }).getByText('sent').waitFor();
  const { messages } = await call('POST', '/queues/mail.eu/receive');
  assert.deepEqual([messages[0].payload, messages[0].priority, messages[0].headers], ['hello', 7, { to: 'ann', from: 'bob' }]);
  await watcher.context().close();
});

flow('change a setting; a refusal stands beside its field', async (page) => {
  await call('PUT', '/queues/tuned', {});
  await page.open('queues/tuned/settings');
  await page.getByLabel('lease_ms').fill('2m');
  await page.getByLabel('dead_letter_queue').fill('tuned');
  await button(page, 'Save').click();
  await page.getByRole('alert').getByText('tuned').first().waitFor();
  await page.getByLabel('dead_letter_queue').fill('');
  await button(page, 'Save').click();
  await page.getByText('The settings are in force.').waitFor();
  assert.equal((await call('GET', '/queues/tuned')).settings.lease_ms, 120_000);
});

flow('go to a queue by the keyboard only', async (page) => {
  await call('PUT', '/queues/far.away', {});
  await page.open('');
  await settled(page);
  await page.keyboard.press('Control+k');
  await page.keyboard.type('far.');
  await page.getByRole('option', { name: 'far.away' }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'far.away' }).waitFor();
  await page.keyboard.press('Control+k');
  await page.keyboard.type('live');
  await page.getByRole('option', { name: 'Live events' }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Live events' }).waitFor();
  await page.goBack();
  await page.getByRole('heading', { name: 'far.away' }).waitFor();
});

flow('at most 100 events a second are shown, the rest is counted', async (page) => {
  await page.open('events?queue=flood&type=sent');
  await page.getByText('0 events').waitFor();
  await page.waitForTimeout(500);
  await call('POST', '/queues/flood/messages', { messages: Array(1000).fill({ payload: '' }) });
  await page.getByText(/^1,000 events, [\d,]+ of them not shown/).waitFor();
  assert.ok((await page.locator('tbody tr').count()) <= 200);
});
