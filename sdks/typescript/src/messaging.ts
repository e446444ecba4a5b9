import type { Calls } from "./calls.js";
import type { SluiceError } from "./core/errors.js";
import type { MessageOptions, OutgoingMessage, Payload, QueueMessage, Sender } from "./core/message.js";
import type { SendOptions, Sent, SentMany } from "./core/message.js";
import { Received, type Settler } from "./delivery.js";
import { fromWire } from "./grpc/errors.js";
import { messageInit, queueMessageInit } from "./grpc/messages.js";
import { whole } from "./grpc/numbers.js";
import type { ResultsResponse } from "./gen/sluice/v1/messages_pb.js";
import { identity } from "./sending.js";
import { extensionInit, settlementInit } from "./settlement.js";
import type { ExtendItem, Report, SettleItem } from "./settlement.js";

/** The options of a receive. */
export interface ReceiveOptions {
  /** Most messages, 1 to 1,000; default 1. */
  max?: number;
  /** How long to wait for the first message, 60,000 at most; default 0. */
  waitMs?: number;
  /** Length of the leases; default: each queue's. */
  leaseMs?: number;
  /** Name of the consumer, shown in lists. */
  consumer?: string;
  /** Gives the receive up. */
  signal?: AbortSignal;
}

/** What came of one item of a settle or extend. */
export interface ItemResult {
  ok: boolean;
  /** True if this receipt has settled its message before, which counts as success. */
  alreadySettled: boolean;
  error: SluiceError | undefined;
}

/** A group of messages that was sent. */
export interface SentGroup {
  /** Id of the callback. */
  group: string;
  /** One for each message, in order. */
  ids: string[];
  duplicate: boolean;
}

/** Sends, receives and settles messages. */
export class Messaging implements Sender, Settler {
  readonly #calls: Calls;

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  async send(queue: string, payload: Payload, options: MessageOptions & SendOptions = {}): Promise<Sent> {
    const sent = await this.sendMany(queue, [{ ...options, payload }], options);
    return { id: sent.ids[0] as string, duplicate: sent.duplicate || sent.duplicates.length > 0 };
  }

  async sendMany(
    queue: string,
    messages: readonly OutgoingMessage[],
    options: SendOptions = {},
  ): Promise<SentMany> {
    const { idempotencyKey, trace } = identity(options);
    const request = {
      queue,
      messages: messages.map((message) => messageInit(message, trace)),
      idempotencyKey,
    };
    const { ids, duplicate, duplicates } = await this.#calls.messages.send(request, signal(options));
    return { ids, duplicate, duplicates };
  }

  async sendGroup(
    messages: readonly QueueMessage[],
    callback: QueueMessage,
    options: SendOptions = {},
  ): Promise<SentGroup> {
    const { idempotencyKey, trace } = identity(options);
    const request = {
      messages: { values: messages.map((message) => queueMessageInit(message, trace)) },
      callback: queueMessageInit(callback, trace),
      idempotencyKey,
    };
    const { group, ids, duplicate } = await this.#calls.messages.sendGroup(request, signal(options));
    return { group, ids, duplicate };
  }

  async receive(queues: string | readonly string[], options: ReceiveOptions = {}): Promise<Received[]> {
    const request = {
      queues: (typeof queues === "string" ? [queues] : queues).map((name) => ({ name })),
      max: options.max,
      waitMs: whole(options.waitMs ?? 0, "waitMs"),
      leaseMs: whole(options.leaseMs, "leaseMs"),
      consumer: options.consumer,
    };
    const { messages } = await this.#calls.messages.receive(request, signal(options));
    return messages.map((message) => new Received(message, this));
  }

  async settle(items: readonly SettleItem[]): Promise<ItemResult[]> {
    return results(await this.#calls.messages.settle({ items: items.map(settlementInit) }));
  }

  async extend(items: readonly ExtendItem[]): Promise<ItemResult[]> {
    return results(await this.#calls.messages.extend({ items: items.map(extensionInit) }));
  }

  async settleOne(item: SettleItem): Promise<void> {
    throwFirst(await this.settle([item]));
  }

  async extendOne(receipt: string, leaseMs: number | undefined, report: Report): Promise<void> {
    const length = leaseMs === undefined ? {} : { leaseMs };
    throwFirst(await this.extend([{ receipt, ...length, ...report }]));
  }
}

function signal(options: { signal?: AbortSignal }): { signal?: AbortSignal } {
  return options.signal === undefined ? {} : { signal: options.signal };
}

function results(response: ResultsResponse): ItemResult[] {
  return response.results.map(({ ok, alreadySettled, error }) => ({
    ok,
    alreadySettled,
    error: error && fromWire(error),
  }));
}

function throwFirst(all: ItemResult[]): void {
  const error = all[0]?.error;
  if (error !== undefined) throw error;
}
