import { expect, test } from "vitest";
import { Client, Dead, SluiceError } from "../src/index.js";
import { inTransaction } from "../src/worker/transactional.js";
import { useServer } from "./support/server.js";
import { failure, until } from "./support/until.js";

const server = useServer();

/** A client with a namespace of its own. */
async function clientIn(namespace: string): Promise<Client> {
  await server.current.client().namespaces.put({ namespace });
  return server.current.client({ namespace });
}

async function isEmpty(client: Client, queue: string): Promise<boolean> {
  const { counts } = await client.queues.get({ queue });
  return [counts?.ready, counts?.leased, counts?.delayed, counts?.blocked].every((count) => !count);
}

test("what is staged comes with the ack", async () => {
  const client = await clientIn("staged");
  await client.documents.put("o/1", { state: "new" });
  const worker = client.transactionalWorker("paid", async (job, txn) => {
    expect((await txn.get(job.text()))?.json()).toEqual({ state: "new" });
    await txn.put(job.text(), { state: "paid" });
    await txn.send("mail", "thank you");
    expect((await client.documents.get("o/1"))?.json()).toEqual({ state: "new" });
    return "done";
  });
  const { id } = await client.send("paid", "o/1", { resultTtlMs: 60_000 });
  expect((await client.result(id)).text()).toBe("done");
  expect((await worker.stop()).acked).toBe(1);
  expect((await client.documents.get("o/1"))?.json()).toEqual({ state: "paid" });
  expect((await client.receive("mail", { max: 5 })).map((it) => it.text())).toEqual(["thank you"]);
});

test("nothing that is staged happens when the handler throws", async () => {
  const client = await clientIn("thrown");
  const worker = client.transactionalWorker("q", async (job, txn) => {
    await txn.put("never", "x");
    if (job.text() === "dead") throw new Dead("never");
    throw new Error("no good");
  });
  await client.send("q", "dead");
  await client.send("q", "failing", { maxAttempts: 2, backoff: { kind: "none" } });
  const dead = await until(async () => {
    const { messages } = await client.queues.listDead({ queue: "q" });
    return messages.length === 2 && messages;
  });
  expect(await worker.stop()).toMatchObject({ acked: 0, nacked: 2, rejected: 1 });
  const errors = (dead || []).map(({ history }) => history.at(-1)?.error);
  expect(errors.sort()).toEqual(["never", "no good"]);
  expect(await client.documents.get("never")).toBeUndefined();
});

test("a conflict runs the handler again", async () => {
  const client = await clientIn("conflict");
  await client.documents.put("n", 5);
  const read: number[] = [];
  const worker = client.transactionalWorker("q", async (_, txn) => {
    const n = (await txn.get("n"))?.json<number>() as number;
    read.push(n);
    if (read.length === 1) await client.documents.put("n", 6); // Another is faster.
    await txn.put("n", n + 1);
  });
  await client.send("q", "x");
  await until(async () => (await client.documents.get("n"))?.json() === 7);
  expect((await worker.stop()).acked).toBe(1);
  expect(read).toEqual([5, 6]);
});

test("a conflict that stays is a failed attempt", async () => {
  const client = await clientIn("stays");
  let runs = 0;
  const worker = client.transactionalWorker("q", async (_, txn) => {
    runs += 1;
    await txn.check("missing", { ifExists: true });
  });
  const { id } = await client.send("q", "x", { maxAttempts: 1, resultTtlMs: 60_000 });
  expect(await failure(client.result(id))).toMatchObject({ code: "work_failed" });
  expect((await worker.stop()).nacked).toBe(1);
  expect(runs).toBe(20);
});

test("nothing happens after the message is lost", async () => {
  const client = await clientIn("lost");
  const worker = client.transactionalWorker("q", async (job, txn) => {
    await txn.put("staged", "x");
    await client.messages.cancel({ id: job.id });
  });
  await client.send("q", "x");
  await until(() => isEmpty(client, "q"));
  expect((await worker.stop()).acked).toBe(0);
  expect(await client.documents.get("staged")).toBeUndefined();
});

test.each(["begin", "stage", "close"] as const)(
  "a message is given back while the server is away at the %s of its transaction",
  async (method) => {
    const client = await clientIn(`away-${method}`);
    let left = 1;
    const asked = client.calls.transactions;
    const fails = async (...request: unknown[]): Promise<unknown> => {
      if (left-- > 0) throw new SluiceError("unreachable", "away", { mayHaveTakenEffect: true });
      return (asked[method] as (...request: unknown[]) => Promise<unknown>)(...request);
    };
    const calls = { ...client.calls, transactions: { ...asked, [method]: fails } };
    const attempts: number[] = [];
    const worker = client.worker("q", inTransaction(calls, async (job, txn) => {
      attempts.push(job.attempt);
      await txn.put("away", "x").catch(() => { throw new Error("an error of the handler's own"); });
    }));
    await client.send("q", "x", { maxAttempts: 1 });
    await until(() => isEmpty(client, "q"));
    expect(await worker.stop()).toMatchObject({ acked: 1, nacked: 0, released: 1 });
    expect(new Set(attempts)).toEqual(new Set([1]));
  },
);

test("another server that is away is an error of the handler", async () => {
  const client = await clientIn("another");
  const worker = client.transactionalWorker("q", async (_, txn) => {
    await txn.put("never", "x");
    throw new SluiceError("unreachable", "another server");
  });
  const { id } = await client.send("q", "x", { maxAttempts: 1, resultTtlMs: 60_000 });
  expect(await failure(client.result(id))).toMatchObject({ code: "work_failed" });
  expect((await worker.stop()).nacked).toBe(1);
});
