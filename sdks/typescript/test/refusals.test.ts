import { expect, test } from "vitest";
import { Client, Dead, Release, Retry, type Job, type Payload, type WorkerEvent } from "../src/index.js";
import { useServer } from "./support/server.js";
import { failure, until } from "./support/until.js";

const server = useServer();

/** Runs a handler on so many messages, which all end at once; returns the events and the summary. */
async function worked(client: Client, queue: string, messages: number, handler: (job: Job) => unknown) {
  const events: WorkerEvent[] = [];
  let begun = 0;
  let go: () => void = () => undefined;
  const all = new Promise<void>((resolve) => (go = resolve));
  const { ids } = await client.sendMany(queue, Array.from({ length: messages }, (_, n) => ({ payload: `${n}` })));
  const worker = client.worker(queue, async (job) => {
    if (job.attempt > 1) throw new Release({ afterMs: 3_600_000 });
    if (++begun === messages) go();
    await all;
    return handler(job) as Payload;
  }, { concurrency: messages, onEvent: (event) => void events.push(event) });
  await until(async () => {
    const { totals } = await client.queues.get({ queue });
    return totals !== undefined && Number(totals.acked + totals.nacked + totals.rejected) === messages;
  });
  const summary = await worker.stop();
  return { ids, events, summary };
}

const unreadable = new Error("x");
Object.defineProperty(unreadable, "message", { get: () => { throw new Error("no text"); } });
const circle: { self?: unknown } = {};
circle.self = circle;
const raises = (thrown: unknown) => () => { throw thrown; };

test.each([
  ["a bigint", () => ({ id: 7n }), "result: no JSON can be made of it: Do not know how to serialize a BigInt"],
  ["a circle", () => circle, "result: no JSON can be made of it: Converting circular structure"],
  ["a function", () => () => 1, "result: no content can be made of a function"],
  ["no number", raises(new Retry({ afterMs: NaN })), "a delay of NaN ms"],
  ["no end", raises(new Retry({ afterMs: Infinity })), "a delay of Infinity ms"],
  ["a text", raises(new Release({ afterMs: "7" as never })), "a delay of 7 ms"],
  ["an earlier time", raises(new Retry({ afterMs: -5, message: "before" })), "before"],
  ["4,000 days", raises(new Retry({ afterMs: 4_000 * 86_400_000, message: "late" })),
    "the nack was refused: invalid_argument"],
  ["a late release", raises(new Release({ afterMs: 4_000 * 86_400_000 })), "the release was refused"],
  ["too much", () => new Uint8Array(300_000), "262144"],
  ["far too much", () => new Uint8Array(40_000_000), "its 40000000 octets are more than"],
  ["no text", raises(unreadable), "no text"],
  ["no prototype", raises(Object.create(null)), "cannot be told"],
  ["half a letter", raises(new Error("half: \ud800")), "half: \ufffd"],
  ["a long text", raises(new Error("é".repeat(100_000))), "ééé"],
])("of a handler that ends with %s only its own message is nacked", async (name, end, says) => {
  const client = server.current.client();
  const queue = `ends-${name.replaceAll(/[^a-z]+/g, "-")}`;
  const { ids, summary } = await worked(client, queue, 8, (job) => (job.text() === "3" ? end() : "ok"));
  expect(summary).toMatchObject({ acked: 7, nacked: 1, unsettled: 0 });
  const { history } = await client.calls.messages.get({ id: ids[3] as string });
  expect(history[0]?.error).toContain(says);
});

test("a refused end is told before its message is nacked", async () => {
  const client = server.current.client();
  const { events } = await worked(client, "told", 3, () => new Uint8Array(300_000));
  expect(events.map(({ type }) => type)).toEqual(["refused", "refused", "refused"]);
  expect(events[0]).toMatchObject({ item: { outcome: "ack" }, error: { code: "invalid_argument" } });
});

test("a dead letter has its reason, whatever it is", async () => {
  const client = server.current.client();
  const { summary } = await worked(client, "dead", 1, raises(new Dead({ no: "text" } as never)));
  expect(summary).toMatchObject({ rejected: 1 });
});

test("results that are too large together are settled in parts", async () => {
  const client = server.current.client();
  const { summary } = await worked(client, "parts", 200, () => new Uint8Array(200_000));
  expect(summary).toMatchObject({ acked: 200, nacked: 0, unsettled: 0 });
});

test("a request that cannot be encoded is refused at once", async () => {
  const client = server.current.client();
  const begun = performance.now();
  for (const call of [
    () => client.send("never", "x", { priority: 1.5 }),
    () => client.send("never", "x", { delayMs: -5 }),
    () => client.send("never", "x", { delayMs: 1e300 }),
    () => client.documents.put("never", "x", { ifVersion: -1 }),
  ]) {
    const error = await failure(call());
    expect(error).toMatchObject({ code: "invalid_argument", mayHaveTakenEffect: false });
    expect(String(error)).toMatch(/the request cannot be encoded: .*(priority|delay_ms|if_version)/);
  }
  expect(performance.now() - begun).toBeLessThan(5_000);
});

test.each([
  ["undefined", undefined, "payload: no content can be made of undefined"],
  ["a function", () => 1, "payload: no content can be made of a function"],
  ["a symbol", Symbol("x"), "payload: no content can be made of a symbol"],
  ["NaN", NaN, "payload: no JSON can be made of it: NaN is no number of JSON"],
  ["an inner NaN", { a: [{ b: -Infinity }] }, "-Infinity is no number of JSON"],
  ["half a letter", "half \ud800", "payload: a text with half of a pair of surrogates"],
  ["half a letter in JSON", { a: "\udfff" }, "a text has half of a pair of surrogates"],
  ["half a letter in a name", { "\udfff": 1 }, "a text has half of a pair of surrogates"],
  ["an array with a hole", [1, undefined], "an array has undefined"],
  ["a bigint", { a: 7n }, "payload: no JSON can be made of it: Do not know how to serialize a BigInt"],
])("a payload is refused before it is sent that is %s", async (_, payload, says) => {
  await using client = new Client({ servers: "http://127.0.0.1:1", retryForMs: 0 });
  const error = await failure(client.send("q", payload as never));
  expect(error).toMatchObject({ code: "invalid_argument", details: { field: "payload" } });
  expect(String(error)).toContain(says);
});

test.each([
  ["content", (client: Client) => client.documents.put("k", NaN)],
  ["merge", (client: Client) => client.documents.patch("k", { merge: { a: NaN } })],
  ["json", (client: Client) => client.documents.patch("k", { json: [NaN] })],
  ["where", (client: Client) => client.documents.query({ where: { "/a": NaN } })[Symbol.asyncIterator]().next()],
  ["delayMs", (client: Client) => client.send("q", "x", { delayMs: NaN })],
  ["deliverAt", (client: Client) => client.send("q", "x", { deliverAt: new Date(NaN) })],
  ["ifVersion", (client: Client) => client.documents.put("k", 1, { ifVersion: Infinity })],
  ["result", (client: Client) => client.settle([{ receipt: "r", outcome: "ack", result: NaN }])],
])("no NaN goes into the field %s", async (field, call) => {
  await using client = new Client({ servers: "http://127.0.0.1:1", retryForMs: 0 });
  const error = await failure(call(client));
  expect(error).toMatchObject({ code: "invalid_argument", details: { field } });
});

test("what only looks like it is sent as it is", async () => {
  const client = server.current.client();
  for (const payload of [{ a: null, b: "null", c: undefined }, ["\\ud800", "😀"], null]) {
    await client.send("looks", payload);
    const [delivery] = await client.receive("looks");
    expect(delivery?.json()).toEqual(JSON.parse(JSON.stringify(payload)));
  }
});

test("a report that cannot be encoded fails alone", async () => {
  const client = server.current.client();
  const { events, summary } = await worked(client, "reports", 4, async (job) => {
    if (job.text() !== "2") return;
    expect(await failure(job.report({ percent: 7.5 }))).toBeInstanceOf(Error);
    expect(await failure(job.report({ addCost: -1 }))).toBeInstanceOf(Error);
    await job.report({ percent: 8 });
  });
  expect([events, summary.acked]).toEqual([[], 4]);
});
