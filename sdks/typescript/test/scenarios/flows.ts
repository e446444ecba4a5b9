import { expect } from "vitest";
import { isCode, type Client } from "../../src/index.js";
import type { Scenario } from "../support/scenario.js";
import { failure, pause, until } from "../support/until.js";

export const requestAndReply: Scenario = async (client, queue) => {
  await using worker = client.worker(queue, (job) => ({ sum: job.json<number[]>().reduce((a, b) => a + b) }));
  const reply = await client.request(queue, [20, 22]);
  expect(reply.json()).toEqual({ sum: 42 });
  expect(reply.contentType).toBe("application/json");
  await worker.stop();
  const began = performance.now();
  const error = await failure(client.request(queue, [1], { timeoutMs: 300 }));
  expect(isCode(error, "timed_out")).toBe(true);
  expect(performance.now() - began).toBeLessThan(5_000);
};

export const results: Scenario = async (client, queue) => {
  const { id } = await client.send(queue, "6*7", { resultTtlMs: 60_000 });
  expect(await client.outcome(id, { waitMs: 0 })).toEqual({ state: "pending" });
  expect(isCode(await failure(client.result(id, { waitMs: 50 })), "timed_out")).toBe(true);
  const waiting = client.result(id);
  const [message] = await client.receive(queue);
  await message?.extend(10_000, { percent: 50, note: "half" });
  const pending = await client.outcome(id, { waitMs: 0 });
  expect(pending).toEqual({ state: "pending", percent: 50, note: "half" });
  await message?.ack("42");
  expect((await waiting).text()).toBe("42");
  expect((await client.result(id)).text()).toBe("42");
  const dead = await client.send(queue, "1/0", { resultTtlMs: 60_000 });
  const [bad] = await client.receive(queue);
  await bad?.reject("it is no number");
  const error = await failure(client.result(dead.id));
  expect(error).toMatchObject({ code: "work_failed", details: { reason: "rejected" } });
};

export const flow: Scenario = async (client, queue) => {
  await chainRunsInOrder(client, queue);
  await callbackRunsLast(client, queue);
  await childWaitsForItsParent(client, queue);
};

export const schedule: Scenario = async (client, queue) => {
  const put = await client.schedules.put(queue, { queue, everyMs: 1_000, payload: "tick" });
  expect(put).toMatchObject({ name: queue, queue, everyMs: 1_000, paused: false });
  expect(put.nextAt?.getTime()).toBeGreaterThan(Date.now() - 5_000);
  for (let ticks = 0; ticks < 2; ticks += 1) {
    const [message] = await client.receive(queue, { waitMs: 5_000 });
    expect(message?.text()).toBe("tick");
    await message?.ack();
  }
  const names: string[] = [];
  for await (const { name } of client.schedules.list()) names.push(name);
  expect(names).toContain(queue);
  await client.schedules.delete(queue);
  for (const message of await client.receive(queue, { max: 10 })) await message.ack();
  await pause(1_500);
  expect(await client.receive(queue)).toEqual([]);
  expect(isCode(await failure(client.schedules.get(queue)), "schedule_not_found")).toBe(true);
};

export const budget: Scenario = async (client, queue) => {
  const allow = (periodMs: bigint): Promise<unknown> =>
    client.limits.put({ name: "tokens", ratePerKey: { count: 1_000, periodMs } });
  await allow(60_000n);
  await client.queues.put({ queue, limit: "tokens" });
  await client.sendMany(queue, [
    { payload: "large", limitKey: "ann", cost: 2_000 },
    { payload: "next", limitKey: "ann" },
    { payload: "other", limitKey: "bob" },
  ]);
  const received = await client.receive(queue, { max: 10 });
  expect(received.map((message) => message.text())).toEqual(["large", "other"]);
  const receipt = received[0]?.receipt as string;
  const extended = await client.extend([{ receipt, addCost: 600 }]);
  const settled = await client.settle([{ receipt, outcome: "ack", addCost: 400 }]);
  expect([...extended, ...settled].map(({ ok }) => ok)).toEqual([true, true]);
  const [ann] = (await client.limits.get({ name: "tokens", key: "ann" })).keys;
  expect(Number(ann?.spent)).toBeGreaterThanOrEqual(2_800);
  expect(Number(ann?.spent)).toBeLessThanOrEqual(3_000);
  expect(Number(ann?.waiting)).toBe(1);
  expect(await client.receive(queue)).toEqual([]);
  // Other rules forgive the debt, and what is left is made up for within a millisecond.
  await allow(1_000n);
  const [next] = await client.receive(queue, { waitMs: 5_000 });
  expect(next?.text()).toBe("next");
};

async function chainRunsInOrder(client: Client, queue: string): Promise<void> {
  const order: string[] = [];
  const [first, second] = [`${queue}-first`, `${queue}-second`];
  await using _first = client.worker(first, (job) => {
    order.push(`first ${job.text()}`);
    return `${job.text()}!`;
  });
  await using _second = client.worker(second, (job) => void order.push(`second ${job.text()}`));
  await client.send(first, "hello", { chain: [{ queue: second }] });
  await until(() => order.length === 2);
  expect(order).toEqual(["first hello", "second hello!"]);
}

async function callbackRunsLast(client: Client, queue: string): Promise<void> {
  const order: string[] = [];
  const [members, callbacks] = [`${queue}-members`, `${queue}-callbacks`];
  await using _members = client.worker(members, (job) => void order.push(job.text()), { concurrency: 2 });
  const headers: unknown[] = [];
  await using _callbacks = client.worker(callbacks, (job) => {
    order.push(job.text());
    headers.push(job.headers["sluice-done"], job.headers["sluice-dead"]);
  });
  const messages = ["a", "b", "c"].map((payload) => ({ queue: members, payload }));
  const sent = await client.sendGroup(messages, { queue: callbacks, payload: "all" });
  expect(sent.ids.length).toBe(3);
  await until(() => order.includes("all"));
  expect(order.at(-1)).toBe("all");
  expect(order.slice(0, 3).sort()).toEqual(["a", "b", "c"]);
  expect(headers).toEqual(["3", "0"]);
}

async function childWaitsForItsParent(client: Client, queue: string): Promise<void> {
  const name = `${queue}-family`;
  await client.sendMany(name, [{ payload: "parent" }, { payload: "child", dependsOn: ["#0"] }]);
  const [parent, ...others] = await client.receive(name, { max: 2 });
  expect([parent?.text(), others]).toEqual(["parent", []]);
  await parent?.ack();
  const [child] = await client.receive(name, { waitMs: 2_000 });
  expect(child?.text()).toBe("child");
}
