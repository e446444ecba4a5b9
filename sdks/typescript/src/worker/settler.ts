import { SluiceError } from "../core/errors.js";
import { isWorthRepeating, sleep } from "../core/retry.js";
import type { FrameResult } from "../gen/sluice/v1/session_pb.js";
import { fromWire } from "../grpc/errors.js";
import type { ItemResult, Messaging } from "../messaging.js";
import { extensionInit, settlementInit, type ExtendItem, type SettleItem } from "../settlement.js";
import type { FrameInit } from "./frames.js";
import type { Link } from "./link.js";

/** Most items of one request. */
const BATCH_MAX = 1_000;
/** Pause between two tries when the server does not answer, beyond the client's own patience. */
const PAUSE_MS = 500;

interface Waiting {
  item: SettleItem;
  done(result: ItemResult): void;
}

/**
 * Settles and extends over the session, or by calls while there is none. Settlements go in batches without
 * waiting for one to fill: what gathers while a request is under way is the next request.
 */
export class WorkerSettler {
  readonly #link: Link;
  readonly #messaging: Messaging;
  readonly #patienceMs: number;
  #waiting: Waiting[] = [];
  #isSending = false;

  /** @param patienceMs How long a batch is tried while the server does not answer. */
  constructor(link: Link, messaging: Messaging, patienceMs: number) {
    this.#link = link;
    this.#messaging = messaging;
    this.#patienceMs = patienceMs;
  }

  /** Settles a delivery; a failure is told in the result. */
  settle(item: SettleItem): Promise<ItemResult> {
    return new Promise((done) => {
      this.#waiting.push({ item, done });
      void this.#send();
    });
  }

  /** Extends leases. */
  extend(items: ExtendItem[]): Promise<ItemResult[]> {
    const frame: FrameInit = { case: "extend", value: { items: items.map(extensionInit) } };
    return this.#ask(frame, items.length, () => this.#messaging.extend(items));
  }

  async #send(): Promise<void> {
    if (this.#isSending) return;
    this.#isSending = true;
    while (this.#waiting.length > 0) {
      // What is handed over in this turn goes along.
      await Promise.resolve();
      const batch = this.#waiting.splice(0, BATCH_MAX);
      const results = await this.#settle(batch.map(({ item }) => item));
      batch.forEach(({ done }, index) => done(results[index] as ItemResult));
    }
    this.#isSending = false;
  }

  async #settle(items: SettleItem[]): Promise<ItemResult[]> {
    const frame: FrameInit = { case: "settle", value: { items: items.map(settlementInit) } };
    const giveUp = performance.now() + this.#patienceMs;
    let results = await this.#results(() =>
      this.#ask(frame, items.length, () => this.#messaging.settle(items)), items.length);
    while (results.some(({ error }) => mayPass(error)) && performance.now() < giveUp) {
      await sleep(PAUSE_MS);
      // What is settled by now counts as success.
      results = await this.#results(() => this.#messaging.settle(items), items.length);
    }
    return results;
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
  async #results(ask: () => Promise<ItemResult[]>, items: number): Promise<ItemResult[]> {
    try {
      return await ask();
    } catch (thrown) {
      const error = thrown instanceof SluiceError ? thrown : new SluiceError("failed", String(thrown));
      return Array.from({ length: items }, () => ({ ok: false, alreadySettled: false, error }));
    }
  }
}

function mayPass(error: SluiceError | undefined): boolean {
  return error !== undefined && isWorthRepeating(error, true);
}

function itemResults(result: FrameResult, items: number): ItemResult[] {
  const results = Array.from({ length: items }, (): ItemResult => ({
    ok: true,
    alreadySettled: false,
    error: undefined,
  }));
  for (const { item, alreadySettled, error } of result.failures) {
    results[item] = { ok: alreadySettled, alreadySettled, error: error && fromWire(error) };
  }
  return results;
}
