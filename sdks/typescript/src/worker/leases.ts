/** The lease of a message that the worker holds. Times are those of `performance.now()`. */
export class Lease {
  extendAt: number;
  endsAt: number;
  #isLost = false;
  #reason: unknown;
  #lost: AbortController | undefined;

  constructor(extendAt: number, endsAt: number) {
    this.extendAt = extendAt;
    this.endsAt = endsAt;
  }

  get isLost(): boolean {
    return this.#isLost;
  }

  /** Aborts when the lease is lost. It is made when somebody asks for it: most handlers do not. */
  get signal(): AbortSignal {
    if (this.#lost === undefined) {
      this.#lost = new AbortController();
      if (this.#isLost) this.#lost.abort(this.#reason);
    }
    return this.#lost.signal;
  }

  /** Notes that the lease is lost. */
  lose(reason: unknown): void {
    this.#isLost = true;
    this.#reason = reason;
    this.#lost?.abort(reason);
  }
}

/** The leases that a worker holds, by their receipts. */
export class Leases {
  readonly #held = new Map<string, Lease>();
  readonly #leaseMs: number;

  constructor(leaseMs: number) {
    this.#leaseMs = leaseMs;
  }

  /** Notes a lease that began at `since`. */
  add(receipt: string, since: number): Lease {
    const lease = new Lease(since + this.#leaseMs / 2, since + this.#leaseMs);
    this.#held.set(receipt, lease);
    return lease;
  }

  remove(receipt: string): void {
    this.#held.delete(receipt);
  }

  /** Gives the signal of a lease, the first time. True if there is such a lease. */
  lose(receipt: string, reason: unknown): boolean {
    const lease = this.#held.get(receipt);
    if (lease === undefined || lease.isLost) return false;
    lease.lose(reason);
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
    return [...this.#held].filter(([, lease]) => !lease.isLost);
  }
}
