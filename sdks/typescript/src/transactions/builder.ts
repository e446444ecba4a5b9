import type { Calls } from "../calls.js";
import type { MessageOptions, Payload, SendOptions } from "../core/message.js";
import type { Conditions, Patch, PutOptions, WriteConditions } from "../documents/options.js";
import { identity, type Identity } from "../sending.js";
import type { SettleItem } from "../settlement.js";
import { committedOf, type Committed } from "./committed.js";
import * as operations from "./operations.js";

/**
 * A transaction of one call: operations that are done together, all or none. Each is admitted by the state
 * before the transaction, so none depends on another.
 *
 * @example
 * await client.newTransaction().ack(job).put("orders/17", { state: "paid" }).send("mail", "paid").commit();
 */
export class TransactionBuilder {
  readonly #calls: Calls;
  readonly #operations: ((trace: Identity["trace"]) => operations.Operation)[] = [];

  /** @internal */
  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /** Adds an operation with the fields of `proto/sluice/v1/transactions.proto`. */
  add(operation: operations.Operation): this {
    this.#operations.push(() => operation);
    return this;
  }

  /** Sends a message. */
  send(queue: string, payload: Payload, options: Omit<MessageOptions, "unique"> = {}): this {
    this.#operations.push((trace) => operations.sendOperation(queue, payload, options, trace));
    return this;
  }

  /** Acks a delivery, with a result if one is given. */
  ack(delivery: operations.DeliveryRef, result?: Payload): this {
    return this.add(operations.ackOperation(delivery, result));
  }

  /** Settles a delivery in any way. */
  settle(item: SettleItem): this {
    return this.add(operations.settleOperation(item));
  }

  /** Writes a document. */
  put(key: string, content: Payload, options: PutOptions = {}): this {
    return this.add(operations.putOperation(key, content, options));
  }

  /** Changes a document whose content is JSON. */
  patch(key: string, patch: Patch, options: Conditions = {}): this {
    return this.add(operations.patchOperation(key, patch, options));
  }

  /** Adds to a number in a document. */
  increment(key: string, pointer: string, by: number | bigint = 1, options: Conditions = {}): this {
    return this.patch(key, { increment: { [pointer]: by } }, options);
  }

  /** Deletes a document. */
  delete(key: string, options: Conditions = {}): this {
    return this.add(operations.deleteOperation(key, options));
  }

  /** Refuses all unless a document is as expected. */
  check(key: string, options: WriteConditions): this {
    return this.add(operations.checkOperation(key, options));
  }

  /** Acquires locks that are free. */
  acquire(key: string | readonly string[], options: operations.AcquireOptions = {}): this {
    return this.add(operations.acquireOperation(key, options));
  }

  /** Releases a grant. Call `forget()` of a held lock after the commit. */
  release(lock: string | { readonly token: string }): this {
    return this.add(operations.releaseOperation(lock));
  }

  /** Does all operations, or none: an error names the operation in `details.operation`. */
  async commit(options: SendOptions = {}): Promise<Committed> {
    const { signal } = options;
    const { idempotencyKey, trace } = identity(options);
    const request = { operations: this.#operations.map((make) => make(trace)), idempotencyKey };
    return committedOf(await this.#calls.transactions.commit(request, signal ? { signal } : {}));
  }
}
