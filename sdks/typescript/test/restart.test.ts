import { expect, test } from "vitest";
import { Client } from "../src/index.js";
import { DiskServer } from "./support/disk.js";
import { pause, until } from "./support/until.js";

const SIGNALS = ["SIGKILL", "SIGTERM"] as const;

test.each(SIGNALS)("a worker keeps its message over a %s of the server", async (signal) => {
  await using server = await DiskServer.make();
  await using client = new Client({ servers: server.url });
  const [handled, events]: [string[], string[]] = [[], []];
  let attempts = 0;
  const worker = client.worker("jobs", async (job) => {
    attempts += 1;
    if (job.text() === "slow") await pause(2_500);
    if (!job.signal.aborted) handled.push(job.text());
  }, { leaseMs: 10_000, onEvent: ({ type }) => void events.push(type) });
  await client.send("jobs", "slow");
  await until(() => attempts === 1);
  await server.end(signal);
  // A server that stops in order waits for the worker to finish.
  expect(handled).toEqual(signal === "SIGTERM" ? ["slow"] : []);
  await server.start();
  await client.send("jobs", "next");
  await until(() => handled.length === 2, 20_000);
  const summary = await worker.stop();
  expect([handled, attempts]).toEqual([["slow", "next"], 2]);
  expect(summary).toMatchObject({ acked: 2, unsettled: 0 });
  expect(events).toContain("recovered");
});

test("a lock, a watch and a send go on over a restart", async () => {
  await using server = await DiskServer.make();
  await using client = new Client({ servers: server.url });
  await using held = await client.lock("key", { ttlMs: 6_000 });
  const seen: string[] = [];
  const end = new AbortController();
  const watching = (async () => {
    for await (const event of client.documents.watch({ signal: end.signal })) {
      seen.push(event.type === "written" ? event.document.key : event.type);
    }
  })();
  await until(() => seen.includes("current"));
  await server.end("SIGKILL");
  const sending = client.send("mail", "meanwhile");
  await server.start();
  expect((await sending).duplicate).toBe(false);
  await client.documents.put("after", "");
  await until(() => seen.includes("after"));
  expect(held.signal.aborted).toBe(false);
  expect((await client.locks.show("key")).holders[0]?.fencingToken).toBe(held.fencingToken);
  end.abort();
  await watching.catch(() => undefined);
});
