import { Delivery } from "../delivery.js";
import type { Report } from "../settlement.js";
import type { Lease } from "./leases.js";
import type { WireDelivered } from "./reading.js";

/** What tells the reports of handlers. */
export interface Reporter {
  reportOf(receipt: string, report: Report): Promise<void>;
}

/** A message that a worker works on. */
export class Job extends Delivery {
  readonly #lease: Lease;
  readonly #reporter: Reporter;

  /** @internal */
  constructor(wire: WireDelivered, lease: Lease, reporter: Reporter) {
    super(wire);
    this.#lease = lease;
    this.#reporter = reporter;
  }

  /** Aborts when the message is lost or cancelled: the work is useless then. */
  get signal(): AbortSignal {
    return this.#lease.signal;
  }

  /** Tells the progress of the work, or leaves a checkpoint for the next attempt. */
  report(report: Report): Promise<void> {
    return this.#reporter.reportOf(this.receipt, report);
  }
}
