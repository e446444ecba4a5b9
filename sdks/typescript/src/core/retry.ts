import { SluiceError } from "./errors.js";

/** How long a call is tried again. */
export interface RetryPolicy {
  /** Time for which a call is repeated after its first failure, in milliseconds; default 30,000. */
  retryForMs: number;
  /** The same for a single server to which no connection can be made, if that is less; default 10,000. */
  connectRetryForMs: number;
}

/** The policy unless the options say otherwise. */
export const RETRY_DEFAULT: RetryPolicy = { retryForMs: 30_000, connectRetryForMs: 10_000 };

const FIRST_DELAY_MS = 25;
const DELAY_MAX_MS = 5_000;
/** Nodes of a cluster agree on a leader within about a second: a longer delay would add to that. */
const LEADER_DELAY_MAX_MS = 100;
/** Refusals before anything was done. */
const NOTHING_DONE = ["overloaded", "shutting_down", "not_leader", "no_leader", "in_doubt", "rate_limited"];
/** Failures after which nobody knows what was done. */
const UNKNOWN = ["outcome_unknown", "journal_failed", "internal", "unreachable", "timed_out"];
/** Failures after which another node of the cluster may do better. */
const ASK_ANOTHER =
  ["not_leader", "no_leader", "shutting_down", "outcome_unknown", "unreachable", "timed_out"];

/** True if a call that is safe to repeat, or not, may succeed later as it is. */
export function isWorthRepeating(error: SluiceError, repeatable: boolean): boolean {
  if (NOTHING_DONE.includes(error.code)) return true;
  if (!UNKNOWN.includes(error.code)) return false;
  return repeatable || !error.mayHaveTakenEffect;
}

/** True if another server of the same cluster may answer better. */
export function mayDoBetterElsewhere(error: SluiceError): boolean {
  return ASK_ANOTHER.includes(error.code);
}

/** The tries of one call. */
export class Tries {
  readonly #others: number;
  readonly #policy: RetryPolicy;
  #failingSince: number | undefined;
  #passedOn = 0;
  #delays = 0;

  /** @param others Number of servers that can be asked besides the first. */
  constructor(others: number, policy: RetryPolicy) {
    this.#others = others;
    this.#policy = policy;
  }

  /**
   * The delay before the next try in milliseconds; `undefined`: the error is final. Each other server is
   * asked once without a delay, however long the others have taken.
   */
  next(error: SluiceError, repeatable: boolean, toAnother: boolean): number | undefined {
    const now = performance.now();
    this.#failingSince ??= now;
    if (!isWorthRepeating(error, repeatable)) return undefined;
    const isElsewhere = toAnother && this.#passedOn < this.#others;
    this.#passedOn = isElsewhere ? this.#passedOn + 1 : 0;
    const limit = this.#limit(error);
    if (limit <= 0) return undefined;
    if (isElsewhere && this.#delays === 0) return 0;
    if (!isElsewhere) this.#delays += 1;
    const delay = isElsewhere ? 0 : this.#delay(error, toAnother);
    return now - this.#failingSince + delay <= limit ? delay : undefined;
  }

  #limit(error: SluiceError): number {
    const noConnection = error.code === "unreachable" && !error.mayHaveTakenEffect;
    const { retryForMs, connectRetryForMs } = this.#policy;
    return noConnection && this.#others === 0 ? Math.min(retryForMs, connectRetryForMs) : retryForMs;
  }

  #delay(error: SluiceError, toAnother: boolean): number {
    const asked = toAnother ? 0 : (error.retryAfterMs ?? 0);
    const grown = backoff(this.#delays, toAnother ? LEADER_DELAY_MAX_MS : DELAY_MAX_MS);
    return asked + grown;
  }
}

/** Between half and all of a delay that doubles with each failure, so that many do not return at once. */
export function backoff(failures: number, maxMs: number = DELAY_MAX_MS): number {
  const grown = Math.min(FIRST_DELAY_MS * 2 ** Math.min(failures - 1, 16), maxMs);
  return grown / 2 + (Math.random() * grown) / 2;
}

/** Waits; ends early with the reason of the signal. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const done = (): void => {
      signal?.removeEventListener("abort", abort);
      resolve();
    };
    const timer = setTimeout(done, ms);
    const abort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", abort, { once: true });
  });
}
