import type { MessageInitShape } from "@bufbuild/protobuf";
import { encode } from "../core/payload.js";
import type { MessageOptions, OutgoingMessage, QueueMessage, Step, StepOptions } from "../core/message.js";
import type { MessageSchema, StepSchema } from "../gen/sluice/v1/common_pb.js";
import type { GroupMessageSchema } from "../gen/sluice/v1/messages_pb.js";
import { moment, whole } from "./numbers.js";

type MessageInit = MessageInitShape<typeof MessageSchema>;
type GroupMessageInit = MessageInitShape<typeof GroupMessageSchema>;
type StepInit = MessageInitShape<typeof StepSchema>;

/** A message as a send has it. */
export function messageInit(message: OutgoingMessage, trace: Readonly<Record<string, string>>): MessageInit {
  const { bytes, contentType } = encode(message.payload, message.contentType);
  return { ...shared(message, trace), ...own(message), payload: bytes, contentType };
}

/** A message as a group or a transaction has it. */
export function queueMessageInit(
  message: QueueMessage,
  trace: Readonly<Record<string, string>>,
): GroupMessageInit {
  const { bytes, contentType } = encode(message.payload, message.contentType);
  return { ...shared(message, trace), ...own(message), payload: bytes, contentType, queue: message.queue };
}

function stepInit(step: Step): StepInit {
  const init: StepInit = { ...shared(step, {}), queue: step.queue };
  if (step.payload === undefined) return init;
  const { bytes, contentType } = encode(step.payload, step.contentType);
  return { ...init, payload: bytes, contentType };
}

/** What only a message has, and no step. */
function own(message: MessageOptions) {
  const { unique } = message;
  return {
    unique: unique && { ...unique, windowMs: whole(unique.windowMs) },
    dependsOn: [...(message.dependsOn ?? [])],
    dependsMode: message.dependsMode,
    onParentFailed: message.onParentFailed,
    chain: (message.chain ?? []).map(stepInit),
    onFailure: message.onFailure && stepInit(message.onFailure),
  };
}

function shared(options: StepOptions, trace: Readonly<Record<string, string>>) {
  const { backoff } = options;
  const headers = Object.entries({ ...trace, ...options.headers });
  return {
    headers: headers.map(([name, value]) => ({ name, value })),
    tags: [...(options.tags ?? [])],
    priority: options.priority,
    delayMs: whole(options.delayMs),
    deliverAtMs: moment(options.deliverAt),
    maxAttempts: options.maxAttempts,
    backoff: backoff && { ...backoff, baseMs: whole(backoff.baseMs), capMs: whole(backoff.capMs) },
    orderingKey: options.orderingKey,
    fairKey: options.fairKey,
    limitKey: options.limitKey,
    cost: options.cost,
    ttlMs: whole(options.ttlMs),
    expiresAtMs: moment(options.expiresAt),
    resultTtlMs: whole(options.resultTtlMs),
    correlationId: options.correlationId,
    replyTo: options.replyTo,
    hold: options.hold,
  };
}
