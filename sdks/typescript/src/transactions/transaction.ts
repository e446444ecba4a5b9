import type { Calls } from "../calls.js";
import { isCode } from "../core/errors.js";
import { backoff, sleep } from "../core/retry.js";
import type { MessageOptions, Payload } from "../core/message.js";
import { Content } from "../core/payload.js";
import { Delivery } from "../delivery.js";
import type { Conditions, Patch, PutOptions, WriteConditions } from "../documents/options.js";
import type { SettleItem } from "../settlement.js";
import { traceHeaders } from "../telemetry.js";
import * as operations from "./operations.js";

/** A document as a transaction sees it. */
export class SeenDocument extends Content {
  /** `undefined` if the transaction has written it. */
  readonly version: number | undefined;
  /** `undefined` if the transaction has written it. */
  readonly etag: string | undefined;
  readonly attributes: Readonly<Record<string, string>>;

  /** @internal */
  constructor(content: Content, version: bigint | undefined, etag: string | undefined, attributes: object) {
    super(content.bytes, content.contentType);
    this.version = version === undefined ? undefined : Number(version);
    this.etag = etag;
    this.attributes = { ...attributes };
  }
}

/** The options of a transaction over several calls. */
export interface TransactionOptions {
  /** Time for which it may be open, 30 minutes at most; default 30,000. */
  ttlMs?: number;
  /** How often the function is run at most when the commit meets a change of another; default 1. */
  attempts?: number;
  /** Ends the attempts: when it has aborted, the function is not run again. */
  signal?: AbortSignal;
}

/** Conflicts after which the same function may succeed. */
const CONFLICTS = ["version_mismatch", "lock_held", "transaction_lost", "transaction_aborted"] as const;
/** Errors of a server that does nothing at present, or of which nobody knows what it has done. */
const AWAY = [
  "unreachable", "timed_out", "outcome_unknown", "shutting_down", "not_leader", "no_leader", "in_doubt",
  "journal_failed", "overloaded", "rate_limited",
] as const;
/** Longest pause before the function is run again. */
const PAUSE_MAX_MS = 400;

/**
 * A transaction over several calls. Nobody else sees what is staged, and what was read is checked at the
 * commit. It is committed when its function returns, and rolled back when that throws.
 */
export class Transaction {
  readonly #calls: Calls;
  readonly #id: string;
  readonly #onAway: () => void;

  private constructor(calls: Calls, id: string, onAway: () => void) {
    this.#calls = calls;
    this.#id = id;
    this.#onAway = onAway;
  }

  /** @internal Runs a function in a transaction. Tells if the server was away as it was asked about it. */
  static async run<T>(
    calls: Calls,
    options: TransactionOptions,
    body: (transaction: Transaction) => Promise<T> | T,
    onAway: () => void = () => undefined,
  ): Promise<T> {
    const most = options.attempts ?? 1;
    for (let attempt = 1; ; attempt += 1) {
      const begun = await telling(calls.transactions.begin({ ttlMs: options.ttlMs }), onAway);
      try {
        return await new Transaction(calls, begun.transaction, onAway).#runOnce(body);
      } catch (error) {
        const isOver = attempt >= most || options.signal?.aborted;
        if (isOver || !isCode(error, ...CONFLICTS)) throw error;
        await sleep(backoff(attempt, PAUSE_MAX_MS));
      }
    }
  }

  /** The document as the transaction sees it; `undefined` if there is none. */
  async get(key: string): Promise<SeenDocument | undefined> {
    const [result] = await this.#stage({ get: { key } });
    if (!result?.found || result.document === undefined) return undefined;
    const { content, contentType, version, etag, attributes } = result.document;
    const seen = new Content(content ?? new Uint8Array(), contentType ?? "");
    return new SeenDocument(seen, version, etag, attributes);
  }

  /** Receives messages, which the commit acks and a rollback gives back. */
  async receive(
    queues: string | readonly string[],
    options: { max?: number; waitMs?: number } = {},
  ): Promise<Delivery[]> {
    const fields = operations.receiveInit(queues, options.max, options.waitMs ?? 0);
    const request = { ...fields, transaction: this.#id };
    const { messages } = await telling(this.#calls.messages.receive(request), this.#onAway);
    return messages.map((message) => new Delivery(message));
  }

  async send(queue: string, payload: Payload, options: Omit<MessageOptions, "unique"> = {}): Promise<void> {
    await this.#stage(operations.sendOperation(queue, payload, options, traceHeaders()));
  }

  async ack(delivery: operations.DeliveryRef, result?: Payload): Promise<void> {
    await this.#stage(operations.ackOperation(delivery, result));
  }

  async settle(item: SettleItem): Promise<void> {
    await this.#stage(operations.settleOperation(item));
  }

  async put(key: string, content: Payload, options: PutOptions = {}): Promise<void> {
    await this.#stage(operations.putOperation(key, content, options));
  }

  async patch(key: string, patch: Patch, options: Conditions = {}): Promise<void> {
    await this.#stage(operations.patchOperation(key, patch, options));
  }

  async delete(key: string, options: Conditions = {}): Promise<void> {
    await this.#stage(operations.deleteOperation(key, options));
  }

  async check(key: string, options: WriteConditions): Promise<void> {
    await this.#stage(operations.checkOperation(key, options));
  }

  async acquire(key: string | readonly string[], options: operations.AcquireOptions = {}): Promise<void> {
    await this.#stage(operations.acquireOperation(key, options));
  }

  async release(lock: string | { readonly token: string }): Promise<void> {
    await this.#stage(operations.releaseOperation(lock));
  }

  async #stage(...staged: operations.Operation[]) {
    const request = { transaction: this.#id, operations: staged };
    return (await telling(this.#calls.transactions.stage(request), this.#onAway)).results;
  }

  async #runOnce<T>(body: (transaction: Transaction) => Promise<T> | T): Promise<T> {
    let result: T;
    try {
      result = await body(this);
    } catch (error) {
      // Where it fails the transaction ends by its time.
      await this.#calls.transactions.rollback({ transaction: this.#id }).catch(() => undefined);
      throw error;
    }
    await telling(this.#calls.transactions.close({ transaction: this.#id }), this.#onAway);
    return result;
  }
}

/** What is asked; tells if it fails because the server is away. */
async function telling<T>(asked: Promise<T>, onAway: () => void): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    if (isCode(error, ...AWAY)) onAway();
    throw error;
  }
}
