import { expect } from "vitest";
import { Dead, Retry, type Client } from "../../src/index.js";
import type { Scenario } from "../support/scenario.js";
import { pause, until } from "../support/until.js";

export const workAcks: Scenario = async (client, queue) => {
  const { ids } = await client.sendMany(queue, Array.from({ length: 100 }, (_, n) => ({ payload: n })));
  const handled: string[] = [];
  let [running, most] = [0, 0];
  const worker = client.worker(queue, async (job) => {
    running += 1;
    most = Math.max(most, running);
    await pause(5);
    running -= 1;
    handled.push(job.id);
  }, { concurrency: 8 });
  await until(() => handled.length >= 100);
  const summary = await worker.stop();
  expect(summary.acked).toBe(100);
  expect(handled.sort()).toEqual([...ids].sort());
  expect(most).toBe(8);
  expect(await counts(client, queue)).toEqual({ ready: 0, leased: 0 });
};

export const workRenews: Scenario = async (client, queue) => {
  await client.send(queue, "slow");
  let attempts = 0;
  let lost = false;
  const handle = async (job: { signal: AbortSignal }): Promise<void> => {
    attempts += 1;
    await pause(6_500);
    lost ||= job.signal.aborted;
  };
  const first = client.worker(queue, handle, { leaseMs: 3_000 });
  await until(() => attempts === 1);
  const second = client.worker(queue, handle, { leaseMs: 3_000 });
  await pause(6_600);
  const summaries = await Promise.all([first.stop(), second.stop()]);
  expect([attempts, lost]).toEqual([1, false]);
  expect(summaries.map(({ acked }) => acked)).toEqual([1, 0]);
};

export const workRetries: Scenario = async (client, queue) => {
  await client.send(queue, "again");
  const at: number[] = [];
  const attempts: number[] = [];
  const worker = client.worker(queue, async (job) => {
    at.push(performance.now());
    attempts.push(job.attempt);
    if (job.attempt < 3) throw new Retry({ afterMs: 400 });
  });
  await until(() => attempts.length === 3);
  const summary = await worker.stop();
  expect(attempts).toEqual([1, 2, 3]);
  expect(at.slice(1).every((time, index) => time - (at[index] as number) >= 390)).toBe(true);
  expect(summary).toMatchObject({ acked: 1, nacked: 2 });
};

export const workDead: Scenario = async (client, queue) => {
  const fast = { backoff: { kind: "none" as const } };
  await client.send(queue, "bad", { ...fast, maxAttempts: 3 });
  await client.send(queue, "worse", fast);
  let handled = 0;
  const worker = client.worker(queue, async (job) => {
    handled += 1;
    if (job.text() === "worse") throw new Dead("it is no picture");
    throw new Error("the disk is on fire");
  });
  const { messages } = await until(async () => {
    const dead = await client.queues.listDead({ queue });
    return dead.messages.length === 2 && dead;
  }) as Awaited<ReturnType<Client["queues"]["listDead"]>>;
  await worker.stop();
  expect(handled).toBe(4);
  const last = Object.fromEntries(messages.map((it) => [it.reason, it.history.at(-1)?.error]));
  expect(last).toEqual({ max_attempts: "the disk is on fire", rejected: "it is no picture" });
};

export const workRefused: Scenario = async (client, queue) => {
  let begun = 0;
  let go: () => void = () => undefined;
  const all = new Promise<void>((resolve) => (go = resolve));
  await client.sendMany(queue, Array.from({ length: 20 }, (_, n) => ({ payload: `${n}`, maxAttempts: 1 })));
  const worker = client.worker(queue, async (job) => {
    begun += 1;
    if (begun === 20) go();
    await all;
    return job.text() === "5" ? new Uint8Array(300_000) : "done";
  }, { concurrency: 20 });
  const dead = await until(async () => (await client.queues.listDead({ queue })).messages[0]);
  const summary = await worker.stop();
  expect(summary).toMatchObject({ acked: 19, nacked: 1, unsettled: 0 });
  expect(begun).toBe(20);
  expect(dead?.history.at(-1)?.error).toContain("262144");
};

export const workStops: Scenario = async (client, queue) => {
  await client.sendMany(queue, Array.from({ length: 10 }, (_, n) => ({ payload: `${n}` })));
  const [begun, finished]: string[][] = [[], []];
  let goOn = (): void => undefined;
  const mayGoOn = new Promise<void>((resolve) => (goOn = resolve));
  const worker = client.worker(queue, async (job) => {
    begun?.push(job.id);
    await mayGoOn;
    finished?.push(job.id);
  }, { concurrency: 2, prefetch: 4 });
  await until(() => begun?.length === 2);
  await until(async () => (await counts(client, queue)).leased === 6);
  const stopped = worker.stop();
  await until(async () => (await counts(client, queue)).leased === 2);
  goOn();
  const summary = await stopped;
  expect([begun?.length, finished]).toEqual([2, begun]);
  expect(summary).toMatchObject({ acked: 2, released: 4 });
  const back = await client.receive(queue, { max: 10 });
  expect(back.length).toBe(8);
  expect(back.every(({ attempt }) => attempt === 1)).toBe(true);
  await client.send(queue, "late");
  await pause(200);
  expect(begun?.length).toBe(2);
};

async function counts(client: Client, queue: string): Promise<{ ready: number; leased: number }> {
  const { counts } = await client.queues.get({ queue });
  return { ready: Number(counts?.ready), leased: Number(counts?.leased) };
}
