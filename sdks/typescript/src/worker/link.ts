import type { Transport } from "@connectrpc/connect";
import { SluiceError } from "../core/errors.js";
import { backoff, isWorthRepeating, sleep } from "../core/retry.js";
import type { FrameResult } from "../gen/sluice/v1/session_pb.js";
import { whole } from "../grpc/numbers.js";
import type { FrameInit } from "./frames.js";
import type { WireDelivered } from "./reading.js";
import { CONSUMER, Session } from "./session.js";

/** With what the consumer is attached. */
export interface Terms {
  /** Empty: `default`. */
  namespace: string;
  queues: readonly string[];
  credit: number;
  leaseMs: number;
  name: string;
}

/** What the link tells its worker, and asks it. */
export interface LinkEvents {
  delivered(messages: WireDelivered[]): void;
  /** The consumer is attached; the leases of these receipts are lost. */
  attached(lost: string[]): void;
  cancelled(receipts: string[]): void;
  /** The session has failed, and is begun again. */
  failed(error: SluiceError): void;
  /** Receipts of what is still held, for the next session. */
  held(): string[];
}

/** Longest pause between two sessions. */
const PAUSE_MAX_MS = 5_000;
/** A session that has lasted so long was no failure to begin one. */
const LASTED_MS = 5_000;
/** Interval of the looks whether everything is settled, while the server is stopping. */
const LOOK_EVERY_MS = 50;
/** Longest time that ending a session may take. */
const CLOSE_WITHIN_MS = 2_000;
/** What a lost attachment, or a settled message, is no sign of. */
const NOT_LOST = ["already_settled", "in_doubt"];

/** Keeps a session open: one that breaks is begun again, with what is still held. */
export class Link {
  readonly #transport: Transport;
  readonly #events: LinkEvents;
  readonly #terms: Terms;
  readonly #stopped = new AbortController();
  #session: Session | undefined;
  #isAttached = false;
  #attaching: Promise<void> = Promise.resolve();

  constructor(transport: Transport, terms: Terms, events: LinkEvents) {
    this.#transport = transport;
    this.#terms = { ...terms };
    this.#events = events;
  }

  /** Runs until {@link close}. Throws an error that a retry cannot cure. */
  async run(): Promise<void> {
    let failures = 0;
    while (!this.#stopped.signal.aborted) {
      const began = performance.now();
      const error = await this.#runSession();
      if (this.#stopped.signal.aborted) return;
      if (!isPassing(error)) throw error;
      this.#events.failed(error);
      failures = performance.now() - began > LASTED_MS ? 1 : failures + 1;
      await sleep(backoff(failures, PAUSE_MAX_MS), this.#stopped.signal).catch(() => undefined);
    }
  }

  /** Sends a frame. Rejects with `unreachable` if there is no session, or it breaks before the answer. */
  ask(frame: FrameInit): Promise<FrameResult> {
    if (this.#session === undefined || !this.#isAttached) {
      return Promise.reject(new SluiceError("unreachable", "there is no session"));
    }
    return this.#session.ask(frame);
  }

  /** Lets no more messages come. */
  stopDeliveries(): void {
    this.#terms.credit = 0;
    // The next session begins without credit if this one breaks.
    this.ask({ case: "credit", value: { consumer: CONSUMER, credit: 0 } }).catch(() => undefined);
  }

  /** Gives back what came too late to be seen, and ends the session. */
  async close(): Promise<void> {
    this.#stopped.abort();
    // A session that is just beginning may have messages by the time it has begun.
    const detached = this.#attaching.then(() => this.ask({ case: "detach", value: { consumer: CONSUMER } }));
    const waited = new AbortController();
    await Promise.race([detached.catch(() => undefined), sleep(CLOSE_WITHIN_MS, waited.signal)]);
    waited.abort();
    this.#session?.end();
    this.#session?.cut(new SluiceError("unreachable", "the worker has ended"));
  }

  /** Runs one session; returns why it has ended. */
  async #runSession(): Promise<SluiceError> {
    const session = new Session({
      delivered: (messages) => this.#events.delivered(messages),
      cancelled: (receipts) => this.#events.cancelled(receipts),
      draining: () => void this.#drain(session),
    });
    this.#session = session;
    this.#attaching = this.#attach(session).catch((error: SluiceError) => session.cut(error));
    try {
      await session.run(this.#transport);
    } catch (thrown) {
      if (!(thrown instanceof SluiceError)) throw thrown;
      return thrown;
    } finally {
      this.#isAttached = false;
      this.#session = undefined;
      await this.#attaching;
    }
    return new SluiceError("unreachable", "the session has ended");
  }

  async #attach(session: Session): Promise<void> {
    const { namespace, queues, credit, leaseMs, name } = this.#terms;
    const resume = this.#events.held();
    const attach = {
      consumer: CONSUMER,
      queues: [...queues],
      credit,
      leaseMs: whole(leaseMs, "leaseMs"),
      name,
      graceMs: whole(Math.min(leaseMs, 3_600_000), "leaseMs"),
      resume,
    };
    const opened = session.ask({ case: "open", value: { namespace } });
    const [, result] = await Promise.all([opened, session.ask({ case: "attach", value: attach })]);
    this.#isAttached = true;
    const lost = result.failures.filter(({ error }) => !NOT_LOST.includes(error?.code ?? ""));
    this.#events.attached(lost.flatMap(({ item }) => resume[item] ?? []));
  }

  /** Goes on elsewhere once everything is settled. */
  async #drain(session: Session): Promise<void> {
    while (this.#events.held().length > 0 || session.unanswered > 0) {
      if (this.#session !== session) return;
      await sleep(LOOK_EVERY_MS);
    }
    session.cut(new SluiceError("shutting_down", "the server is about to stop"));
  }
}

/** True if a later session may get what this one was refused. */
function isPassing(error: SluiceError): boolean {
  return isWorthRepeating(error, true) || error.code === "consumer_not_found";
}
