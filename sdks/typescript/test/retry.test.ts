import { readFileSync } from "node:fs";
import type { DescService } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { SluiceError } from "../src/core/errors.js";
import { backoff, isWorthRepeating, RETRY_DEFAULT, sleep, Tries } from "../src/core/retry.js";
import * as attachments from "../src/gen/sluice/v1/attachments_pb.js";
import * as bulks from "../src/gen/sluice/v1/bulks_pb.js";
import * as consumers from "../src/gen/sluice/v1/consumers_pb.js";
import * as documents from "../src/gen/sluice/v1/documents_pb.js";
import * as limits from "../src/gen/sluice/v1/limits_pb.js";
import * as locks from "../src/gen/sluice/v1/locks_pb.js";
import * as messages from "../src/gen/sluice/v1/messages_pb.js";
import * as namespaces from "../src/gen/sluice/v1/namespaces_pb.js";
import * as queues from "../src/gen/sluice/v1/queues_pb.js";
import * as schedules from "../src/gen/sluice/v1/schedules_pb.js";
import * as testing from "../src/gen/sluice/v1/testing_pb.js";
import * as transactions from "../src/gen/sluice/v1/transactions_pb.js";
import { isRepeatable } from "../src/grpc/repeatable.js";

const unknown = { mayHaveTakenEffect: true };

test("only what may be repeated is", () => {
  const broken = new SluiceError("unreachable", "", unknown);
  expect(isWorthRepeating(broken, true)).toBe(true);
  expect(isWorthRepeating(broken, false)).toBe(false);
  expect(isWorthRepeating(new SluiceError("unreachable", ""), false)).toBe(true);
  expect(isWorthRepeating(new SluiceError("overloaded", ""), false)).toBe(true);
  expect(isWorthRepeating(new SluiceError("no_leader", ""), false)).toBe(true);
  expect(isWorthRepeating(new SluiceError("outcome_unknown", "", unknown), true)).toBe(true);
  expect(isWorthRepeating(new SluiceError("outcome_unknown", "", unknown), false)).toBe(false);
  for (const code of ["quota_exceeded", "disk_full", "queue_not_found", "tls_failed", "payload_damaged"]) {
    expect(isWorthRepeating(new SluiceError(code, "", unknown), true)).toBe(false);
  }
});

test("a call is repeatable by its key, or by what it is", () => {
  expect(isRepeatable("sluice.v1.Messages", "Send", { idempotencyKey: "" })).toBe(false);
  expect(isRepeatable("sluice.v1.Messages", "Send", { idempotencyKey: "k" })).toBe(true);
  expect(isRepeatable("sluice.v1.Locks", "Acquire", {})).toBe(false);
  expect(isRepeatable("sluice.v1.Messages", "Receive", { transaction: "" })).toBe(true);
  expect(isRepeatable("sluice.v1.Messages", "Receive", { transaction: "t" })).toBe(false);
  expect(isRepeatable("sluice.v1.Messages", "Settle", {})).toBe(true);
  expect(isRepeatable("sluice.v1.Messages", "Extend", { items: [{ receipt: "r" }] })).toBe(true);
  expect(isRepeatable("sluice.v1.Messages", "Extend", { items: [{ receipt: "r", addCost: 3 }] })).toBe(false);
});

test("the calls that may be repeated are those of sdks/conformance/repeats.json", () => {
  const file = new URL("../../conformance/repeats.json", import.meta.url);
  const { once, always, with_field, without_field } = JSON.parse(readFileSync(file, "utf8"));
  const keyed = [...Object.keys(with_field), ...Object.keys(without_field)];
  const services: DescService[] = [
    attachments.Attachments, bulks.Bulks, consumers.Consumers, documents.Documents, limits.Limits, locks.Locks,
    messages.Messages, namespaces.Namespaces, queues.Queues, schedules.Schedules, testing.Testing,
    transactions.Transactions,
  ];
  const known = services.flatMap(({ name, methods }) =>
    methods.filter(({ methodKind }) => methodKind === "unary").map((method) => `${name}/${method.name}`));
  expect(known.sort()).toEqual([...once, ...always, ...keyed].sort());
  const may = (name: string, request: object = {}): boolean => {
    const [service = "", method = ""] = name.split("/");
    return isRepeatable(`sluice.v1.${service}`, method, request);
  };
  expect(once.filter((name: string) => may(name))).toEqual([]);
  expect(always.filter((name: string) => !may(name))).toEqual([]);
  const camel = (field: string) => field.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
  for (const [name, field] of Object.entries<string>(with_field)) {
    expect([name, may(name), may(name, { [camel(field)]: "k" })]).toEqual([name, false, true]);
  }
});

test("each other server is asked once without a delay", () => {
  const tries = new Tries(2, RETRY_DEFAULT);
  const error = new SluiceError("not_leader", "", { retryAfterMs: 1_000 });
  const next = () => tries.next(error, false, true) === 0;
  expect([next(), next(), next(), next()]).toEqual([true, true, false, true]);
});

test("the server is never asked sooner than it said, nor after the time for retries", () => {
  const soon = new SluiceError("overloaded", "", { retryAfterMs: 2_000 });
  expect(new Tries(0, RETRY_DEFAULT).next(soon, true, false)).toBeGreaterThanOrEqual(2_000);
  const late = new SluiceError("overloaded", "", { retryAfterMs: 3_600_000 });
  expect(new Tries(0, RETRY_DEFAULT).next(late, true, false)).toBeUndefined();
  const never = { retryForMs: 0, connectRetryForMs: 0 };
  expect(new Tries(2, never).next(soon, true, true)).toBeUndefined();
});

test("a server that is not there is asked for less long than a cluster", () => {
  const policy = { ...RETRY_DEFAULT, connectRetryForMs: 0 };
  const refused = new SluiceError("unreachable", "");
  expect(new Tries(0, policy).next(refused, true, false)).toBeUndefined();
  expect(new Tries(2, policy).next(refused, true, true)).toBe(0);
  expect(new Tries(0, { ...RETRY_DEFAULT, retryForMs: 0 }).next(refused, true, false)).toBeUndefined();
});

test("delays grow and stay below the cap", () => {
  for (let failures = 1; failures < 40; failures += 1) {
    expect(backoff(failures, 5_000)).toBeLessThanOrEqual(5_000);
  }
  expect(backoff(1)).toBeLessThanOrEqual(25);
});

test("a sleep ends early with the reason of its signal", async () => {
  const end = new AbortController();
  const sleeping = sleep(60_000, end.signal);
  end.abort("enough");
  await expect(sleeping).rejects.toBe("enough");
  await expect(sleep(60_000, end.signal)).rejects.toBe("enough");
});
