// Every view: without faults, accessible in both themes, and not wider than a phone.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import AxeBuilder from '@axe-core/playwright';
import { makeEverything, settled, start } from './support.mjs';

const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
const PHONE = { width: 390, height: 844 };
let world;
let views;

before(async () => {
  world = await start();
  views = await makeEverything(world.call);
});
after(() => world.stop());

const described = ({ violations }) => violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html, failureSummary }) => `${html}\n  ${failureSummary}`).join('\n')}`);

/** All rules, or those of colours only. */
async function look(page, rules) {
  const axe = new AxeBuilder({ page }).setLegacyMode(true);
  return described(await (rules ? axe.withRules(rules) : axe.withTags(TAGS)).analyze());
}

test('axe finds nothing in any view, in both themes', async () => {
  const page = await world.page({ colorScheme: 'light' });
  const found = [];
  for (const view of views) {
    await page.emulateMedia({ colorScheme: 'light' });
    await page.open(view);
    await settled(page);
    found.push(...(await look(page)).map((text) => `${view}: ${text}`));
    await page.emulateMedia({ colorScheme: 'dark' });
    found.push(...(await look(page, ['color-contrast'])).map((text) => `${view}, dark: ${text}`));
  }
  assert.deepEqual(found, []);
  assert.deepEqual(page.faults, []);
});

test('no view scrolls sideways on a phone, nor asks another place', async () => {
  const page = await world.page({ viewport: PHONE });
  for (const view of views) {
    await page.open(view);
    await settled(page);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(over <= 0, `${view} is ${over} px too wide`);
  }
  await page.getByRole('button', { name: 'Menu' }).click();
  await page.getByRole('link', { name: 'Locks' }).click();
  await page.getByRole('heading', { name: 'Locks' }).waitFor();
  const elsewhere = page.asked.filter((url) => !url.startsWith(world.base));
  assert.deepEqual(elsewhere, []);
  assert.deepEqual(page.faults, []);
});

test('axe finds nothing in dialogs and the palette', async () => {
  const page = await world.page();
  const check = async (what) => {
    assert.deepEqual(await look(page), [], what);
    await page.keyboard.press('Escape');
  };
  await page.open('queues/invoices');
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByText('This deletes the queue').waitFor();
  await check('delete dialog');
  await page.keyboard.press('Control+k');
  await page.getByRole('option', { name: 'invoices' }).waitFor();
  await check('palette');
});

test('the theme switch wins over the system, and is remembered', async () => {
  const page = await world.page({ colorScheme: 'light' });
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.open('');
  await settled(page);
  const light = await background();
  await page.getByRole('button', { name: 'Theme: system' }).click();
  const dark = await background();
  assert.notEqual(dark, light);
  await page.reload();
  await page.getByRole('button', { name: 'Theme: dark' }).waitFor();
  assert.equal(await background(), dark);
});
