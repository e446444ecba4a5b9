import { Delivery } from "../delivery.js";
import type { Delivered } from "../gen/sluice/v1/common_pb.js";
import type { Report } from "../settlement.js";

/** A message that a worker works on. */
export class Job extends Delivery {
  /** Aborts when the message is lost or cancelled: the work is useless then. */
  readonly signal: AbortSignal;
  readonly #report: (report: Report) => Promise<void>;

  /** @internal */
  constructor(wire: Delivered, signal: AbortSignal, report: (report: Report) => Promise<void>) {
    super(wire);
    this.signal = signal;
    this.#report = report;
  }

  /** Tells the progress of the work, or leaves a checkpoint for the next attempt. */
  report(report: Report): Promise<void> {
    return this.#report(report);
  }
}
