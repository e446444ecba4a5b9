import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { Dead, isCode, Release, type LockState } from "../src/index.js";
import { Locks } from "../src/locks.js";
import { serve, useServer } from "./support/server.js";
import { failure, pause, until } from "./support/until.js";

const server = useServer();

test("a received message is settled in each way", async () => {
  const client = server.current.client();
  const take = async () => (await client.receive("ways", { waitMs: 2_000, leaseMs: 5_000 }))[0]!;
  const { id } = await client.send("ways", { n: 1 }, { maxAttempts: 3 });
  await (await take()).release();
  const first = await take();
  expect([first.attempt, first.deliveries]).toEqual([1, 2]);
  await first.extend(60_000, { percent: 10, checkpoint: "page 3" });
  await first.nack({ error: "no answer", delayMs: 10 });
  const [late] = await client.extend([{ receipt: first.receipt }]);
  expect(late).toMatchObject({ ok: true, alreadySettled: true });
  const second = await take();
  expect([second.attempt, second.checkpoint?.text()]).toEqual([2, "page 3"]);
  await second.reject("it is no use");
  const stored = await client.messages.get({ id });
  expect(stored.history.map(({ end, error }) => [end, error])).toEqual([
    ["released", ""],
    ["nacked", "no answer"],
    ["rejected", "it is no use"],
  ]);
});

test("a batch of all kinds has the outcome of each", async () => {
  await using own = await serve();
  const client = own.client();
  const messages = Array.from({ length: 40 }, (_, n) => ({ payload: n, resultTtlMs: 7_200_000 }));
  const { ids } = await client.sendMany("kinds", messages);
  const ready: number[] = [];
  let goOn = (): void => undefined;
  const mayGoOn = new Promise<void>((resolve) => (goOn = resolve));
  const lost: string[] = [];
  const worker = client.worker("kinds", async (job) => {
    const n = job.json<number>();
    if (n % 4 !== 2) await client.extend([{ receipt: job.receipt, leaseMs: 7_200_000 }]);
    if (job.attempt === 1) ready.push(n);
    if (job.attempt === 1) await mayGoOn;
    if (n % 4 === 3) throw new Dead("no");
    return n % 4 === 1 ? { n } : undefined;
  }, {
    concurrency: 40,
    onEvent: (event) => event.type === "unsettled" && lost.push(event.item.receipt.slice(0, 20)),
  });
  await until(() => ready.length === 40);
  // The leases of every fourth message end meanwhile: these come again.
  await own.advance({ minutes: 10 });
  goOn();
  const outcomes = await Promise.all(ids.map((id) => client.outcome(id, { waitMs: 20_000 })));
  expect(outcomes.map(({ state }) => state)).toEqual(ids.map((_, n) => (n % 4 === 3 ? "dead" : "done")));
  expect(await worker.stop()).toMatchObject({ acked: 30, rejected: 10, nacked: 0, unsettled: 10 });
  // A receipt begins with the id of its message.
  expect(lost.sort()).toEqual(ids.filter((_, n) => n % 4 === 2));
});

test("a signal gives a wait up, and a time ends one", async () => {
  const client = server.current.client();
  const end = new AbortController();
  const receiving = client.receive("silent", { waitMs: 30_000, signal: end.signal });
  setTimeout(() => end.abort(), 50);
  expect(await failure(receiving)).toMatchObject({ name: "AbortError" });
  const request = { queues: [{ name: "silent" }], waitMs: 30_000n };
  const late = await failure(client.messages.receive(request, { timeoutMs: 50 }));
  expect(isCode(late, "timed_out")).toBe(true);
  expect(request.waitMs).toBe(30_000n);
  await using _held = await client.lock("taken");
  const claim = client.lock("taken", { signal: AbortSignal.timeout(50) });
  expect(await failure(claim)).toMatchObject({ name: "TimeoutError" });
  await until(async () => (await client.locks.show("taken")).waiterCount === 0);
});

test("a namespace is that of the options, or of the call", async () => {
  const client = server.current.client();
  await client.namespaces.put({ namespace: "shop" });
  const shop = server.current.client({ namespace: "shop" });
  await shop.send("mail", "in the shop");
  await using _worker = shop.worker("work", (job) => job.text());
  expect((await shop.request("work", "done")).text()).toBe("done");
  expect((await client.queues.get({ namespace: "shop", queue: "mail" })).namespace).toBe("shop");
  expect(isCode(await failure(client.queues.get({ queue: "mail" })), "queue_not_found")).toBe(true);
});

test("a worker that is refused ends with the error", async () => {
  const nowhere = server.current.client({ namespace: "nowhere" });
  const worker = nowhere.worker("mail", () => undefined);
  expect(isCode(await failure(worker.done), "namespace_not_found")).toBe(true);
});

test("a client that is closed makes no calls, and ends its workers", async () => {
  const client = server.current.client();
  const worker = client.worker("closed", () => undefined);
  await client.send("closed", "");
  client.close();
  expect(await failure(worker.done)).toMatchObject({ code: "usage" });
  expect(await failure(client.send("closed", ""))).toMatchObject({ code: "usage" });
});

test("a worker hears that its message was cancelled, and gives back what it was not able to do", async () => {
  const client = server.current.client();
  const events: string[] = [];
  let reason: unknown;
  const worker = client.worker("cancelled", async (job) => {
    if (job.text() === "busy" && job.deliveries === 1) throw new Release({ afterMs: 10 });
    if (job.text() === "busy") return;
    await new Promise((resolve) => job.signal.addEventListener("abort", resolve));
    reason = job.signal.reason;
  }, { onEvent: ({ type }) => void events.push(type) });
  const { id } = await client.send("cancelled", "long");
  await until(async () => (await client.messages.get({ id })).state === "leased");
  await client.messages.cancel({ id });
  await until(() => reason !== undefined);
  expect(isCode(reason, "cancelled")).toBe(true);
  const busy = await client.send("cancelled", "busy", { resultTtlMs: 10_000 });
  expect((await client.result(busy.id, { waitMs: 5_000 })).bytes.length).toBe(0);
  expect(await worker.stop()).toMatchObject({ released: 1 });
  expect(events).toEqual(["cancelled"]);
});

test("a worker that has ended lets go of its signal", async () => {
  const { signal } = new AbortController();
  const worker = server.current.client().worker("one", () => undefined, { signal });
  expect(getEventListeners(signal, "abort").length).toBe(1);
  await worker.stop();
  expect(getEventListeners(signal, "abort").length).toBe(0);
});

test("a worker ends by its signal, also before it has begun", async () => {
  const client = server.current.client();
  const end = new AbortController();
  const worker = client.worker(["one", "two"], () => undefined, { signal: end.signal });
  await client.send("two", "");
  await until(async () => Number((await client.queues.get({ queue: "two" })).totals?.acked) === 1);
  end.abort();
  expect(await worker.done).toMatchObject({ acked: 1 });
  const late = client.worker("one", () => undefined, { signal: end.signal });
  expect(await late.done).toMatchObject({ acked: 0 });
});

test("a lock is watched", async () => {
  const client = server.current.client();
  const states: LockState[] = [];
  const watching = (async () => {
    for await (const state of client.locks.watch("watched")) {
      states.push(state);
      if (states.length === 3) return;
    }
  })();
  await until(() => states.length === 1);
  await client.withLock("watched", { owner: "ann", mode: "counting", holders: 2 }, () => pause(100));
  await watching;
  expect(states.map(({ holders }) => holders.map(({ owner, mode }) => [owner, mode]))).toEqual([
    [],
    [["ann", "counting"]],
    [],
  ]);
});

test("a lock comes with its document, and is released in a transaction", async () => {
  const client = server.current.client();
  await client.documents.put("pair", { n: 1 });
  const held = await client.lock("pair", { withDocument: true });
  expect(held.document?.json()).toEqual({ n: 1 });
  await client.newTransaction().put("pair", { n: 2 }, { lock: held }).release(held).commit();
  held.forget();
  expect((await client.locks.show("pair")).holderCount).toBe(0);
  const late = failure(client.documents.put("pair", { n: 3 }, { lock: held }));
  expect(isCode(await late, "lease_lost")).toBe(true);
});

test("a transaction receives, and gives back what it does not commit", async () => {
  const client = server.current.client();
  await client.send("inbox", "a");
  const thrown = new Error("no");
  const failed = client.transaction(async (txn) => {
    expect((await txn.receive("inbox")).map((message) => message.text())).toEqual(["a"]);
    throw thrown;
  });
  expect(await failure(failed)).toBe(thrown);
  await client.transaction(async (txn) => {
    const [message] = await txn.receive("inbox", { waitMs: 2_000 });
    await txn.put("inbox/last", message!.text());
  });
  expect(await client.receive("inbox")).toEqual([]);
  expect((await client.documents.get("inbox/last"))?.text()).toBe("a");
});

test("schedules are paused, resumed and triggered", async () => {
  const client = server.current.client();
  const { schedules } = client;
  await schedules.put("nightly", { cron: "0 3 * * *", timeZone: "Europe/Berlin", queue: "n", payload: "x" });
  expect(await schedules.get("nightly")).toMatchObject({ cron: "0 3 * * *", timeZone: "Europe/Berlin" });
  expect((await schedules.pause("nightly")).paused).toBe(true);
  expect((await schedules.resume("nightly")).paused).toBe(false);
  expect((await schedules.next("nightly", 3)).length).toBe(3);
  const id = await schedules.trigger("nightly");
  expect((await client.receive("n")).map((message) => message.id)).toEqual([id]);
});

test("a lock is free that was granted to a caller who has gone", async () => {
  const client = server.current.client();
  const end = new AbortController();
  let answered = 0;
  const acquire: typeof client.calls.locks.acquire = async (request, options) => {
    const answer = await client.calls.locks.acquire(request, answered ? options : {});
    if (answered++ > 0) return answer;
    end.abort("gone");
    throw end.signal.reason;
  };
  const locks = new Locks({ ...client.calls, locks: { ...client.calls.locks, acquire } });
  expect(await failure(locks.acquire("gone", { ttlMs: 60_000, signal: end.signal }))).toBe("gone");
  await (await client.locks.acquire("gone", { waitMs: 10_000 })).release();
});
