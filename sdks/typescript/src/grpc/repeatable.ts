/** Fields of which one makes a repeat of the call harmless. */
const KEYED: Readonly<Record<string, "idempotencyKey" | "requestId">> = {
  "Messages/Send": "idempotencyKey",
  "Messages/SendGroup": "idempotencyKey",
  "Transactions/Commit": "idempotencyKey",
  "Locks/Acquire": "requestId",
  "Documents/Put": "requestId",
  "Documents/Patch": "requestId",
};

/** Calls of which a repeat does more than one. */
const ONCE = ["Messages/Receive", "Transactions/Stage", "Schedules/Trigger", "Bulks/Start"];

/**
 * True if a repeat of a call has no further effect. All other calls read, or state the wanted result and not
 * a difference.
 */
export function isRepeatable(service: string, method: string, request: object): boolean {
  const name = `${service.replace(/^.*\./, "")}/${method}`;
  const key = KEYED[name];
  if (key !== undefined) return Boolean((request as Record<string, unknown>)[key]);
  return !ONCE.includes(name);
}
