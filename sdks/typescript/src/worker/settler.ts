import { create, toBinary } from "@bufbuild/protobuf";
import { isCode, SluiceError } from "../core/errors.js";
import { isWorthRepeating, sleep } from "../core/retry.js";
import { ExtensionSchema } from "../gen/sluice/v1/common_pb.js";
import type { FrameResult } from "../gen/sluice/v1/session_pb.js";
import { fromWire } from "../grpc/errors.js";
import type { ItemResult, Messaging } from "../messaging.js";
import { extensionInit, settlementInit, type ExtendItem, type SettleItem } from "../settlement.js";
import type { FrameInit } from "./frames.js";
import type { Link } from "./link.js";
import { insteadOf } from "./outcome.js";

/** Most items of one request, and most requests that are under way. */
const BATCH_MAX = 1_000;
const REQUESTS_MAX = 4;
/** Most octets of results and of texts of errors in one request, less than the server takes by default. */
const BATCH_BYTES_MAX = 4 << 20;
/** Requests with smaller shares of the credit are not worth their work. */
const BATCH_LEAST = 16;
/** Codes of a request that is refused for what is in it. */
const REFUSALS = [
  "invalid_argument",
  "invalid_name",
  "invalid_receipt",
  "invalid_protobuf",
  "missing_field",
  "conflicting_fields",
  "wrong_type",
  "batch_too_large",
  "payload_too_large",
  "body_too_large",
] as const;
/** Pause between two tries when the server does not answer, beyond the client's own patience. */
const PAUSE_MS = 500;

/** Told for each delivery that was handed over, once. */
export type Settled = (item: SettleItem, result: ItemResult) => void;

/** Told of each end that is not taken, before its message is nacked instead. */
export type Refused = (item: SettleItem, error: SluiceError) => void;

/** What became of a batch; with a refusal, nothing did. */
interface Answer {
  results: ItemResult[];
  refusal?: SluiceError;
}

/** The result of what has succeeded. */
const DONE: ItemResult = Object.freeze({ ok: true, alreadySettled: false, error: undefined });

/**
 * Settles and extends over the session, or by calls while there is none. Settlements go in batches without
 * waiting for one to fill: what gathers while a request is under way is the next one. When that is a share of
 * the credit it goes along, so that the server fetches the next messages while this side works on others. The
 * server takes a batch or refuses all of it: one that it refuses is settled by halves, down to what it does not
 * take.
 */
export class WorkerSettler {
  readonly #link: Link;
  readonly #messaging: Messaging;
  readonly #patienceMs: number;
  readonly #settled: Settled;
  readonly #refused: Refused;
  readonly #batchMax: number;
  #waiting: SettleItem[] = [];
  #isGathering = false;
  #requests = 0;

  /** @param patienceMs How long a batch is tried while the server does not answer. */
  constructor(
    link: Link,
    messaging: Messaging,
    credit: number,
    patienceMs: number,
    told: { settled: Settled; refused: Refused },
  ) {
    this.#link = link;
    this.#messaging = messaging;
    this.#patienceMs = patienceMs;
    this.#settled = told.settled;
    this.#refused = told.refused;
    this.#batchMax = Math.min(BATCH_MAX, Math.max(BATCH_LEAST, Math.ceil(credit / REQUESTS_MAX)));
  }

  /** Settles a delivery in a moment. */
  settle(item: SettleItem): void {
    const size = sizeOf(item);
    // A frame of any size might end the session.
    const isTaken = size <= BATCH_BYTES_MAX;
    this.#waiting.push(isTaken ? item : this.#instead(item, tooLarge(size)));
    if (!this.#isGathering) this.#gather();
  }

  /** Extends leases. Throws if a report cannot be encoded. */
  async extend(items: ExtendItem[]): Promise<ItemResult[]> {
    const extensions = items.map((item) => create(ExtensionSchema, extensionInit(item)));
    // A frame that cannot be encoded would end the session.
    for (const extension of extensions) toBinary(ExtensionSchema, extension);
    const frame: FrameInit = { case: "extend", value: { items: extensions } };
    return this.#ask(frame, items.length, () => this.#messaging.extend(items));
  }

  /** Sends what there is at the end of this turn. */
  #gather(): void {
    this.#isGathering = true;
    queueMicrotask(() => {
      this.#isGathering = false;
      while (this.#mayBegin()) void this.#send();
    });
  }

  #mayBegin(): boolean {
    const { length } = this.#waiting;
    return length > 0 && (this.#requests === 0 || (this.#requests < REQUESTS_MAX && length >= this.#batchMax));
  }

  async #send(): Promise<void> {
    const taken = this.#waiting.splice(0, fitting(this.#waiting, this.#batchMax));
    // Acks without anything else travel as receipts alone, behind the others.
    const others = taken.filter((item) => !isPlainAck(item));
    const items = others.length === 0 ? taken : [...others, ...taken.filter(isPlainAck)];
    this.#requests += 1;
    await this.#settle(items);
    this.#requests -= 1;
    if (this.#waiting.length > 0 && !this.#isGathering) this.#gather();
  }

  /** @param items Those with more than a receipt first. */
  async #settle(items: SettleItem[], isLastResort = false): Promise<void> {
    const { results, refusal } = await this.#answer(items);
    if (refusal === undefined || isLastResort) {
      items.forEach((item, index) => this.#settled(item, results[index] as ItemResult));
    } else if (items.length > 1) {
      const middle = items.length >> 1;
      await this.#settle(items.slice(0, middle));
      await this.#settle(items.slice(middle));
    } else {
      await this.#settle(items.map((item) => this.#instead(item, refusal)), true);
    }
  }

  #instead(item: SettleItem, error: SluiceError): SettleItem {
    this.#refused(item, error);
    return insteadOf(item, `${error.code}: ${error.message}`);
  }

  /** Tries for as long as the leases may live. */
  async #answer(items: SettleItem[]): Promise<Answer> {
    const acks = items.filter(isPlainAck).map(({ receipt }) => receipt);
    const value = { items: items.slice(0, items.length - acks.length).map(settlementInit), acks };
    const frame: FrameInit = { case: "settle", value };
    const giveUp = performance.now() + this.#patienceMs;
    let answer = await this.#results(() =>
      this.#ask(frame, items.length, () => this.#messaging.settle(items)), items.length);
    while (answer.results.some(({ error }) => mayPass(error)) && performance.now() < giveUp) {
      await sleep(PAUSE_MS);
      // What is settled by now counts as success.
      answer = await this.#results(() => this.#messaging.settle(items), items.length);
    }
    return answer;
  }

  async #ask(frame: FrameInit, items: number, otherwise: () => Promise<ItemResult[]>): Promise<ItemResult[]> {
    try {
      return itemResults(await this.#link.ask(frame), items);
    } catch (error) {
      // What the session has done all the same before it broke off is settled already.
      if (error instanceof SluiceError && isWorthRepeating(error, true)) return otherwise();
      throw error;
    }
  }

  /** An error of the whole request is that of each item. */
  async #results(ask: () => Promise<ItemResult[]>, items: number): Promise<Answer> {
    try {
      return { results: await ask() };
    } catch (thrown) {
      const error = thrown instanceof SluiceError ? thrown : new SluiceError("failed", String(thrown));
      const results = Array.from({ length: items }, () => ({ ok: false, alreadySettled: false, error }));
      return isCode(error, ...REFUSALS) ? { results, refusal: error } : { results };
    }
  }
}

function isPlainAck(item: SettleItem): boolean {
  return item.outcome === "ack" && item.result === undefined && item.addCost === undefined;
}

/** Length of the result, or of the text of the error. */
function sizeOf(item: SettleItem): number {
  if (item.outcome === "ack") return item.result instanceof Uint8Array ? item.result.length : 0;
  return item.outcome === "release" ? 0 : (item.error?.length ?? 0);
}

/** How many of the items, at most so many, one request takes: at least one. */
function fitting(items: SettleItem[], most: number): number {
  const count = Math.min(items.length, most);
  let size = 0;
  for (let at = 0; at < count; at++) {
    size += sizeOf(items[at] as SettleItem);
    if (size > BATCH_BYTES_MAX && at > 0) return at;
  }
  return count;
}

function tooLarge(size: number): SluiceError {
  return new SluiceError("batch_too_large", `its ${size} octets are more than ${BATCH_BYTES_MAX}`);
}

function mayPass(error: SluiceError | undefined): boolean {
  return error !== undefined && isWorthRepeating(error, true);
}

function itemResults(result: FrameResult, items: number): ItemResult[] {
  const results = new Array<ItemResult>(items).fill(DONE);
  for (const { item, alreadySettled, error } of result.failures) {
    results[item] = { ok: alreadySettled, alreadySettled, error: error && fromWire(error) };
  }
  return results;
}
