import { context, propagation, trace, TraceFlags } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { useServer } from "./support/server.js";
import { pause, until } from "./support/until.js";

const server = useServer();
const TRACE = "0af7651916cd43dd8448eb211c80319c";
const SPAN = { traceId: TRACE, spanId: "b7ad6b7169203331", traceFlags: TraceFlags.SAMPLED };

beforeAll(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
});
afterAll(() => {
  context.disable();
  propagation.disable();
});

const traced = <T>(run: () => T): T => context.with(trace.setSpanContext(context.active(), SPAN), run);

test("the trace of a send goes on in the worker", async () => {
  const client = server.current.client();
  await traced(() => client.send("traced", "a"));
  await client.send("traced", "b");
  const seen: Record<string, string | undefined> = {};
  await using _worker = client.worker("traced", async (job) => {
    await pause(5);
    seen[job.text()] = trace.getSpanContext(context.active())?.traceId;
  });
  await until(() => Object.keys(seen).length === 2);
  expect(seen).toEqual({ a: TRACE, b: undefined });
});

test("a transaction and a group carry the trace as well", async () => {
  const client = server.current.client();
  await traced(async () => {
    await client.newTransaction().send("carried", "a").commit();
    await client.transaction((txn) => txn.send("carried", "b"));
    await client.sendGroup([{ queue: "carried", payload: "c" }], { queue: "carried", payload: "d" });
  });
  const received = await client.receive("carried", { max: 10 });
  expect(received.map(({ headers }) => headers["traceparent"]?.includes(TRACE))).toEqual([true, true, true]);
});

test("a send with a key of the caller says the same in every trace", async () => {
  const client = server.current.client();
  const send = () => client.send("keyed", "a", { idempotencyKey: "k" });
  const first = await traced(send);
  expect(await send()).toEqual({ id: first.id, duplicate: true });
});
