/** The lease of a message that the worker holds. */
interface Lease {
  lost: AbortController;
  extendAt: number;
  endsAt: number;
}

/** The leases that a worker holds, by their receipts. Times are those of `performance.now()`. */
export class Leases {
  readonly #held = new Map<string, Lease>();
  readonly #leaseMs: number;

  constructor(leaseMs: number) {
    this.#leaseMs = leaseMs;
  }

  /** Notes a lease that began at `since`; returns the signal that it is lost. */
  add(receipt: string, since: number): AbortSignal {
    const lost = new AbortController();
    this.#held.set(receipt, { lost, extendAt: since + this.#leaseMs / 2, endsAt: since + this.#leaseMs });
    return lost.signal;
  }

  remove(receipt: string): void {
    this.#held.delete(receipt);
  }

  /** Gives the signal of a lease, the first time. True if there is such a lease. */
  lose(receipt: string, reason: unknown): boolean {
    const lease = this.#held.get(receipt);
    if (lease === undefined || lease.lost.signal.aborted) return false;
    lease.lost.abort(reason);
    return true;
  }

  /** Receipts of the leases that are not lost. */
  receipts(): string[] {
    return this.#kept().map(([receipt]) => receipt);
  }

  /** Receipts at half time; each is due again after a quarter of the lease, should this extend fail. */
  takeDue(now: number): string[] {
    const due = this.#kept().filter(([, lease]) => lease.extendAt <= now + this.#leaseMs / 8);
    for (const [, lease] of due) lease.extendAt = now + this.#leaseMs / 4;
    return due.map(([receipt]) => receipt);
  }

  /** Notes that an extend which was sent at `since` has succeeded. */
  extended(receipt: string, since: number): void {
    const lease = this.#held.get(receipt);
    if (lease === undefined) return;
    lease.extendAt = since + this.#leaseMs / 2;
    lease.endsAt = since + this.#leaseMs;
  }

  /** Receipts of leases that are over at `now`. */
  over(now: number): string[] {
    return this.#kept().flatMap(([receipt, lease]) => (lease.endsAt <= now ? [receipt] : []));
  }

  #kept(): [string, Lease][] {
    return [...this.#held].filter(([, lease]) => !lease.lost.signal.aborted);
  }
}
