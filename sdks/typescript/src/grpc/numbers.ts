import { millis, type Time } from "../core/message.js";

/** Milliseconds, or any other whole number, for a 64-bit field. */
export function whole(value: number | undefined): bigint | undefined {
  return value === undefined ? undefined : BigInt(Math.round(value));
}

/** A time for a 64-bit field. */
export function moment(time: Time | undefined): bigint | undefined {
  return time === undefined ? undefined : BigInt(Math.round(millis(time)));
}

/** A time of the server; `undefined` if it is not set. */
export function date(ms: bigint | undefined): Date | undefined {
  return ms === undefined || ms === 0n ? undefined : new Date(Number(ms));
}
