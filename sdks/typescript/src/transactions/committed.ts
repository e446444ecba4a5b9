import { writtenOf, type Written } from "../documents/documents.js";
import type { CommitTransactionResponse } from "../gen/sluice/v1/transactions_pb.js";

/** What came of an operation: nothing of one that settles, deletes, checks or releases. */
export interface OperationResult {
  /** Id of the message that was sent. */
  id?: string;
  /** Version of the document that was written. */
  written?: Written;
  /** Grant of the locks that were acquired. Nothing renews it. */
  grant?: { token: string; fencingToken: bigint; expiresAt: Date };
}

/** A transaction that was done. */
export interface Committed {
  /** One for each operation, in order. */
  results: OperationResult[];
  /** True if it was done before, by its idempotency key. */
  duplicate: boolean;
}

/** What a commit has answered. */
export function committedOf({ results, duplicate }: CommitTransactionResponse): Committed {
  return { duplicate, results: results.map(resultOf) };
}

function resultOf({ id, written, grant }: CommitTransactionResponse["results"][number]): OperationResult {
  const result: OperationResult = {};
  if (id !== undefined) result.id = id;
  if (written !== undefined) result.written = writtenOf(written);
  if (grant !== undefined) {
    const { token, fencingToken, expiresAtMs } = grant;
    result.grant = { token, fencingToken: BigInt(fencingToken), expiresAt: new Date(Number(expiresAtMs)) };
  }
  return result;
}
