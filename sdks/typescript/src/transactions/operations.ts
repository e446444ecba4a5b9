import type { MessageInitShape } from "@bufbuild/protobuf";
import type { MessageOptions, Payload, QueueMessage } from "../core/message.js";
import { conditionsInit, patchInit, putInit } from "../documents/options.js";
import type { Conditions, Patch, PutOptions, WriteConditions } from "../documents/options.js";
import type { TransactionOperationSchema } from "../gen/sluice/v1/transactions_pb.js";
import { queueMessageInit } from "../grpc/messages.js";
import { whole } from "../grpc/numbers.js";
import { settlementInit, type SettleItem } from "../settlement.js";

/** An operation of a transaction, as the call has it. */
export type Operation = MessageInitShape<typeof TransactionOperationSchema>;

/** A delivery: a message that was received, or its receipt. */
export type DeliveryRef = string | { readonly receipt: string };

/** Locks to acquire, if they are free. */
export interface AcquireOptions {
  owner?: string;
  mode?: "exclusive" | "shared" | "counting";
  holders?: number;
  ttlMs?: number;
  ifAbsent?: boolean;
}

/** A message to send. */
export function sendOperation(
  queue: string,
  payload: Payload,
  options: Omit<MessageOptions, "unique">,
  trace: Readonly<Record<string, string>>,
): Operation {
  const message: QueueMessage = { ...options, payload, queue };
  return { send: queueMessageInit(message, trace) };
}

/** A delivery to settle. */
export function settleOperation(item: SettleItem): Operation {
  return { settle: settlementInit(item) };
}

/** A delivery to ack. */
export function ackOperation(delivery: DeliveryRef, result: Payload | undefined): Operation {
  const receipt = typeof delivery === "string" ? delivery : delivery.receipt;
  return settleOperation({ receipt, outcome: "ack", ...(result === undefined ? {} : { result }) });
}

/** A document to write. */
export function putOperation(key: string, content: Payload, options: PutOptions): Operation {
  return { put: putInit(key, content, options) };
}

/** A document to patch. */
export function patchOperation(key: string, patch: Patch, options: Conditions): Operation {
  return { patch: patchInit(key, patch, options) };
}

/** A document to delete. */
export function deleteOperation(key: string, options: Conditions): Operation {
  return { delete: { key, ...conditionsInit(options) } };
}

/** A condition on a document that is not written. */
export function checkOperation(key: string, options: WriteConditions): Operation {
  const { ifExists, ifAbsent } = options;
  return { check: { key, ...conditionsInit(options), ifExists, ifAbsent } };
}

/** Locks to acquire. */
export function acquireOperation(key: string | readonly string[], options: AcquireOptions): Operation {
  const keys = typeof key === "string" ? { key } : { keys: [...key] };
  return { acquire: { ...keys, ...options } };
}

/** A grant to release. */
export function releaseOperation(lock: string | { readonly token: string }): Operation {
  return { release: { token: typeof lock === "string" ? lock : lock.token } };
}

/** The fields of a receive in a transaction. */
export function receiveInit(queues: string | readonly string[], max: number | undefined, waitMs: number) {
  const names = typeof queues === "string" ? [queues] : queues;
  return { queues: names.map((name) => ({ name })), max, waitMs: whole(waitMs, "waitMs") };
}
