import type { MessageInitShape } from "@bufbuild/protobuf";
import { encode } from "../core/payload.js";
import type { MessageOptions, OutgoingMessage, QueueMessage, Step, StepOptions } from "../core/message.js";
import type { MessageSchema, StepSchema } from "../gen/sluice/v1/common_pb.js";
import type { GroupMessageSchema } from "../gen/sluice/v1/messages_pb.js";
import { moment, whole } from "./numbers.js";

type MessageInit = Writable<MessageInitShape<typeof MessageSchema>>;
type GroupMessageInit = Writable<MessageInitShape<typeof GroupMessageSchema>>;
type StepInit = Writable<MessageInitShape<typeof StepSchema>>;

/** An init while it is made: only what is given is set, since each further field costs time in every send. */
type Writable<T> = { -readonly [N in keyof T]: T[N] };
type Trace = Readonly<Record<string, string>>;

/** A message as a send has it. */
export function messageInit(message: OutgoingMessage, trace: Trace): MessageInit {
  const { bytes, contentType } = encode(message.payload, message.contentType);
  const init: MessageInit = { payload: bytes, contentType };
  addShared(init, message, trace);
  addOwn(init, message);
  return init;
}

/** A message as a group or a transaction has it. */
export function queueMessageInit(message: QueueMessage, trace: Trace): GroupMessageInit {
  const { bytes, contentType } = encode(message.payload, message.contentType);
  const init: GroupMessageInit = { payload: bytes, contentType, queue: message.queue };
  addShared(init, message, trace);
  addOwn(init, message);
  return init;
}

function stepInit(step: Step): StepInit {
  const init: StepInit = { queue: step.queue };
  if (step.payload !== undefined) {
    const { bytes, contentType } = encode(step.payload, step.contentType);
    init.payload = bytes;
    init.contentType = contentType;
  }
  addShared(init, step, {});
  return init;
}

/** Adds what only a message has, and no step. */
function addOwn(init: MessageInit | GroupMessageInit, message: MessageOptions): void {
  const { unique } = message;
  if (unique !== undefined) init.unique = { ...unique, windowMs: whole(unique.windowMs, "windowMs") };
  if (message.dependsOn !== undefined) init.dependsOn = [...message.dependsOn];
  if (message.dependsMode !== undefined) init.dependsMode = message.dependsMode;
  if (message.onParentFailed !== undefined) init.onParentFailed = message.onParentFailed;
  if (message.chain !== undefined) init.chain = message.chain.map(stepInit);
  if (message.onFailure !== undefined) init.onFailure = stepInit(message.onFailure);
}

function addShared(init: MessageInit | GroupMessageInit | StepInit, options: StepOptions, trace: Trace): void {
  const { backoff } = options;
  const headers = Object.entries(options.headers === undefined ? trace : { ...trace, ...options.headers });
  if (headers.length > 0) init.headers = headers.map(([name, value]) => ({ name, value }));
  if (options.tags !== undefined) init.tags = [...options.tags];
  if (options.priority !== undefined) init.priority = options.priority;
  if (options.delayMs !== undefined) init.delayMs = whole(options.delayMs, "delayMs");
  if (options.deliverAt !== undefined) init.deliverAtMs = moment(options.deliverAt, "deliverAt");
  if (options.maxAttempts !== undefined) init.maxAttempts = options.maxAttempts;
  if (backoff !== undefined) {
    init.backoff = { ...backoff, baseMs: whole(backoff.baseMs, "baseMs"), capMs: whole(backoff.capMs, "capMs") };
  }
  if (options.orderingKey !== undefined) init.orderingKey = options.orderingKey;
  if (options.fairKey !== undefined) init.fairKey = options.fairKey;
  if (options.limitKey !== undefined) init.limitKey = options.limitKey;
  if (options.cost !== undefined) init.cost = options.cost;
  if (options.ttlMs !== undefined) init.ttlMs = whole(options.ttlMs, "ttlMs");
  if (options.expiresAt !== undefined) init.expiresAtMs = moment(options.expiresAt, "expiresAt");
  if (options.resultTtlMs !== undefined) init.resultTtlMs = whole(options.resultTtlMs, "resultTtlMs");
  if (options.correlationId !== undefined) init.correlationId = options.correlationId;
  if (options.replyTo !== undefined) init.replyTo = options.replyTo;
  if (options.hold !== undefined) init.hold = options.hold;
}
