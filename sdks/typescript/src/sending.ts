import { randomKey } from "./core/key.js";
import { traceHeaders } from "./telemetry.js";

/** What makes a send itself: its key, and the trace headers that may go with it. */
export interface Identity {
  idempotencyKey: string;
  trace: Readonly<Record<string, string>>;
}

/** A new key with the trace of the caller; or the caller's key alone, since a repeat has to say the same. */
export function identity(options: { idempotencyKey?: string }): Identity {
  if (options.idempotencyKey !== undefined) return { idempotencyKey: options.idempotencyKey, trace: {} };
  return { idempotencyKey: randomKey(), trace: traceHeaders() };
}
