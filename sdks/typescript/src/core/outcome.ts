import { SluiceError } from "./errors.js";
import { Content } from "./payload.js";

/** How a message has ended, or that it has not. */
export type Outcome =
  | { state: "done"; /** The result of its ack, if it gave one that is kept. */ result: Content | undefined }
  | { state: "dead"; reason: string }
  | { state: "pending"; percent?: number; note?: string };

/** The options of a wait for a result. */
export interface ResultOptions {
  /** How long to wait; default: for as long as it takes. */
  waitMs?: number;
  signal?: AbortSignal;
}

/** Longest wait of one call. */
export const WAIT_MAX_MS = 60_000;

/** Asks for an outcome again and again until it is there, or the time is over. */
export async function waitFor(
  ask: (waitMs: number) => Promise<Outcome>,
  waitMs: number = Infinity,
): Promise<Outcome> {
  const until = performance.now() + waitMs;
  for (;;) {
    const left = Math.max(0, until - performance.now());
    const outcome = await ask(Math.round(Math.min(left, WAIT_MAX_MS)));
    if (outcome.state !== "pending" || left <= WAIT_MAX_MS) return outcome;
  }
}

/** The result of a message that is done; throws if it is not. */
export function resultOf(id: string, outcome: Outcome): Content {
  if (outcome.state === "done") return outcome.result ?? new Content(new Uint8Array(), "");
  if (outcome.state === "pending") throw timedOut(id);
  throw new SluiceError("work_failed", `message ${id} is dead: ${outcome.reason}`, {
    details: { id, reason: outcome.reason },
  });
}

/** The error of a wait that was too short. */
export function timedOut(id: string): SluiceError {
  return new SluiceError("timed_out", `message ${id} has not ended in time`, {
    details: { id },
    mayHaveTakenEffect: true,
  });
}
