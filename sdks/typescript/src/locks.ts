import type { Calls } from "./calls.js";
import { isCode, SluiceError } from "./core/errors.js";
import { randomKey } from "./core/key.js";
import { sleep } from "./core/retry.js";
import type { LockGrant, WatchLockResponse } from "./gen/sluice/v1/locks_pb.js";
import { documentOf, type StoredDocument } from "./documents/stored.js";
import { whole } from "./grpc/numbers.js";
import { reopened } from "./watching.js";

/** The options of a claim to a lock. */
export interface LockOptions {
  /** Time after which the lock is free if its holder is gone, 30 minutes at most; default 30,000. */
  ttlMs?: number;
  /** How long to wait while others hold it; 0: not at all; default: 24 hours, which is the most. */
  waitMs?: number;
  /** Name of who asks, for those who look. */
  owner?: string;
  /** Default `exclusive`. */
  mode?: "exclusive" | "shared" | "counting";
  /** Largest number of holders, for `counting`. */
  holders?: number;
  /** True: granted only if nobody holds it or waits for it, whatever the mode; it does not wait. */
  ifAbsent?: boolean;
  /** True: the grant comes with the document of the key. */
  withDocument?: boolean;
  /** Gives the wait up. */
  signal?: AbortSignal;
}

/** A lock, as those see it who look. */
export interface LockState {
  key: string;
  holderCount: number;
  waiterCount: number;
  holders: { owner: string; mode: string; fencingToken: bigint; expiresAt: Date }[];
  waiters: { owner: string; mode: string }[];
}

const TTL_DEFAULT_MS = 30_000;
const WAIT_MAX_MS = 24 * 3_600_000;
/** Longest time to take a claim back. */
const WITHDRAW_MAX_MS = 5_000;
/** Pause after a renewal that failed. */
const RETRY_MS = 250;

/** Keys that are held for a time. */
export class Locks {
  readonly #calls: Calls;

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /** Acquires the lock of one key or of several, all or none, and keeps it until it is released. */
  async acquire(key: string | readonly string[], options: LockOptions = {}): Promise<HeldLock> {
    const { ttlMs = TTL_DEFAULT_MS, owner, mode, holders, ifAbsent, withDocument, signal } = options;
    const waitMs = ifAbsent ? undefined : whole(options.waitMs ?? WAIT_MAX_MS, "waitMs");
    const keys = typeof key === "string" ? { key } : { keys: [...key] };
    const terms = { owner, mode, holders, ttlMs, ifAbsent, withDocument };
    const request = { ...keys, ...terms, waitMs, requestId: randomKey() };
    const asked = performance.now();
    const asking = this.#calls.locks.acquire(request, signal ? { signal } : {});
    const grant = await asking.catch((error: unknown) => {
      if (signal?.aborted) void this.#withdraw(request);
      throw error;
    });
    const document = grant.document && documentOf(grant.document);
    const held = new HeldLock(this.#calls, grant, ttlMs, document);
    // A grant that was waited for may have begun long ago, or just now: its time is begun anew.
    await held.keep(performance.now() - asked > ttlMs / 10 ? undefined : asked);
    return held;
  }

  /** Takes a claim back whose caller has gone: it may wait, or have been granted without an answer. */
  async #withdraw(request: { requestId: string }): Promise<void> {
    const limits = { timeoutMs: WITHDRAW_MAX_MS };
    try {
      const { token } = await this.#calls.locks.acquire({ ...request, waitMs: 0n }, limits);
      await this.#calls.locks.release({ token }, limits);
    } catch {
      // It was not granted, or its time ends it.
    }
  }

  /** Runs a function while a lock is held. Its failure to hold on rejects with `lease_lost` in the end. */
  async with<T>(
    key: string | readonly string[],
    options: LockOptions,
    run: (held: HeldLock) => Promise<T> | T,
  ): Promise<T> {
    const held = await this.acquire(key, options);
    let result: T;
    try {
      result = await run(held);
    } catch (error) {
      await held[Symbol.asyncDispose]();
      throw error;
    }
    await held.release();
    return result;
  }

  /** A lock with its holders and those that wait; one that is free has none. */
  async show(key: string): Promise<LockState> {
    return lockState(await this.#calls.locks.show({ key }));
  }

  /** Ends all grants of a key; returns how many there were. */
  async break(key: string): Promise<number> {
    return Number((await this.#calls.locks.break({ key })).holders);
  }

  /** The lock as it is, and again after each change. Connects again by itself. */
  async *watch(key: string, options: { signal?: AbortSignal } = {}): AsyncIterable<LockState> {
    const { signal } = options;
    const open = () => this.#calls.locks.watch({ key }, signal ? { signal } : {});
    for await (const state of reopened(open, signal)) {
      // Without a key it only tells that the stream goes on.
      if (state.key !== "") yield lockState(state);
    }
  }
}

/**
 * A lock that is held: renewed behind the scenes until it is released or lost. With `await using` it is
 * released at the end of its block.
 */
export class HeldLock implements AsyncDisposable {
  /** Proof of the grant: writes documents under the lock, and releases it in a transaction. */
  readonly token: string;
  /** Number for other systems, which refuse a smaller one than they have seen. */
  readonly fencingToken: bigint;
  /** The document of the key, if it was asked for and there is one. */
  readonly document: StoredDocument | undefined;
  /** Aborts when the lock is lost: stop the work that needs it. The reason is a `lease_lost`. */
  readonly signal: AbortSignal;

  readonly #calls: Calls;
  readonly #ttlMs: number;
  readonly #lost = new AbortController();
  readonly #end = new AbortController();

  /** @internal */
  constructor(calls: Calls, grant: Grant, ttlMs: number, document: StoredDocument | undefined) {
    this.#calls = calls;
    this.#ttlMs = ttlMs;
    this.token = grant.token;
    this.fencingToken = BigInt(grant.fencingToken);
    this.document = document;
    this.signal = this.#lost.signal;
  }

  /** Releases it. An error `lease_lost` says that it was lost before. */
  async release(): Promise<void> {
    this.#end.abort();
    await this.#calls.locks.release({ token: this.token });
  }

  /** Stops renewing it, since something else ends it: a transaction that releases it. */
  forget(): void {
    this.#end.abort();
  }

  /** Releases it if it is still held; else there is nothing to do. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#end.signal.aborted) return;
    // Where it fails the grant ends by itself.
    await this.release().catch(() => undefined);
  }

  /** @internal Begins to renew it. `since`: when its time began at the earliest; else that begins anew. */
  async keep(since: number | undefined): Promise<void> {
    const begun = since ?? (await this.#renew(performance.now()));
    if (begun === undefined) throw lost();
    void this.#renewals(begun);
  }

  async #renewals(begun: number): Promise<void> {
    let since: number | undefined = begun;
    while (since !== undefined) {
      const due = since + this.#ttlMs / 3 - performance.now();
      await sleep(Math.max(0, due), this.#end.signal).catch(() => undefined);
      if (this.#end.signal.aborted) return;
      since = await this.#renew(since);
    }
    if (!this.#end.signal.aborted) this.#lost.abort(lost());
  }

  /** Renews a grant that holds since then; the time since which it holds now. `undefined`: it is lost. */
  async #renew(since: number): Promise<number | undefined> {
    // Part of the time is left for a holder that has to stop.
    const until = since + this.#ttlMs * 0.9;
    for (let asked = since; asked < until; ) {
      asked = performance.now();
      const limits = { signal: this.#end.signal, timeoutMs: Math.max(1, until - asked) };
      try {
        await this.#calls.locks.renew({ token: this.token }, limits);
        return asked;
      } catch (error) {
        if (isCode(error, "lease_lost") || this.#end.signal.aborted) return undefined;
        await sleep(Math.min(RETRY_MS, this.#ttlMs / 10), this.#end.signal).catch(() => undefined);
      }
    }
    return undefined;
  }
}

type Grant = Pick<LockGrant, "token" | "fencingToken">;

function lost(): SluiceError {
  return new SluiceError("lease_lost", "the lock is lost: it was broken, or not renewed in time");
}

function lockState(state: Omit<WatchLockResponse, "$typeName" | "$unknown">): LockState {
  return {
    key: state.key,
    holderCount: Number(state.holderCount),
    waiterCount: Number(state.waiterCount),
    holders: state.holders.map(({ owner, mode, fencingToken, expiresAtMs }) => ({
      owner,
      mode,
      fencingToken: BigInt(fencingToken),
      expiresAt: new Date(Number(expiresAtMs)),
    })),
    waiters: state.waiters.map(({ owner, mode }) => ({ owner, mode })),
  };
}
