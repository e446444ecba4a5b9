// What the console may cost: its size, and the time until it shows something.

import assert from 'node:assert/strict';
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { start } from './support.mjs';

const ASSETS = fileURLToPath(new URL('../../crates/console/assets/', import.meta.url));
const SIZE_MAX = 300 * 1024;
const LINES_MAX = 300;
const FIRST_DATA_MS = 500;
const QUEUES = 10_000;
/** Messages of one more queue, by `scripts/test-console --messages N`. */
const MESSAGES = Number(process.env.SLUICE_CONSOLE_MESSAGES ?? 0);
const ROUNDS = 8;
const ANSWERS_MAX = 512 * 1024;

/** Other work on the machine is no fault of the console: the time counts as if it had a core to itself. */
const allowance = () => FIRST_DATA_MS * Math.max(1, loadavg()[0] / availableParallelism());

const files = readdirSync(ASSETS, { recursive: true }).map((name) => join(ASSETS, name)).filter((name) => statSync(name).isFile());
const own = files.filter((name) => /\.(js|css|html)$/.test(name) && !name.includes('/vendor/'));

test('all files together have at most 300 KiB', () => {
  const size = files.reduce((sum, name) => sum + statSync(name).size, 0);
  assert.ok(size <= SIZE_MAX, `${size} bytes`);
});

test('own files are small', () => {
  const long = own.filter((name) => readFileSync(name, 'utf8').split('\n').length > LINES_MAX);
  assert.deepEqual(long, []);
});

test('nothing is inline, and no other place is named', () => {
  const html = readFileSync(join(ASSETS, 'index.html'), 'utf8');
  assert.doesNotMatch(html, /<style|<script(?![^>]*src=)|\sstyle=|\son\w+=/);
  for (const name of own) assert.doesNotMatch(readFileSync(name, 'utf8'), /https?:\/\/(?!www\.w3\.org)/, name);
});

/** The modules that a module needs before it runs, with their own. */
function needed(file, known = new Set()) {
  for (const [, path] of readFileSync(file, 'utf8').matchAll(/^(?:import|export (?:\*|\{)) ?[^;]*?from '(\..*?)';/gms)) {
    const target = join(file, '..', path);
    if (!known.has(target)) needed(target, known.add(target));
  }
  return known;
}

test('the page names all modules that it needs at once, so that they load side by side', () => {
  const html = readFileSync(join(ASSETS, 'index.html'), 'utf8');
  const named = [...html.matchAll(/modulepreload" href="\/console\/([^"]+)"/g)].map(([, path]) => join(ASSETS, path));
  assert.deepEqual(named.sort(), [...needed(join(ASSETS, 'js/main.js'))].sort());
});

describe(`with ${QUEUES} queues${MESSAGES ? ` and ${MESSAGES} messages` : ''}`, () => {
  let world;
  before(async () => {
    world = await start();
    // A group creates the queues of all its messages in one call.
    const messages = Array.from({ length: QUEUES }, (_, at) => ({ queue: `q${String(at).padStart(5, '0')}`, payload: 'hello' }));
    await world.call('POST', '/groups', { messages, callback: { queue: 'ended', payload: '' } });
    if (MESSAGES) await world.sendLines('backlog', MESSAGES);
  });
  after(() => world.stop());

  const queue = MESSAGES ? 'backlog' : 'q07777';
  for (const [view, sign] of [['queues', 'th[scope=row]'], [`queues/${queue}`, '.figure-value'], ['', '.facts dd'], [`queues/${queue}/messages`, 'th[scope=row]']]) {
    test(`first data of /${view} within ${FIRST_DATA_MS} ms`, async (t) => {
      const page = await world.page();
      t.after(() => page.context().close());
      await page.open('send'); // The browser itself has started.
      const times = [];
      let received = 0;
      page.on('response', async (answer) => {
        if (answer.url().includes('/v1/') && !answer.url().includes('/statistics')) received = Math.max(received, (await answer.body().catch(() => '')).length);
      });
      for (let round = 0; round < ROUNDS && (MESSAGES || !(Math.min(...times) <= allowance())); round += 1) {
        const begun = Date.now();
        await page.open(view);
        await page.locator(sign).first().waitFor();
        times.push(Date.now() - begun);
      }
      assert.ok(received <= ANSWERS_MAX, `an answer of ${received} bytes: a list has to come in pages`);
      t.diagnostic(`${times} ms`);
      assert.ok(Math.min(...times) <= allowance(), `${times} ms`);
    });
  }
});
