package sluice

import (
	"context"
	"errors"
	"time"
)

// workerTransactionTTL is the longest time of a transactional handler, unless an option says otherwise.
const workerTransactionTTL = 5 * time.Minute

// TransactionalHandler works on a message in a transaction. What it returns says what becomes of the message,
// as with a [Handler].
type TransactionalHandler func(ctx context.Context, job *Job, txn *Txn) error

// WorkerTransactionTTL bounds the time of a handler of a transactional worker, 30 minutes at most (default 5
// minutes).
func WorkerTransactionTTL(d time.Duration) WorkerOption {
	return func(w *Worker) { w.transactionTTL = d }
}

// NewTransactionalWorker makes a worker whose handlers have a transaction for each message. When the handler
// returns nil, all that it has staged is committed together with the ack of its message; or, if the lease is
// lost, nothing of it. When it returns an error or panics, nothing that it has staged happens. After a conflict
// with others it runs again, on fresh reads, up to 20 times: what it does beside its transaction has to bear
// repeating. While the server is away the message is given back, and the attempt does not count.
func (c *Client) NewTransactionalWorker(
	queue string, handler TransactionalHandler, opts ...WorkerOption,
) *Worker {
	w := c.NewWorker(queue, nil, opts...)
	// The ack that the worker makes besides finds the message settled by the same receipt: a success.
	w.handler = func(ctx context.Context, job *Job) error {
		away := false
		err := c.transact(ctx, func(ctx context.Context, txn *Txn) error {
			job.result, job.contentType = nil, "" // An earlier run may have set it.
			if err := handler(ctx, job, txn); err != nil {
				return err
			}
			return txn.Settle(ctx, job.settlement(ctx, nil))
		}, w.transactionTTL, &away)
		var told *ending
		if err != nil && away && !errors.As(err, &told) {
			// If the transaction was committed all the same, the release finds the message settled.
			return NotNow(0)
		}
		return err
	}
	return w
}
