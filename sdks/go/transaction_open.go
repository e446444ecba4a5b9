package sluice

import (
	"context"
	"errors"
	"time"

	"github.com/sluice/sluice-go/sluicepb"
)

const (
	transactionTTL   = 30 * time.Second
	transactionTries = 20
	conflictPause    = 5 * time.Millisecond
	conflictPauseMax = 400 * time.Millisecond
	rollbackTimeout  = 5 * time.Second
)

// Txn is an open transaction, whose operations are staged over several calls. It is not for use by several
// goroutines at once.
type Txn struct {
	client *Client
	id     string
	// away is set when the server was away as it was asked about the transaction.
	away *bool
}

// TransactionOption changes an open transaction.
type TransactionOption func(*time.Duration)

// TransactionTTL sets for how long a transaction may be open (default 30 s, at most 30 minutes).
func TransactionTTL(d time.Duration) TransactionOption {
	return func(ttl *time.Duration) { *ttl = d }
}

// InTransaction calls f with an open transaction, and commits it when f returns nil. If f returns an error or
// panics, it is rolled back. Documents that f has read through the transaction have to be so still at the
// commit. After a conflict with another writer f is called again with a new transaction, up to 20 times while
// the context lasts; so what f does beside the transaction has to bear repeating.
func (c *Client) InTransaction(
	ctx context.Context, f func(ctx context.Context, txn *Txn) error, opts ...TransactionOption,
) error {
	ttl := transactionTTL
	for _, opt := range opts {
		opt(&ttl)
	}
	return c.transact(ctx, f, ttl, new(bool))
}

// transact is [Client.InTransaction]; away is set if the server was away as it was asked about the last
// transaction.
func (c *Client) transact(
	ctx context.Context, f func(ctx context.Context, txn *Txn) error, ttl time.Duration, away *bool,
) error {
	for tries := 1; ; tries++ {
		*away = false
		err := c.transactOnce(ctx, f, ttl, away)
		if err == nil || tries == transactionTries || !isConflict(err) {
			return err
		}
		if sleep(ctx, jittered(grow(conflictPause, tries-1, conflictPauseMax))) != nil {
			return err
		}
	}
}

func (c *Client) transactOnce(
	ctx context.Context, f func(ctx context.Context, txn *Txn) error, ttl time.Duration, away *bool,
) error {
	in := &sluicepb.BeginTransactionRequest{Namespace: c.options.namespace}
	in.TtlMs = given(uint32(*millis(max(ttl, time.Millisecond))))
	out := &sluicepb.BeginTransactionResponse{}
	txn := &Txn{client: c, away: away}
	if err := c.call(ctx, sluicepb.Transactions_Begin_FullMethodName, in, out, repeatable, 0); err != nil {
		return txn.noted(ctx, err)
	}
	txn.id = out.Transaction
	ended := false
	defer func() {
		if !ended {
			txn.rollback(ctx)
		}
	}()
	if err := f(ctx, txn); err != nil {
		return err
	}
	ended = true
	return txn.close(ctx)
}

// isConflict is true if another was faster, or the transaction was lost before it was committed.
func isConflict(err error) bool {
	return errors.Is(err, ErrVersionMismatch) || errors.Is(err, ErrLockHeld) ||
		errors.Is(err, ErrTransactionLost) || errors.Is(err, ErrTransactionAborted) ||
		errors.Is(err, errStageUnknown)
}

// errStageUnknown is the cause of the error of a call whose answer was lost: its operations may be staged.
var errStageUnknown = errors.New("sluice: it is not known what was staged")

// close commits. A repeat gets the first outcome.
func (t *Txn) close(ctx context.Context) error {
	in := &sluicepb.CloseTransactionRequest{Namespace: t.client.options.namespace, Transaction: t.id}
	out := &sluicepb.CommitTransactionResponse{}
	return t.noted(ctx, t.client.call(ctx, sluicepb.Transactions_Close_FullMethodName, in, out, repeatable, 0))
}

// rollback ends the transaction, also when the context has ended. Its time ends it if that fails.
func (t *Txn) rollback(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	in := &sluicepb.RollbackTransactionRequest{Namespace: t.client.options.namespace, Transaction: t.id}
	out := &sluicepb.RollbackTransactionResponse{}
	_ = t.client.call(ctx, sluicepb.Transactions_Rollback_FullMethodName, in, out, once, 0)
}

// stage stages operations and returns what was read.
func (t *Txn) stage(ctx context.Context, one operation) (*sluicepb.TransactionStageResult, error) {
	made, err := one(ctx, t.client)
	if err != nil {
		return nil, err
	}
	in := &sluicepb.StageTransactionRequest{
		Namespace: t.client.options.namespace, Transaction: t.id,
		Operations: []*sluicepb.TransactionOperation{made},
	}
	out := &sluicepb.StageTransactionResponse{}
	err = t.client.call(ctx, sluicepb.Transactions_Stage_FullMethodName, in, out, once, 0)
	if err != nil {
		return nil, unlessKnown(ctx, t.noted(ctx, err))
	}
	return out.Results[0], nil
}

// noted is the error of a call; it notes whether the server does nothing at present, or nobody knows what it
// has done.
func (t *Txn) noted(ctx context.Context, err error) error {
	isAway := errors.Is(err, ErrUnavailable) || errors.Is(err, ErrOverloaded)
	switch codeOf(err) {
	case CodeOutcomeUnknown, CodeInDoubt, CodeJournalFailed:
		isAway = true
	}
	if ctx.Err() == nil && isAway {
		*t.away = true
	}
	return err
}

// unlessKnown marks the error of a call that may have been done: the transaction has to begin anew.
func unlessKnown(ctx context.Context, err error) error {
	code := codeOf(err)
	if ctx.Err() == nil && (code == CodeUnreachable || code == CodeOutcomeUnknown) {
		return errors.Join(err, errStageUnknown)
	}
	return err
}
