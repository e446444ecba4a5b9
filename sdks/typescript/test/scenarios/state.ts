import { expect } from "vitest";
import { isCode, SluiceError, type Client, type HeldLock } from "../../src/index.js";
import type { Scenario } from "../support/scenario.js";
import { failure, pause, until } from "../support/until.js";

export const lock: Scenario = async (client, key) => {
  const first = await client.lock(key, { owner: "ann" });
  const refused = await failure(client.lock(key, { waitMs: 0 }));
  expect(isCode(refused, "lock_held") && refused.details.owner).toBe("ann");
  let second: HeldLock | undefined;
  const waiting = client.lock(key, { owner: "bob" }).then((held) => (second = held));
  await until(async () => (await client.locks.show(key)).waiterCount === 1);
  await pause(100);
  expect(second).toBeUndefined();
  await first.release();
  const held = await waiting;
  expect(held.fencingToken).toBeGreaterThan(first.fencingToken);
  await held.release();
  expect((await client.locks.show(key)).holderCount).toBe(0);
};

export const lockIsRenewed: Scenario = async (client, key) => {
  const lost = await client.withLock(key, { ttlMs: 3_000 }, async (held) => {
    await pause(6_500);
    const others = await failure(client.lock(key, { waitMs: 0 }));
    expect(isCode(others, "lock_held")).toBe(true);
    return held.signal.aborted;
  });
  expect(lost).toBe(false);
  await brokenLockIsLost(client, key);
};

export const documents: Scenario = async (client, key) => {
  const { documents } = client;
  expect(await documents.get(key)).toBeUndefined();
  const first = await documents.put(key, { state: "new", n: 1 }, { attributes: { by: "ann" }, history: 3 });
  expect(first.version).toBe(1);
  const read = await documents.get(key);
  expect(read).toMatchObject({ key, version: 1, etag: first.etag, attributes: { by: "ann" }, history: 3 });
  expect([read?.json(), read?.contentType]).toEqual([{ state: "new", n: 1 }, "application/json"]);
  const second = await documents.put(key, { state: "paid", n: 1 }, { ifVersion: 1 });
  expect(second.version).toBe(2);
  const stale = await failure(documents.put(key, { state: "lost" }, { ifVersion: 1 }));
  expect(isCode(stale, "version_mismatch") && stale.details.version).toBe("2");
  await documents.patch(key, { merge: { by: "bob" } });
  await documents.patch(key, { json: [{ op: "remove", path: "/state" }] });
  await documents.increment(key, "/n", 41);
  expect((await documents.get(key))?.json()).toEqual({ n: 42, by: "bob" });
  expect((await documents.get(key, { version: 2 }))?.json()).toEqual({ state: "paid", n: 1 });
  expect((await documents.history(key)).map(({ version }) => version)).toEqual([5, 4, 3, 2]);
  await queryAndList(client, key);
  await documents.delete(key);
  expect(await documents.get(key)).toBeUndefined();
};

export const transaction: Scenario = async (client, queue) => {
  await documentsOfAckCome(client, queue);
  await nothingComesWithAStaleVersion(client, queue);
  await stepsComeTogether(client, queue);
};

export const errors: Scenario = async (client, queue) => {
  const missing = await failure(client.queues.get({ queue }));
  expect(missing).toBeInstanceOf(SluiceError);
  expect(missing).toMatchObject({ code: "queue_not_found", details: { queue }, mayHaveTakenEffect: false });
  expect((missing as SluiceError).message).toContain(queue);
  expect(isCode(missing, "queue_not_found")).toBe(true);
  expect(isCode(missing, "version_mismatch", "lock_held")).toBe(false);
  const invalid = await failure(client.send("not a name", ""));
  expect(isCode(invalid, "invalid_name")).toBe(true);
  const [item] = await client.settle([{ receipt: "nonsense", outcome: "ack" }]);
  expect([item?.ok, item?.error?.code]).toEqual([false, "invalid_receipt"]);
};

async function brokenLockIsLost(client: Client, key: string): Promise<void> {
  const work = client.withLock(key, { ttlMs: 1_000 }, async (held) => {
    await client.locks.break(key);
    await new Promise((resolve) => held.signal.addEventListener("abort", resolve));
    expect(isCode(held.signal.reason, "lease_lost")).toBe(true);
  });
  expect(isCode(await failure(work), "lease_lost")).toBe(true);
}

async function queryAndList({ documents }: Client, key: string): Promise<void> {
  const prefix = `${key}/`;
  const states = ["new", "paid", "paid"];
  for (const [n, state] of states.entries()) await documents.put(`${prefix}${n}`, { state, n });
  const keys: string[] = [];
  for await (const found of documents.list({ prefix })) keys.push(found.key);
  expect(keys).toEqual([0, 1, 2].map((n) => `${prefix}${n}`));
  const paid: unknown[] = [];
  const sort = [{ pointer: "/n", descending: true }];
  for await (const found of documents.query({ prefix, where: { "/state": "paid" }, sort })) {
    paid.push(found.json());
  }
  expect(paid).toEqual([{ state: "paid", n: 2 }, { state: "paid", n: 1 }]);
  await watchTellsChanges({ documents } as Client, prefix);
}

async function watchTellsChanges({ documents }: Client, prefix: string): Promise<void> {
  const seen: string[] = [];
  const end = new AbortController();
  const watching = (async () => {
    for await (const event of documents.watch({ prefix, signal: end.signal })) {
      seen.push(event.type === "written" ? `written ${event.document.key.slice(prefix.length)}` : event.type);
    }
  })();
  await until(() => seen.includes("current"));
  await documents.put(`${prefix}3`, "");
  await documents.delete(`${prefix}0`);
  await until(() => seen.length === 6);
  expect([...seen.slice(0, 3).sort(), ...seen.slice(3)]).toEqual(
    ["written 0", "written 1", "written 2", "current", "written 3", "gone"]);
  end.abort();
  expect(await failure(watching)).toMatchObject({ name: "AbortError" });
}

async function documentsOfAckCome(client: Client, queue: string): Promise<void> {
  await client.send(queue, "order 17");
  const [job] = await client.receive(queue);
  const done = await client.newTransaction()
    .ack(job!)
    .put(`${queue}/17`, { state: "paid" }, { ifAbsent: true })
    .send(`${queue}-mail`, "thank you")
    .commit();
  expect(done.results[1]?.written?.version).toBe(1);
  const [mail] = await client.receive(`${queue}-mail`);
  expect([mail?.text(), mail?.id]).toEqual(["thank you", done.results[2]?.id]);
  expect((await client.documents.get(`${queue}/17`))?.json()).toEqual({ state: "paid" });
  expect(Number((await client.queues.get({ queue })).counts?.leased)).toBe(0);
}

async function nothingComesWithAStaleVersion(client: Client, queue: string): Promise<void> {
  await client.documents.put(`${queue}/17`, { state: "sent" });
  await client.send(queue, "order 17 again");
  const [job] = await client.receive(queue);
  const refused = client.newTransaction()
    .ack(job!)
    .put(`${queue}/17`, { state: "lost" }, { ifVersion: 1 })
    .send(`${queue}-mail`, "never")
    .commit();
  const error = await failure(refused);
  expect(isCode(error, "version_mismatch") && error.details.operation).toBe("1");
  expect((await client.documents.get(`${queue}/17`))?.json()).toEqual({ state: "sent" });
  expect(await client.receive(`${queue}-mail`)).toEqual([]);
  await job?.ack();
}

async function stepsComeTogether(client: Client, queue: string): Promise<void> {
  const key = `${queue}/17`;
  const before = await client.transaction(async (txn) => {
    const order = await txn.get(key);
    await txn.patch(key, { merge: { state: "done" } });
    await txn.send(`${queue}-mail`, "done");
    expect((await txn.get(key))?.json()).toEqual({ state: "done" });
    expect((await client.documents.get(key))?.json()).toEqual({ state: "sent" });
    return order?.json();
  });
  expect(before).toEqual({ state: "sent" });
  expect((await client.documents.get(key))?.json()).toEqual({ state: "done" });
  const [mail] = await client.receive(`${queue}-mail`);
  await mail?.ack();
  const thrown = new Error("no");
  const rolledBack = client.transaction(async (txn) => {
    await txn.put(key, "never");
    throw thrown;
  });
  expect(await failure(rolledBack)).toBe(thrown);
  expect((await client.documents.get(key))?.json()).toEqual({ state: "done" });
  await conflictRunsAgain(client, key);
}

async function conflictRunsAgain(client: Client, key: string): Promise<void> {
  let runs = 0;
  await client.transaction(async (txn) => {
    runs += 1;
    await txn.get(key);
    if (runs === 1) await client.documents.put(key, { n: 1 });
    await txn.patch(key, { increment: { "/n": 1 } });
  }, { attempts: 3 });
  expect([runs, (await client.documents.get(key))?.json()]).toEqual([2, { n: 2 }]);
}
