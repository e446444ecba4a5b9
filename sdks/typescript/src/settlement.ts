import type { MessageInitShape } from "@bufbuild/protobuf";
import { encode, type Payload } from "./core/payload.js";
import type { ExtensionSchema, SettlementSchema } from "./gen/sluice/v1/common_pb.js";
import { whole } from "./grpc/numbers.js";

/** How a delivery ends. */
export type Settlement =
  | { outcome: "ack"; result?: Payload; resultContentType?: string }
  | { outcome: "nack"; error?: string; delayMs?: number }
  | { outcome: "release"; delayMs?: number }
  | { outcome: "reject"; error?: string };

/** A delivery to settle. */
export type SettleItem = Settlement & {
  receipt: string;
  /** Cost of the work beyond that of the message; it counts in the rates of the queue's limit. */
  addCost?: number;
};

/** A lease to extend, with a report of its holder. */
export interface ExtendItem extends Report {
  receipt: string;
  /** New length of the lease from now; default: the queue's. */
  leaseMs?: number;
}

/** What the holder of a message tells about its work. */
export interface Report {
  /** Progress of the work, 0 to 100. */
  percent?: number;
  /** Note for people. */
  note?: string;
  /** Handed to the next attempt. */
  checkpoint?: Uint8Array | string;
  /** Cost of the work beyond that of the message and of earlier reports. */
  addCost?: number;
}

/** A settlement as a call has it. */
export function settlementInit(item: SettleItem): MessageInitShape<typeof SettlementSchema> {
  const { receipt, outcome, addCost } = item;
  if (outcome === "ack") {
    if (item.result === undefined) return { receipt, outcome, addCost };
    const { bytes, contentType } = encode(item.result, item.resultContentType, "result");
    return { receipt, outcome, addCost, result: bytes, resultContentType: contentType || undefined };
  }
  const delayMs = outcome === "reject" ? undefined : whole(item.delayMs, "delayMs");
  return { receipt, outcome, addCost, delayMs, error: outcome === "release" ? undefined : item.error };
}

/** An extension as a call has it. */
export function extensionInit(item: ExtendItem): MessageInitShape<typeof ExtensionSchema> {
  const { receipt, percent, note, checkpoint, addCost } = item;
  return {
    receipt,
    addCost,
    leaseMs: whole(item.leaseMs, "leaseMs"),
    progress: percent === undefined && note === undefined ? undefined : { percent, note },
    checkpoint: checkpoint === undefined ? undefined : encode(checkpoint, undefined, "checkpoint").bytes,
  };
}
