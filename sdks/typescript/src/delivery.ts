import { Content, type Payload } from "./core/payload.js";
import type { Report, SettleItem } from "./settlement.js";
import type { WireDelivered } from "./worker/reading.js";

/** The headers of most messages. */
const NO_HEADERS: Readonly<Record<string, string>> = Object.freeze({});

/** A message as its consumer has it: its payload, and what the server tells about the delivery. */
export class Delivery extends Content {
  /** Id of the message. */
  readonly id: string;
  /** Proof of this delivery; a secret between server and consumer. */
  readonly receipt: string;
  readonly queue: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly tags: readonly string[];
  readonly priority: number;
  /** Number of the attempt, from 1. */
  readonly attempt: number;
  /** Attempts before the message becomes a dead letter. */
  readonly maxAttempts: number;
  /** Deliveries in all, including those that did not count as attempts. */
  readonly deliveries: number;
  /** Of a dead letter: the queue in which it died; else empty. */
  readonly fromQueue: string;
  /** Of a dead letter: why it died; else empty. */
  readonly reason: string;
  readonly correlationId: string;
  readonly replyTo: string;
  /** What an earlier attempt has left for this one. */
  readonly checkpoint: Content | undefined;
  readonly #sentAtMs: bigint;
  readonly #leaseUntilMs: bigint;

  constructor(wire: WireDelivered) {
    super(wire.payload, wire.contentType);
    this.id = wire.id;
    this.receipt = wire.receipt;
    this.queue = wire.queue;
    this.headers = wire.headers.length === 0 ? NO_HEADERS : headersOf(wire);
    this.tags = wire.tags;
    this.priority = wire.priority;
    this.attempt = wire.attempt;
    this.maxAttempts = wire.maxAttempts;
    this.deliveries = wire.deliveries;
    this.#sentAtMs = wire.sentAtMs;
    this.#leaseUntilMs = wire.leaseUntilMs;
    this.fromQueue = wire.fromQueue;
    this.reason = wire.reason;
    this.correlationId = wire.correlationId;
    this.replyTo = wire.replyTo;
    this.checkpoint = wire.checkpoint && new Content(wire.checkpoint, wire.checkpointContentType);
  }

  get sentAt(): Date {
    return new Date(Number(this.#sentAtMs));
  }

  /** End of the lease unless it is extended, by the server's clock. */
  get leaseUntil(): Date {
    return new Date(Number(this.#leaseUntilMs));
  }
}

function headersOf(wire: WireDelivered): Readonly<Record<string, string>> {
  return Object.fromEntries(wire.headers.map(({ name, value }) => [name, value]));
}

/** What settles and extends a single delivery. */
export interface Settler {
  settleOne(item: SettleItem): Promise<void>;
  extendOne(receipt: string, leaseMs: number | undefined, report: Report): Promise<void>;
}

/** A message that was received, which its receiver settles. */
export class Received extends Delivery {
  readonly #settler: Settler;

  constructor(wire: WireDelivered, settler: Settler) {
    super(wire);
    this.#settler = settler;
  }

  /** The work is done; the message is gone, but for its result. */
  ack(result?: Payload): Promise<void> {
    const item: SettleItem = { receipt: this.receipt, outcome: "ack" };
    return this.#settler.settleOne(result === undefined ? item : { ...item, result });
  }

  /** The work has failed: another attempt follows after the backoff, or after `delayMs`. */
  nack(options: { error?: string; delayMs?: number } = {}): Promise<void> {
    return this.#settler.settleOne({ receipt: this.receipt, outcome: "nack", ...options });
  }

  /** The message was not the cause: it goes back, and no attempt is counted. */
  release(options: { delayMs?: number } = {}): Promise<void> {
    return this.#settler.settleOne({ receipt: this.receipt, outcome: "release", ...options });
  }

  /** Another attempt is useless: the message becomes a dead letter. */
  reject(error: string): Promise<void> {
    return this.#settler.settleOne({ receipt: this.receipt, outcome: "reject", error });
  }

  /** Begins the lease anew, for `leaseMs`, or as long as the queue's. */
  extend(leaseMs?: number, report: Report = {}): Promise<void> {
    return this.#settler.extendOne(this.receipt, leaseMs, report);
  }
}
