/** Fields of which one makes a repeat of the call harmless. */
const KEYED: Readonly<Record<string, "idempotencyKey" | "requestId">> = {
  "Messages/Send": "idempotencyKey",
  "Messages/SendGroup": "idempotencyKey",
  "Transactions/Commit": "idempotencyKey",
  "Locks/Acquire": "requestId",
  "Documents/Put": "requestId",
  "Documents/Patch": "requestId",
};

/** Calls of which a repeat does more than one, or does it to what has come since under the same name. */
const ONCE = new Set([
  "Attachments/Delete",
  "Attachments/End",
  "Bulks/Start",
  "Consumers/Detach",
  "Documents/Delete",
  "Documents/DeleteIndex",
  "Limits/Delete",
  "Locks/Break",
  "Messages/Approve",
  "Messages/Cancel",
  "Messages/Change",
  "Messages/Deny",
  "Messages/Hold",
  "Messages/Move",
  "Messages/Retry",
  "Namespaces/Delete",
  "Queues/Delete",
  "Queues/DeleteDead",
  "Queues/DeleteDefaults",
  "Queues/EndRedrive",
  "Queues/Purge",
  "Queues/Redrive",
  "Schedules/Delete",
  "Schedules/Trigger",
  "Testing/Advance",
  "Transactions/BreakOpen",
  "Transactions/Resolve",
  "Transactions/Rollback",
  "Transactions/Stage",
]);

/**
 * True if a repeat of a call has no further effect. All other calls read, or state the wanted result and not
 * a difference. The list is that of `sdks/conformance/repeats.json`.
 */
export function isRepeatable(service: string, method: string, request: object): boolean {
  const name = `${service.replace(/^.*\./, "")}/${method}`;
  const key = KEYED[name];
  if (key !== undefined) return Boolean((request as Record<string, unknown>)[key]);
  if (name === "Messages/Extend") return !addsCost(request);
  // What a lost answer has taken comes back; but the commit of a transaction would ack it.
  if (name === "Messages/Receive") return !(request as { transaction?: string }).transaction;
  return !ONCE.has(name);
}

/** True if a report of an extend adds a cost, which a repeat would add once more. */
function addsCost(request: { items?: readonly { addCost?: number }[] }): boolean {
  return (request.items ?? []).some((item) => (item.addCost ?? 0) > 0);
}
