// Pictures of the console with a server that has some work to do. Usage: node screenshots.mjs FOLDER

import { join } from 'node:path';
import { makeDead, start } from './support.mjs';

const SIZE = { width: 1280, height: 800 };
const BUSY_MS = 20_000;
const ERRORS = [...Array(9).fill('smtp: 451 greylisted, try again'), ...Array(4).fill('no such user'), 'connection refused: db.internal:5432'];

async function makeState(call) {
  await makeDead(call, 'invoices', ERRORS);
  for (const queue of ['emails', 'orders', 'reports', 'thumbnails']) await call('PUT', `/queues/${queue}`, { max_attempts: 3, backoff: { kind: 'fixed', base_ms: 400 } });
  await call('POST', '/queues/orders/messages', { payload: 'order 17', hold: true });
  const { ids } = await call('POST', '/queues/emails/messages', {
    messages: [
      { payload: '{"template":"invoice","lines":[{"sku":"a1","count":2},{"sku":"b7","count":1}],"paid":false}', content_type: 'application/json', headers: { to: 'ann@example.org' }, tags: ['billing'] },
      { payload: 'and then', depends_on: ['#0'], chain: [{ queue: 'reports' }] },
      { payload: 'and also', depends_on: ['#0'] },
    ],
  });
  const fail = async (error) => {
    const { messages } = await call('POST', '/queues/emails/receive', { wait_ms: 2000, consumer: 'mailer-1' });
    await new Promise((resolve) => setTimeout(resolve, 120));
    await call('POST', '/nack', { receipt: messages[0].receipt, error });
  };
  await fail('smtp: 451 greylisted, try again');
  await fail('smtp: connection timed out');
  await call('POST', '/queues/emails/receive', { wait_ms: 2000, consumer: 'mailer-2', lease_ms: 600_000 });
  return ids[0];
}

/** Sends and settles at a rate that swings, until the time is over. */
async function keepBusy(call, ms) {
  const end = Date.now() + ms;
  for (let round = 0; Date.now() < end; round += 1) {
    const count = 20 + Math.round(12 * Math.sin(round / 4));
    await call('POST', '/queues/thumbnails/messages', { messages: Array(count).fill({ payload: 'picture' }) });
    const { messages } = await call('POST', '/queues/thumbnails/receive', { max: count - (round % 3) });
    const items = messages.map(({ receipt }, at) => (at % 15 ? { receipt, outcome: 'ack' } : { receipt, outcome: 'nack', error: 'too large' }));
    if (items.length) await call('POST', '/settle', { items });
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
}

const world = await start();
try {
  const id = await makeState(world.call);
  const shots = await Promise.all(
    ['light', 'dark'].map(async (theme) => {
      const page = await world.page({ viewport: SIZE, colorScheme: theme, deviceScaleFactor: 1 });
      await page.open('');
      return { theme, page };
    }),
  );
  await keepBusy(world.call, BUSY_MS);
  for (const { theme, page } of shots) {
    await page.screenshot({ path: join(process.argv[2], `console-overview-${theme}.png`) });
    await page.open(`messages/${id}`);
    await page.getByRole('heading', { name: 'Flow' }).waitFor();
    await page.screenshot({ path: join(process.argv[2], `console-message-${theme}.png`), fullPage: true });
  }
} finally {
  await world.stop();
}
