// The settings of a queue as a form: what is saved, what is refused, and what the form then says.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { start } from './support.mjs';

const PUSH = { push_url: 'https://example.com/hooks', push_headers: { a: 'b' }, fair_weights: { ann: 3 } };
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYqrTwjU';

let world;

before(async () => {
  world = await start();
});
after(() => world.stop());

/** Runs a test on the settings of a queue; `save(values)` writes them into the fields. */
const form = (name, run) =>
  test(name, async (t) => {
    await world.call('PUT', '/queues/tuned', PUSH);
    const page = await world.page();
    t.after(() => page.context().close());
    page.setDefaultTimeout(8000);
    await page.open('queues/tuned/settings');
    const field = (of) => page.getByLabel(of, { exact: true });
    const save = async (values) => {
      for (const [of, text] of Object.entries(values)) await field(of).fill(text);
      await page.getByRole('button', { name: 'Save' }).click();
    };
    const inForce = () => page.getByText('The settings are in force.').waitFor();
    const stored = async () => (await world.call('GET', '/queues/tuned')).settings;
    await run({ page, field, save, inForce, stored });
    assert.deepEqual(page.faults, []);
  });

form('values are shown as the server has them once they are saved', async ({ page, field, save, inForce, stored }) => {
  await save({ lease_ms: '90s', backoff: '{ "kind": "fixed", "base_ms": 5 }' });
  await inForce();
  assert.equal(await field('lease_ms').inputValue(), '1m30s');
  assert.deepEqual(JSON.parse(await field('backoff').inputValue()), (await stored()).backoff);
  await page.getByText('Nothing is changed').waitFor();
  assert.equal((await stored()).lease_ms, 90_000);
});

form('a secret is not shown any longer than until it is saved', async ({ field, save, inForce, stored }) => {
  await save({ push_secrets: JSON.stringify([SECRET]) });
  await inForce();
  assert.match(await field('push_secrets').inputValue(), /^\["sha256:[0-9a-f]+"\]$/);
  await save({ push_secrets: '' });
  await inForce();
  assert.equal((await stored()).push_secrets, undefined);
});

form('a field of names with values that is emptied ends them', async ({ save, inForce, stored }) => {
  await save({ push_headers: '', fair_weights: ' ' });
  await inForce();
  assert.deepEqual([(await stored()).push_headers, (await stored()).fair_weights], [undefined, undefined]);
});

for (const name of ['lease_ms', 'max_attempts', 'backoff']) {
  form(`${name} without a value is refused beside its field`, async ({ page, field, save, inForce, stored }) => {
    const before = await stored();
    await save({ [name]: '', description: `with ${name}` });
    await page.getByRole('alert').getByText(`${name} needs a value`).waitFor();
    assert.equal(await field(name).getAttribute('aria-invalid'), 'true');
    assert.deepEqual(await stored(), before);
    await save({ [name]: name === 'backoff' ? JSON.stringify(before.backoff) : '7' });
    await inForce();
    assert.equal((await stored()).description, `with ${name}`);
  });
}
