import type { Calls } from "../calls.js";
import type { Payload } from "../core/payload.js";
import { Transaction } from "../transactions/transaction.js";
import type { Job } from "./job.js";
import type { Handler, WorkerOptions } from "./options.js";
import { Dead, ofReturn, Release, Retry } from "./outcome.js";

/** Tries of a handler: after a conflict it runs again, on fresh reads. */
const ATTEMPTS = 20;
const TTL_DEFAULT_MS = 300_000;

/**
 * Works on a message in a transaction, which is committed together with the ack of the message when it
 * returns. What it throws says what becomes of the message, as with a {@link Handler}; nothing that was staged
 * happens then.
 */
export type TransactionalHandler = (
  job: Job,
  transaction: Transaction,
) => Promise<Payload | void> | Payload | void;

/** The options of a worker with transactions. */
export interface TransactionalWorkerOptions extends WorkerOptions {
  /** Longest time of a handler, 30 minutes at most; default 300,000. */
  transactionTtlMs?: number;
}

/**
 * The handler that runs another one in a transaction that acks the message. The ack that the worker makes
 * besides finds the message settled by the same receipt, which is a success. While the server is away the
 * message is given back, since it is not the cause; if the transaction was committed all the same, the
 * release finds it settled.
 */
export function inTransaction(calls: Calls, handler: TransactionalHandler, ttlMs = TTL_DEFAULT_MS): Handler {
  return async (job) => {
    let wasAway = false;
    const once = async (transaction: Transaction): Promise<Payload | undefined> => {
      wasAway = false;
      const result = (await handler(job, transaction)) as Payload | undefined;
      await transaction.settle(ofReturn(job.receipt, result));
      return result;
    };
    const options = { ttlMs, attempts: ATTEMPTS, signal: job.signal };
    try {
      return await Transaction.run(calls, options, once, () => (wasAway = true));
    } catch (error) {
      if (!wasAway || error instanceof Retry || error instanceof Dead) throw error;
      throw error instanceof Release ? error : new Release();
    }
  };
}
