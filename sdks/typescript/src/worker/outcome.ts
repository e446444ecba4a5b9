import type { Payload } from "../core/payload.js";
import type { SettleItem } from "../settlement.js";

/** What a handler throws to ask for another attempt after a time of its own. */
export class Retry extends Error {
  /** Time until the next attempt in milliseconds; `undefined`: the backoff of the message. */
  readonly afterMs: number | undefined;

  constructor(options: { afterMs?: number; message?: string } = {}) {
    super(options.message ?? "the handler asks for another attempt");
    this.name = "Retry";
    this.afterMs = options.afterMs;
  }
}

/** What a handler throws if another attempt is useless: the message becomes a dead letter at once. */
export class Dead extends Error {
  constructor(reason: string) {
    super(reason);
    this.name = "Dead";
  }
}

/** What a handler throws if the message was not the cause: it goes back, and no attempt is counted. */
export class Release extends Error {
  readonly afterMs: number | undefined;

  constructor(options: { afterMs?: number } = {}) {
    super("the handler gives the message back");
    this.name = "Release";
    this.afterMs = options.afterMs;
  }
}

/** The end of a message whose handler has returned. */
export function ofReturn(receipt: string, result: Payload | undefined): SettleItem {
  return result === undefined ? { receipt, outcome: "ack" } : { receipt, outcome: "ack", result };
}

/** The end of a message whose handler has thrown. */
export function ofThrow(receipt: string, thrown: unknown): SettleItem {
  if (thrown instanceof Dead) return { receipt, outcome: "reject", error: thrown.message };
  if (thrown instanceof Release) return { receipt, outcome: "release", ...delay(thrown.afterMs) };
  const afterMs = thrown instanceof Retry ? thrown.afterMs : undefined;
  return { receipt, outcome: "nack", error: textOf(thrown), ...delay(afterMs) };
}

function delay(afterMs: number | undefined): { delayMs?: number } {
  return afterMs === undefined ? {} : { delayMs: afterMs };
}

function textOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
