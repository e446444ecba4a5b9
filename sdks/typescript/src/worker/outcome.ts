import { encode, type Payload } from "../core/payload.js";
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

/** Where the server cuts texts of errors, in octets. */
const ERROR_MAX = 4_096;

/** The end of a message whose handler has returned; of a result that cannot be encoded, a nack. */
export function ofReturn(receipt: string, result: Payload | undefined): SettleItem {
  if (result === undefined) return { receipt, outcome: "ack" };
  try {
    const { bytes, contentType } = encode(result, undefined, "result");
    return { receipt, outcome: "ack", result: bytes, ...(contentType && { resultContentType: contentType }) };
  } catch (error) {
    return { receipt, outcome: "nack", error: cut(textOf(error)) };
  }
}

/** The end of a message whose handler has thrown; of a delay that is none, a nack after the backoff. */
export function ofThrow(receipt: string, thrown: unknown): SettleItem {
  try {
    return endOf(receipt, thrown);
  } catch (error) {
    return { receipt, outcome: "nack", error: cut(`what was thrown cannot be told: ${textOf(error)}`) };
  }
}

/** The nack for an end that is not taken. */
export function insteadOf(item: SettleItem, reason: string): SettleItem {
  const said = "error" in item && item.error !== undefined ? `; the handler said: ${item.error}` : "";
  const error = cut(`the ${item.outcome} was refused: ${reason}${said}`);
  return { receipt: item.receipt, outcome: "nack", error };
}

function endOf(receipt: string, thrown: unknown): SettleItem {
  if (thrown instanceof Dead) return { receipt, outcome: "reject", error: cut(textOf(thrown)) };
  if (thrown instanceof Release) return { receipt, outcome: "release", ...delay(thrown.afterMs) };
  const afterMs = thrown instanceof Retry ? thrown.afterMs : undefined;
  return { receipt, outcome: "nack", error: cut(textOf(thrown)), ...delay(afterMs) };
}

function delay(afterMs: number | undefined): { delayMs?: number } {
  if (afterMs === undefined) return {};
  if (typeof afterMs !== "number" || !(afterMs <= Number.MAX_SAFE_INTEGER)) {
    throw new RangeError(`a delay of ${String(afterMs)} ms`);
  }
  return { delayMs: Math.max(0, afterMs) };
}

function textOf(thrown: unknown): string {
  return String(thrown instanceof Error ? thrown.message : thrown);
}

function cut(text: string): string {
  return text.slice(0, ERROR_MAX);
}
