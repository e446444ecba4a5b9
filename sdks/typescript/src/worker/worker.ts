import type { Transport } from "@connectrpc/connect";
import { isCode, SluiceError } from "../core/errors.js";
import type { Payload } from "../core/payload.js";
import type { ItemResult, Messaging } from "../messaging.js";
import type { Report, SettleItem } from "../settlement.js";
import { withTrace } from "../telemetry.js";
import { Job, type Reporter } from "./job.js";
import { Leases, type Lease } from "./leases.js";
import { Link } from "./link.js";
import type { Handler, WorkerEvent, WorkerOptions, WorkerSummary } from "./options.js";
import { ofReturn, ofThrow } from "./outcome.js";
import type { WireDelivered } from "./reading.js";
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
export class Worker implements AsyncDisposable, Reporter {
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
  readonly #stopped: Promise<void>;
  #waiting: { message: WireDelivered; lease: Lease }[] = [];
  #running = 0;
  /** Messages that are worked on, or not settled yet. */
  #open = 0;
  /** Called when there are none. */
  #idle: (() => void) | undefined;
  #hasFailed = false;
  #isStopping = false;
  #stop!: () => void;

  /** @internal A client makes workers. */
  constructor(
    transport: Transport,
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
    this.#link = new Link(transport, terms, {
      delivered: (messages) => {
        for (const message of messages) this.#take(message);
        this.#startHandlers();
      },
      attached: (lost) => this.#attached(lost),
      cancelled: (receipts) => receipts.forEach((receipt) => this.#lose(receipt, "cancelled")),
      failed: (error) => this.#failed(error),
      held: () => this.#leases.receipts(),
    });
    this.#settler = new WorkerSettler(this.#link, messaging, credit, this.#leaseMs, {
      settled: (item, result) => this.#settled(item, result),
      refused: (item, error) => this.#onEvent({ type: "refused", item, error }),
    });
    this.#stopped = new Promise((resolve) => (this.#stop = resolve));
    this.done = this.#run();
    this.#obey(options.signal);
  }

  /** Stops when the signal aborts, and lets go of it at the end. */
  #obey(signal: AbortSignal | undefined): void {
    const stop = (): void => this.#beginStop();
    const ended = (): void => signal?.removeEventListener("abort", stop);
    // Whoever does not wait for the end is not to crash by it.
    this.done.then(ended, ended);
    signal?.addEventListener("abort", stop, { once: true });
    if (signal?.aborted) stop();
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
    while (this.#open > 0) await new Promise<void>((resolve) => (this.#idle = resolve));
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

  #take(message: WireDelivered): void {
    const lease = this.#leases.add(message.receipt, performance.now());
    if (this.#isStopping) return this.#giveBack(message);
    this.#waiting.push({ message, lease });
  }

  #startHandlers(): void {
    // A handler that has returned at once makes room for the next one.
    while (this.#running < this.#concurrency) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      if (next.lease.isLost) this.#leases.remove(next.message.receipt);
      else this.#handle(new Job(next.message, next.lease, this));
    }
  }

  #handle(job: Job): void {
    this.#running += 1;
    this.#open += 1;
    let returned: ReturnType<Handler>;
    try {
      returned = withTrace(job.headers, () => this.#handler(job));
    } catch (thrown) {
      return this.#handled(ofThrow(job.receipt, thrown));
    }
    if (!isPromise(returned)) return this.#handled(ofReturn(job.receipt, returned as Payload | undefined));
    const ended = (item: SettleItem): void => {
      this.#handled(item);
      // Its credit is back before the next one comes; who waits already begins at once.
      this.#startHandlers();
    };
    returned.then(
      (result) => ended(ofReturn(job.receipt, result as Payload | undefined)),
      (thrown: unknown) => ended(ofThrow(job.receipt, thrown)),
    );
  }

  #handled(item: SettleItem): void {
    this.#running -= 1;
    this.#settler.settle(item);
  }

  #giveBack(message: WireDelivered): void {
    this.#open += 1;
    this.#settler.settle({ receipt: message.receipt, outcome: "release" });
  }

  #settled(item: SettleItem, { ok, error }: ItemResult): void {
    this.#leases.remove(item.receipt);
    this.#summary[ok ? COUNTED[item.outcome] : "unsettled"] += 1;
    if (!ok && error !== undefined) this.#onEvent({ type: "unsettled", item, error });
    this.#open -= 1;
    if (this.#open === 0) this.#idle?.();
  }

  /** @internal Begins the lease anew with what the handler reports. */
  async reportOf(receipt: string, report: Report): Promise<void> {
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
}

function isPromise(returned: ReturnType<Handler>): returned is Promise<Payload | void> {
  return typeof (returned as Promise<unknown> | undefined)?.then === "function";
}
