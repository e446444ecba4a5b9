import { expect } from "vitest";
import { isCode, type Client, type Received } from "../../src/index.js";
import type { Scenario } from "../support/scenario.js";
import { failure, pause } from "../support/until.js";

export const sendAndReceive: Scenario = async (client, queue) => {
  const headers = { to: "ann", "x-last": "1" };
  const { id, duplicate } = await client.send(queue, "hello", { headers, contentType: "text/plain" });
  expect(duplicate).toBe(false);
  const [message, ...others] = await client.receive(queue, { max: 10, waitMs: 2_000 });
  expect(others).toEqual([]);
  expect(message).toMatchObject({ id, queue, headers, contentType: "text/plain", attempt: 1 });
  expect(message?.text()).toBe("hello");
  await message?.ack();
  await message?.ack();
  expect(await client.receive(queue)).toEqual([]);
  expect(isCode(await failure(client.messages.get({ id })), "message_not_found")).toBe(true);
};

export const sendMany: Scenario = async (client, queue) => {
  const messages = Array.from({ length: 1_000 }, (_, index) => ({ payload: `${index}` }));
  const { ids } = await client.sendMany(queue, messages);
  expect(new Set(ids).size).toBe(1_000);
  const received = new Map<string, string>();
  while (received.size < 1_000) {
    const batch = await client.receive(queue, { max: 300, waitMs: 2_000 });
    expect(batch.length).toBeGreaterThan(0);
    for (const message of batch) {
      expect(received.has(message.id)).toBe(false);
      received.set(message.id, message.text());
    }
    const settled = await client.settle(batch.map(({ receipt }) => ({ receipt, outcome: "ack" })));
    expect(settled.every(({ ok }) => ok)).toBe(true);
  }
  expect(ids.map((id) => received.get(id))).toEqual(messages.map(({ payload }) => payload));
  expect(await client.receive(queue)).toEqual([]);
};

export const sendOptions: Scenario = async (client, queue) => {
  await priorityGoesFirst(client, `${queue}-priority`);
  await delayWaits(client, `${queue}-delay`);
  await ttlExpires(client, `${queue}-ttl`);
  await orderingKeyIsInOrder(client, `${queue}-ordering`);
  await uniqueKeyIsOnce(client, `${queue}-unique`);
  await tagsAreDelivered(client, `${queue}-tags`);
  await idempotencyKeyIsOnce(client, `${queue}-key`);
};

export const sendAgain: Scenario = async (client, queue) => {
  const messages = [{ payload: "a" }, { payload: "b" }];
  const first = await client.sendMany(queue, messages, { idempotencyKey: `${queue}-1` });
  const again = await client.sendMany(queue, messages, { idempotencyKey: `${queue}-1` });
  expect(first.duplicate).toBe(false);
  expect(again).toEqual({ ids: first.ids, duplicate: true, duplicates: [] });
  expect(await texts(await client.receive(queue, { max: 10 }))).toEqual(["a", "b"]);
  const other = failure(client.sendMany(queue, [{ payload: "c" }], { idempotencyKey: `${queue}-1` }));
  expect(isCode(await other, "idempotency_mismatch")).toBe(true);
};

async function texts(messages: Received[]): Promise<string[]> {
  return messages.map((message) => message.text());
}

async function priorityGoesFirst(client: Client, queue: string): Promise<void> {
  await client.send(queue, "low", { priority: 1 });
  await client.send(queue, "high", { priority: 9 });
  expect(await texts(await client.receive(queue, { max: 2 }))).toEqual(["high", "low"]);
}

async function delayWaits(client: Client, queue: string): Promise<void> {
  const sent = performance.now();
  await client.send(queue, "later", { delayMs: 1_000 });
  expect(await client.receive(queue)).toEqual([]);
  expect(await texts(await client.receive(queue, { waitMs: 5_000 }))).toEqual(["later"]);
  expect(performance.now() - sent).toBeGreaterThan(990);
}

async function ttlExpires(client: Client, queue: string): Promise<void> {
  await client.send(queue, "short", { ttlMs: 50 });
  await pause(300);
  expect(await client.receive(queue)).toEqual([]);
}

async function orderingKeyIsInOrder(client: Client, queue: string): Promise<void> {
  await client.sendMany(queue, ["1", "2"].map((payload) => ({ payload, orderingKey: "k" })));
  const [first, ...others] = await client.receive(queue, { max: 2 });
  expect([first?.text(), others]).toEqual(["1", []]);
  await first?.ack();
  expect(await texts(await client.receive(queue, { max: 2 }))).toEqual(["2"]);
}

async function uniqueKeyIsOnce(client: Client, queue: string): Promise<void> {
  const first = await client.send(queue, "first", { unique: { key: "order-7" } });
  const second = await client.send(queue, "second", { unique: { key: "order-7" } });
  expect(second).toEqual({ id: first.id, duplicate: true });
  expect(await texts(await client.receive(queue, { max: 2 }))).toEqual(["first"]);
}

async function tagsAreDelivered(client: Client, queue: string): Promise<void> {
  await client.send(queue, "", { tags: ["red", "blue"] });
  const [message] = await client.receive(queue);
  expect([...(message?.tags ?? [])].sort()).toEqual(["blue", "red"]);
}

async function idempotencyKeyIsOnce(client: Client, queue: string): Promise<void> {
  const first = await client.send(queue, "once", { idempotencyKey: "k-1" });
  const again = await client.send(queue, "once", { idempotencyKey: "k-1" });
  expect(again).toEqual({ id: first.id, duplicate: true });
  expect(await texts(await client.receive(queue, { max: 2 }))).toEqual(["once"]);
}
