import type { ErrorCode, KnownCode } from "./codes.js";

/** What an error knows besides its code and message. */
export interface ErrorFacts {
  /** The values of the message. */
  details?: Readonly<Record<string, string>>;
  /** Time after which the server asks to try again, in milliseconds. */
  retryAfterMs?: number | undefined;
  /** False: the call has surely had no effect. */
  mayHaveTakenEffect?: boolean;
  cause?: unknown;
}

/**
 * The error of a call.
 *
 * Programs decide by {@link SluiceError.code}, whose meaning never changes; people read the message.
 */
export class SluiceError extends Error {
  /** The stable code, such as `queue_not_found`. */
  readonly code: ErrorCode;
  /** The values of the message, such as the queue's name. */
  readonly details: Readonly<Record<string, string>>;
  /** Time after which the server asks to try again, in milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** True if the call may have taken effect all the same, since its answer was lost or not known. */
  readonly mayHaveTakenEffect: boolean;

  constructor(code: ErrorCode, message: string, facts: ErrorFacts = {}) {
    super(message, { cause: facts.cause });
    this.name = "SluiceError";
    this.code = code;
    this.details = facts.details ?? {};
    this.retryAfterMs = facts.retryAfterMs;
    this.mayHaveTakenEffect = facts.mayHaveTakenEffect ?? false;
  }
}

/** The error for a value of a field that no server needs to see. */
export function invalid(field: string, reason: string): SluiceError {
  return new SluiceError("invalid_argument", `${field}: ${reason}`, { details: { field } });
}

/**
 * True if the error is a {@link SluiceError} with this code, or one of these.
 *
 * @example
 * try {
 *   await client.documents.put("a", { n: 2 }, { ifVersion: 1 });
 * } catch (error) {
 *   if (!isCode(error, "version_mismatch")) throw error;
 * }
 */
export function isCode(error: unknown, ...codes: KnownCode[]): error is SluiceError {
  return error instanceof SluiceError && (codes as string[]).includes(error.code);
}
