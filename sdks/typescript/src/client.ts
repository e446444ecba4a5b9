import { calls, type Calls } from "./calls.js";
import type { MessageOptions, OutgoingMessage, Payload, QueueMessage, Sender } from "./core/message.js";
import type { SendOptions, Sent, SentMany } from "./core/message.js";
import type { Outcome, ResultOptions } from "./core/outcome.js";
import type { Content } from "./core/payload.js";
import type { Received } from "./delivery.js";
import { Attachments } from "./documents/attachments.js";
import { Documents } from "./documents/documents.js";
import { Pool } from "./grpc/pool.js";
import { Locks, type HeldLock, type LockOptions } from "./locks.js";
import { Messaging, type ItemResult, type ReceiveOptions, type SentGroup } from "./messaging.js";
import { resolveOptions, type ClientOptions, type ResolvedOptions } from "./options.js";
import { Results, type RequestOptions } from "./results.js";
import { Schedules } from "./schedules.js";
import type { ExtendItem, SettleItem } from "./settlement.js";
import { TransactionBuilder } from "./transactions/builder.js";
import { Transaction, type TransactionOptions } from "./transactions/transaction.js";
import type { Handler, WorkerOptions } from "./worker/options.js";
import { inTransaction } from "./worker/transactional.js";
import type { TransactionalHandler, TransactionalWorkerOptions } from "./worker/transactional.js";
import { Worker } from "./worker/worker.js";

/**
 * A client of a Sluice server, or of the nodes of a cluster.
 *
 * It connects when it is first used. Calls that may be repeated without harm are repeated while the server is
 * busy, stopping or not reached, at the other addresses too.
 *
 * @example
 * const client = new Client({ servers: "http://127.0.0.1:7070" });
 * await client.send("mail", { to: "ann" });
 */
export class Client implements Sender, AsyncDisposable {
  /** The generated clients: every call of the gRPC API, with its fields as they are there. */
  readonly calls: Calls;
  readonly documents: Documents;
  readonly attachments: Attachments;
  readonly locks: Locks;
  readonly schedules: Schedules;
  readonly #options: ResolvedOptions;
  readonly #pool: Pool;
  readonly #messaging: Messaging;
  readonly #results: Results;

  constructor(options: ClientOptions = {}) {
    this.#options = resolveOptions(options);
    this.#pool = new Pool(this.#options);
    this.calls = calls(this.#pool);
    this.#messaging = new Messaging(this.calls);
    this.#results = new Results(this.calls, this.#messaging);
    this.documents = new Documents(this.calls);
    this.attachments = new Attachments(this.calls);
    this.locks = new Locks(this.calls);
    this.schedules = new Schedules(this.calls);
  }

  /** Address of the server that is asked now. */
  get server(): string {
    return this.#pool.server;
  }

  /** Calls about queues: settings, pause, purge, dead letters. */
  get queues(): Calls["queues"] {
    return this.calls.queues;
  }

  /** Calls about namespaces and their quotas. */
  get namespaces(): Calls["namespaces"] {
    return this.calls.namespaces;
  }

  /** Calls about limits that queues follow. */
  get limits(): Calls["limits"] {
    return this.calls.limits;
  }

  /** Calls about consumers and the messages that they hold. */
  get consumers(): Calls["consumers"] {
    return this.calls.consumers;
  }

  /** Calls that change many messages. */
  get bulks(): Calls["bulks"] {
    return this.calls.bulks;
  }

  /** Streams of what happens to messages. */
  get events(): Calls["events"] {
    return this.calls.events;
  }

  /** Calls about messages: list, search, peek, get, cancel, hold, approve, retry, move. */
  get messages(): Calls["messages"] {
    return this.calls.messages;
  }

  /** Sends one message. The queue is created if it does not exist. */
  send(queue: string, payload: Payload, options?: MessageOptions & SendOptions): Promise<Sent> {
    return this.#messaging.send(queue, payload, options);
  }

  /** Sends up to 10,000 messages to a queue, all or none. */
  sendMany(queue: string, messages: readonly OutgoingMessage[], options?: SendOptions): Promise<SentMany> {
    return this.#messaging.sendMany(queue, messages, options);
  }

  /** Sends messages to any queues, and a callback that is delivered when all of them have ended. */
  sendGroup(
    messages: readonly QueueMessage[],
    callback: QueueMessage,
    options?: SendOptions,
  ): Promise<SentGroup> {
    return this.#messaging.sendGroup(messages, callback, options);
  }

  /** Receives messages, which are to be settled before their leases end. A {@link worker} is faster. */
  receive(queues: string | readonly string[], options?: ReceiveOptions): Promise<Received[]> {
    return this.#messaging.receive(queues, options);
  }

  /** Settles deliveries; each has a result of its own. */
  settle(items: readonly SettleItem[]): Promise<ItemResult[]> {
    return this.#messaging.settle(items);
  }

  /** Extends leases; each has a result of its own. */
  extend(items: readonly ExtendItem[]): Promise<ItemResult[]> {
    return this.#messaging.extend(items);
  }

  /** Begins to work on the messages of queues, until it is stopped. */
  worker(queues: string | readonly string[], handler: Handler, options: WorkerOptions = {}): Worker {
    const names = typeof queues === "string" ? [queues] : queues;
    const source = { namespace: this.#options.namespace, queues: names };
    return new Worker(this.#pool, this.#messaging, source, handler, options);
  }

  /**
   * Begins to work on the messages of queues, each in a transaction: all that its handler stages is committed
   * together with the ack, or, if the message is lost, nothing of it. After a conflict with others the handler
   * runs again, on fresh reads: what it does beside its transaction has to bear repeating.
   */
  transactionalWorker(
    queues: string | readonly string[],
    handler: TransactionalHandler,
    options: TransactionalWorkerOptions = {},
  ): Worker {
    return this.worker(queues, inTransaction(this.calls, handler, options.transactionTtlMs), options);
  }

  /**
   * Sends a message, and waits for the result that a worker returns for it. `timed_out`: nobody has replied;
   * `work_failed`: the message is dead.
   */
  request(queue: string, payload: Payload, options?: RequestOptions): Promise<Content> {
    return this.#results.request(queue, payload, options);
  }

  /**
   * Waits for the end of a message, which was sent with `resultTtlMs`, and returns its result. `timed_out`:
   * it has not ended within `waitMs`; `work_failed`: it is dead.
   */
  result(id: string, options?: ResultOptions): Promise<Content> {
    return this.#results.result(id, options);
  }

  /** How a message has ended, or with `pending` that it has not within `waitMs`. */
  outcome(id: string, options?: ResultOptions): Promise<Outcome> {
    return this.#results.outcome(id, options);
  }

  /** Acquires a lock, and keeps it until it is released; use it with `await using`. */
  lock(key: string | readonly string[], options?: LockOptions): Promise<HeldLock> {
    return this.locks.acquire(key, options);
  }

  /**
   * Runs a function while a lock is held, and returns what it returns. `held.signal` aborts when the lock is
   * lost; then this rejects with `lease_lost`, whatever the function has done.
   */
  withLock<T>(
    key: string | readonly string[],
    options: LockOptions,
    run: (held: HeldLock) => Promise<T> | T,
  ): Promise<T> {
    return this.locks.with(key, options, run);
  }

  /** Begins a transaction of one call: add operations, then `commit()`. */
  newTransaction(): TransactionBuilder {
    return new TransactionBuilder(this.calls);
  }

  /**
   * Runs a function in a transaction over several calls: it is committed when the function returns, and
   * rolled back when it throws.
   */
  transaction<T>(
    run: (transaction: Transaction) => Promise<T> | T,
    options: TransactionOptions = {},
  ): Promise<T> {
    return Transaction.run(this.calls, options, run);
  }

  /** Ends the connections. Calls that are under way fail. */
  close(): void {
    this.#pool.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }
}
