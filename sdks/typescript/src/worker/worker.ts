import type { Calls } from "../calls.js";
import { isCode, SluiceError } from "../core/errors.js";
import type { Payload } from "../core/payload.js";
import type { Delivered } from "../gen/sluice/v1/common_pb.js";
import type { ItemResult, Messaging } from "../messaging.js";
import type { Report, SettleItem } from "../settlement.js";
import { withTrace } from "../telemetry.js";
import { Job } from "./job.js";
import { Leases } from "./leases.js";
import { Link } from "./link.js";
import type { Handler, WorkerEvent, WorkerOptions, WorkerSummary } from "./options.js";
import { ofReturn, ofThrow } from "./outcome.js";
import { WorkerSettler } from "./settler.js";

/** Most messages that a consumer may hold; the server's limit. */
const CREDIT_MAX = 10_000;
const LEASE_DEFAULT_MS = 30_000;
const LEASE_LEAST_MS = 1_000;

const COUNTED = { ack: "acked", nack: "nacked", release: "released", reject: "rejected" } as const;

/**
 * Takes messages from queues and works on them, until it is stopped: it finishes then what it works on, and
 * gives back what it has not begun. A server that cannot be reached is tried again for ever.
 */
export class Worker implements AsyncDisposable {
  /** Ends when the worker has ended. Rejects with an error that a retry cannot cure. */
  readonly done: Promise<WorkerSummary>;
  readonly #handler: Handler;
  readonly #concurrency: number;
  readonly #leaseMs: number;
  readonly #onEvent: (event: WorkerEvent) => void;
  readonly #leases: Leases;
  readonly #link: Link;
  readonly #settler: WorkerSettler;
  readonly #summary: WorkerSummary = { acked: 0, nacked: 0, released: 0, rejected: 0, unsettled: 0 };
  readonly #busy = new Set<Promise<void>>();
  readonly #stopped: Promise<void>;
  #waiting: { message: Delivered; lost: AbortSignal }[] = [];
  #running = 0;
  #hasFailed = false;
  #isStopping = false;
  #stop!: () => void;

  /** @internal A client makes workers. */
  constructor(
    calls: Calls,
    messaging: Messaging,
    source: { namespace: string; queues: readonly string[] },
    handler: Handler,
    options: WorkerOptions,
  ) {
    this.#handler = handler;
    this.#concurrency = Math.max(1, options.concurrency ?? 1);
    this.#leaseMs = Math.max(LEASE_LEAST_MS, options.leaseMs ?? LEASE_DEFAULT_MS);
    this.#onEvent = options.onEvent ?? (() => undefined);
    this.#leases = new Leases(this.#leaseMs);
    const credit = Math.min(CREDIT_MAX, this.#concurrency + (options.prefetch ?? 0));
    const terms = { ...source, credit, leaseMs: this.#leaseMs, name: options.name ?? "" };
    this.#link = new Link(calls, terms, {
      delivered: (messages) => messages.forEach((message) => this.#take(message)),
      attached: (lost) => this.#attached(lost),
      cancelled: (receipts) => receipts.forEach((receipt) => this.#lose(receipt, "cancelled")),
      failed: (error) => this.#failed(error),
      held: () => this.#leases.receipts(),
    });
    this.#settler = new WorkerSettler(this.#link, messaging, this.#leaseMs);
    this.#stopped = new Promise((resolve) => (this.#stop = resolve));
    this.done = this.#run();
    // Whoever does not wait for the end is not to crash by it.
    this.done.catch(() => undefined);
    options.signal?.addEventListener("abort", () => this.#beginStop(), { once: true });
    if (options.signal?.aborted) this.#beginStop();
  }

  /** Finishes what is worked on, gives back what has not begun, and ends. */
  stop(): Promise<WorkerSummary> {
    this.#beginStop();
    return this.done;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #run(): Promise<WorkerSummary> {
    // Of what has failed for good the session is ended already.
    const linked = this.#link.run().then(() => undefined, (error: unknown) => ({ error }));
    const tick = setInterval(() => this.#lookAfterLeases(), this.#leaseMs / 10);
    const ended = await Promise.race([linked, this.#stopped]);
    this.#beginStop();
    while (this.#busy.size > 0) await Promise.all(this.#busy);
    await this.#link.close();
    const refused = ended ?? (await linked);
    clearInterval(tick);
    if (refused !== undefined) throw refused.error;
    return { ...this.#summary };
  }

  #beginStop(): void {
    if (this.#isStopping) return;
    this.#isStopping = true;
    this.#link.stopDeliveries();
    for (const { message } of this.#waiting) this.#giveBack(message);
    this.#waiting = [];
    this.#stop();
  }

  #take(message: Delivered): void {
    const lost = this.#leases.add(message.receipt, performance.now());
    if (this.#isStopping) return this.#giveBack(message);
    this.#waiting.push({ message, lost });
    this.#startHandlers();
  }

  #startHandlers(): void {
    while (this.#running < this.#concurrency) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      if (next.lost.aborted) this.#leases.remove(next.message.receipt);
      else this.#track(this.#handle(next.message, next.lost));
    }
  }

  async #handle(message: Delivered, lost: AbortSignal): Promise<void> {
    const { receipt } = message;
    const job = new Job(message, lost, (report) => this.#report(receipt, report));
    this.#running += 1;
    const item = await this.#outcome(job);
    this.#running -= 1;
    // Its credit is back before the next one comes; who waits already begins at once.
    this.#startHandlers();
    await this.#settle(item);
  }

  async #outcome(job: Job): Promise<SettleItem> {
    try {
      const result = await withTrace(job.headers, () => this.#handler(job));
      return ofReturn(job.receipt, result === undefined ? undefined : (result as Payload));
    } catch (thrown) {
      return ofThrow(job.receipt, thrown);
    }
  }

  #giveBack(message: Delivered): void {
    this.#track(this.#settle({ receipt: message.receipt, outcome: "release" }));
  }

  async #settle(item: SettleItem): Promise<void> {
    const { ok, error } = await this.#settler.settle(item);
    this.#leases.remove(item.receipt);
    this.#summary[ok ? COUNTED[item.outcome] : "unsettled"] += 1;
    if (!ok && error !== undefined) this.#onEvent({ type: "unsettled", item, error });
  }

  /** Begins the lease anew with what the handler reports. */
  async #report(receipt: string, report: Report): Promise<void> {
    const since = performance.now();
    const [result] = await this.#settler.extend([{ receipt, leaseMs: this.#leaseMs, ...report }]);
    this.#extended(receipt, since, result);
    if (result?.error !== undefined) throw result.error;
  }

  #lookAfterLeases(): void {
    const now = performance.now();
    for (const receipt of this.#leases.over(now + this.#leaseMs / 10)) this.#lose(receipt, "lease_lost");
    const due = this.#leases.takeDue(now);
    if (due.length > 0) void this.#extend(due, now);
  }

  async #extend(due: string[], since: number): Promise<void> {
    const items = due.map((receipt) => ({ receipt, leaseMs: this.#leaseMs }));
    // One that fails is due again before the lease ends.
    const results = await this.#settler.extend(items).catch(() => []);
    due.forEach((receipt, index) => this.#extended(receipt, since, results[index]));
  }

  #extended(receipt: string, since: number, result: ItemResult | undefined): void {
    if (result === undefined) return;
    if (result.ok) return this.#leases.extended(receipt, since);
    if (isCode(result.error, "cancelled")) this.#lose(receipt, "cancelled");
    if (isCode(result.error, "lease_lost")) this.#lose(receipt, "lease_lost");
  }

  #lose(receipt: string, code: "cancelled" | "lease_lost"): void {
    const text = code === "cancelled" ? "the message was cancelled" : "the lease of the message is over";
    if (!this.#leases.lose(receipt, new SluiceError(code, text))) return;
    this.#onEvent({ type: code === "cancelled" ? "cancelled" : "lost", receipt });
  }

  #attached(lost: string[]): void {
    for (const receipt of lost) this.#lose(receipt, "lease_lost");
    if (this.#hasFailed) this.#onEvent({ type: "recovered" });
    this.#hasFailed = false;
  }

  #failed(error: SluiceError): void {
    this.#hasFailed = true;
    this.#onEvent({ type: "failed", error });
  }

  #track(work: Promise<void>): void {
    this.#busy.add(work);
    void work.finally(() => this.#busy.delete(work));
  }
}
