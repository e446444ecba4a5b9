// What the tests share: a server in memory, the console before it, a browser, and calls that make a state.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { after, before, test } from 'node:test';
import { chromium } from 'playwright-core';

const BINARY = process.env.SLUICE_BIN ?? new URL('../../target/debug/sluice', import.meta.url).pathname;
const BROWSER = process.env.CHROMIUM_BIN ?? '/usr/bin/chromium';

/** Starts a program, and answers the first address that it says when it is ready. */
async function startProgram(program, parameters) {
  const child = spawn(program, parameters, { stdio: ['ignore', 'pipe', 'pipe'] });
  const address = await new Promise((resolve, reject) => {
    let said = '';
    const listen = (part) => {
      said += part;
      const found = / at (http:\/\/[\d.]+:\d+)[\s/]/.exec(said);
      if (found) resolve(found[1]);
    };
    child.stdout.on('data', listen);
    child.stderr.on('data', listen);
    child.on('error', reject);
    child.on('exit', () => reject(new Error(`${program} has ended:\n${said}`)));
  });
  return { address, stop: () => child.kill('SIGKILL') };
}

/** Sends so many messages, a number in each, by the command line. */
function sendLines(address, queue, count) {
  const numbers = spawn('seq', [String(count)], { stdio: ['ignore', 'pipe', 'inherit'] });
  const send = spawn(BINARY, ['send', queue, '--lines', '--quiet', '--server', address], { stdio: ['pipe', 'ignore', 'inherit'] });
  numbers.stdout.pipe(send.stdin);
  return new Promise((resolve, reject) => {
    send.on('error', reject);
    send.on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`sluice send has ended with ${code}`))));
  });
}

/** Calls of the API; a body of octets is sent as it is, all others as JSON. */
export function caller(address, token) {
  return async (method, path, body, headers = {}) => {
    const isJson = body !== undefined && !(body instanceof Uint8Array);
    const answer = await fetch(`${address}/v1${path}`, {
      method,
      headers: { ...headers, ...(token && { authorization: `Bearer ${token}` }), ...(isJson && { 'content-type': 'application/json' }) },
      body: isJson ? JSON.stringify(body) : body,
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${text}`);
    return text ? JSON.parse(text) : {};
  };
}

const pathOf = (base, path) => `${base}/console/default${path ? `/${path}` : ''}`;

/**
 * A server, its console, and a browser. `page()` opens a page that records errors and requests; `stop()` ends
 * all of it.
 */
export async function start() {
  const server = await startProgram(BINARY, ['serve', '--memory', '--listen=127.0.0.1:0']);
  const base = server.address;
  const browser = await chromium.launch({ executablePath: BROWSER, args: ['--no-sandbox'] });
  const page = async (options = {}) => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
    const opened = await context.newPage();
    opened.setDefaultTimeout(30_000);
    opened.faults = [];
    opened.asked = [];
    opened.on('pageerror', (error) => opened.faults.push(error.stack));
    opened.on('console', (message) => /Content Security Policy/.test(message.text()) && opened.faults.push(message.text()));
    opened.on('request', (request) => opened.asked.push(request.url()));
    opened.open = (path) => opened.goto(pathOf(base, path));
    return opened;
  };
  const stop = async () => {
    await browser.close();
    server.stop();
  };
  const send = (queue, count) => sendLines(server.address, queue, count);
  return { base, address: server.address, call: caller(server.address), sendLines: send, page, stop };
}

/**
 * A server for all flows of a file. `flow(name, run)` runs one on a page of its own, which must end without
 * faults.
 */
export function worldOfFlows() {
  const world = {};
  before(async () => Object.assign(world, await start()));
  after(() => world.stop());
  const flow = (name, run) =>
    test(name, async (t) => {
      const page = await world.page();
      t.after(() => page.context().close());
      await run(page);
      assert.deepEqual(page.faults, []);
    });
  return { world, flow, call: (...request) => world.call(...request) };
}

export const button = (page, name) => page.getByRole('button', { name, exact: true });
export const inDialog = (page, name) => button(page.getByRole('dialog'), name);

/** Makes dead letters in a queue: one for each error text. */
export async function makeDead(call, queue, errors) {
  await call('PUT', `/queues/${queue}`, { max_attempts: 1 });
  const messages = errors.map((error, at) => ({ payload: JSON.stringify({ number: at, error }), content_type: 'application/json', headers: { to: 'ann' } }));
  const { ids } = await call('POST', `/queues/${queue}/messages`, { messages });
  const taken = await call('POST', `/queues/${queue}/receive`, { max: errors.length, consumer: 'worker-1' });
  const items = taken.messages.map(({ receipt }, at) => ({ receipt, outcome: 'nack', error: errors[at] }));
  await call('POST', '/settle', { items });
  return ids;
}

/** Settings of a queue whose pushes are refused: the server does not connect with itself. */
export const PUSHING = { push_url: 'https://localhost:9/hooks', backoff: { kind: 'fixed', base_ms: 600_000 } };

/** One of everything that a view shows; answers the addresses of all views. */
export async function makeEverything(call) {
  const [dead] = await makeDead(call, 'invoices', ['smtp: 451', 'smtp: 451', 'no such user']);
  await call('PUT', '/queues/paused', { paused: true, description: 'a queue that is paused' });
  await call('POST', '/queues/pay/messages', { payload: 'pay 9,000', hold: true, tags: ['invoice'] });
  const flow = await call('POST', '/queues/pay/messages', {
    messages: [{ payload: 'a' }, { payload: 'b', depends_on: ['#0'], chain: [{ queue: 'next' }], on_failure: { queue: 'trouble' } }],
  });
  await call('PUT', '/limits/smtp', { in_flight_per_key: 1, rate: { count: 50, period_ms: 1000 } });
  await call('PUT', '/queues/mail', { limit: 'smtp' });
  await call('POST', '/queues/mail/messages', { messages: [{ payload: 'x', limit_key: 'ann' }, { payload: 'y', limit_key: 'ann' }] });
  await call('POST', '/queues/mail/receive', { consumer: 'mailer-1', lease_ms: 3_600_000 });
  const { consumers } = await call('GET', '/consumers');
  await call('PUT', '/schedules/daily', { cron: '0 9 * * MON-FRI', time_zone: 'Europe/Berlin', queue: 'reports', message: { payload: 'daily' } });
  await call('POST', '/locks', { key: 'orders/17', owner: 'worker-3', ttl_ms: 1_800_000 });
  for (const state of ['new', 'paid']) await call('PUT', '/documents/config%2Fweb', { content: JSON.stringify({ state }), content_type: 'application/json', history: 5 });
  await call('PUT', '/document-indexes/state', { pointer: '/state' });
  await call('PUT', '/documents/config%2Fweb/attachments/raw?name=logo.svg', Buffer.from('<svg/>'));
  await call('PUT', '/queues/hooks', PUSHING);
  await call('POST', '/queues/hooks/messages', { payload: 'pushed' });
  while (!(await call('GET', '/queues/hooks/pushes')).pushes.length) await new Promise((resolve) => setTimeout(resolve, 50));
  await call('POST', '/transactions/begin', { ttl_ms: 1_800_000 });
  await call('POST', '/bulk', { action: 'hold', filter: { queue: 'pay' }, dry_run: true });
  return [
    '', 'queues', 'queues?show=dead', 'queues/invoices', 'queues/paused', 'queues/invoices/messages', 'queues/pay/messages?tag=invoice', 'queues/invoices/dead',
    'queues/invoices/dead?error=smtp%3A%20451', 'queues/mail/settings', 'queues/mail/pushes', 'queues/hooks/pushes', `messages/${dead}`, `messages/${flow.ids[1]}`, 'dead-letters', 'bulks', 'schedules', 'new-schedule',
    'schedules/daily', 'schedules/daily/edit', 'limits', 'limits/smtp', 'consumers', `consumers/${consumers[0].id}`, 'events', 'send', `send?from=${dead}`, 'locks',
    'locks/orders%2F17', 'documents', 'new-document', 'documents/config%2Fweb', 'documents/config%2Fweb?version=1', 'transactions', 'nodes', 'tokens', 'policy', 'audit', 'nosuchview',
  ];
}

/** Waits until a view shows what it loads. */
export async function settled(page) {
  await page.locator('h1, .empty').first().waitFor();
  await page.waitForFunction(() => !document.querySelector('.loading'));
}
