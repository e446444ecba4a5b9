import type { Calls } from "../calls.js";
import { isCode } from "../core/errors.js";
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
}

/** Conflicts after which the same function may succeed. */
const CONFLICTS = ["version_mismatch", "transaction_lost", "transaction_aborted"] as const;

/**
 * A transaction over several calls. Nobody else sees what is staged, and what was read is checked at the
 * commit. It is committed when its function returns, and rolled back when that throws.
 */
export class Transaction {
  readonly #calls: Calls;
  readonly #id: string;

  private constructor(calls: Calls, id: string) {
    this.#calls = calls;
    this.#id = id;
  }

  /** @internal Runs a function in a transaction. */
  static async run<T>(
    calls: Calls,
    options: TransactionOptions,
    body: (transaction: Transaction) => Promise<T> | T,
  ): Promise<T> {
    for (let left = options.attempts ?? 1; ; left -= 1) {
      const begun = await calls.transactions.begin({ ttlMs: options.ttlMs });
      try {
        return await new Transaction(calls, begun.transaction).#runOnce(body);
      } catch (error) {
        if (left <= 1 || !isCode(error, ...CONFLICTS)) throw error;
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
    const { messages } = await this.#calls.messages.receive({ ...fields, transaction: this.#id });
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
    return (await this.#calls.transactions.stage(request)).results;
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
    await this.#calls.transactions.close({ transaction: this.#id });
    return result;
  }
}
