import type { SluiceError } from "../core/errors.js";
import type { Payload } from "../core/payload.js";
import type { SettleItem } from "../settlement.js";
import type { Job } from "./job.js";

/**
 * Works on a message. What it returns is the result of the ack. To end it otherwise it throws `Retry`, `Dead`
 * or `Release`; any other error is a nack with its text, and another attempt follows after the backoff.
 */
export type Handler = (job: Job) => Promise<Payload | void> | Payload | void;

/** The options of a worker. */
export interface WorkerOptions {
  /** Messages that are worked on at once; default 1. */
  concurrency?: number;
  /** Messages that are fetched ahead of that; default 0. Others cannot work on these meanwhile. */
  prefetch?: number;
  /**
   * How long it may take until another worker gets a message after this one has died; default 30,000, 1,000
   * at least. It does not bound the work: leases are renewed for as long as the handler runs.
   */
  leaseMs?: number;
  /** Name of the worker, shown in lists. */
  name?: string;
  /** Stops the worker, as `stop()` does. */
  signal?: AbortSignal;
  /** Hears what is worth a log line. */
  onEvent?: (event: WorkerEvent) => void;
}

/** What a worker tells besides its work. */
export type WorkerEvent =
  | { /** The session has failed, and is begun again. */ type: "failed"; error: SluiceError }
  | { /** The session works again. */ type: "recovered" }
  | { /** Another worker has or will get the message. */ type: "lost"; receipt: string }
  | { type: "cancelled"; receipt: string }
  | { type: "unsettled"; item: SettleItem; error: SluiceError }
  | { /** The server does not take this end; its message is nacked instead. */
      type: "refused"; item: SettleItem; error: SluiceError };

/** What a worker has done. */
export interface WorkerSummary {
  acked: number;
  nacked: number;
  released: number;
  rejected: number;
  /** Messages that could not be settled: their leases were lost, or no server answered. */
  unsettled: number;
}
