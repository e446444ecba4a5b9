import { invalid } from "../core/errors.js";
import { millis, type Time } from "../core/message.js";

/** Milliseconds, or any other whole number, for a 64-bit field. */
export function whole(value: number | undefined, field: string): bigint | undefined {
  if (value === undefined) return undefined;
  if (!Number.isFinite(value)) throw invalid(field, `expected a number, not ${String(value)}`);
  return BigInt(Math.round(value));
}

/** A time for a 64-bit field. */
export function moment(time: Time | undefined, field: string): bigint | undefined {
  return time === undefined ? undefined : whole(millis(time), field);
}

/** A time of the server; `undefined` if it is not set. */
export function date(ms: bigint | undefined): Date | undefined {
  return ms === undefined || ms === 0n ? undefined : new Date(Number(ms));
}
