package sluice

import (
	"context"
	"time"

	"github.com/sluice/sluice-go/sluicepb"
)

// Transaction is a list of operations on queues, documents and locks that [Client.Commit] does together, all
// or none. None of them sees what another one does. Its methods add an operation each and return it again.
type Transaction struct{ operations []operation }

// operation makes an operation when it is committed: the context of a send is that of the commit.
type operation func(ctx context.Context, c *Client) (*sluicepb.TransactionOperation, error)

// NewTransaction is a transaction without operations.
func NewTransaction() *Transaction { return &Transaction{} }

func (t *Transaction) add(one operation) *Transaction {
	t.operations = append(t.operations, one)
	return t
}

// Send sends a message.
func (t *Transaction) Send(queue string, payload []byte, opts ...SendOption) *Transaction {
	return t.add(sendOperation(NewStep(queue, payload, opts...)))
}

// Ack acks a delivery.
func (t *Transaction) Ack(receipt string) *Transaction { return t.Settle(Ack(receipt)) }

// Settle settles a delivery.
func (t *Transaction) Settle(one Settlement) *Transaction { return t.add(settleOperation(one)) }

// Put writes a document.
func (t *Transaction) Put(key string, content []byte, opts ...DocumentOption) *Transaction {
	return t.add(putOperation(key, content, opts))
}

// Patch changes a document whose content is JSON.
func (t *Transaction) Patch(key string, patch Patch, opts ...DocumentOption) *Transaction {
	return t.add(patchOperation(key, patch, opts))
}

// Delete deletes a document.
func (t *Transaction) Delete(key string, opts ...DocumentOption) *Transaction {
	return t.add(deleteOperation(key, opts))
}

// Check refuses all unless the document is as one option says: [IfVersion], [IfETag], [IfExists], [IfAbsent]
// or [IfHeld].
func (t *Transaction) Check(key string, condition DocumentOption) *Transaction {
	return t.add(checkOperation(key, condition))
}

// Acquire acquires a lock, if it is free. The grant is in the results, and nobody renews it.
func (t *Transaction) Acquire(key string, opts ...LockOption) *Transaction {
	return t.add(acquireOperation(key, opts))
}

// Release releases a lock, and refuses all unless it is held. Its holder then calls [Held.Released].
func (t *Transaction) Release(token string) *Transaction { return t.add(releaseOperation(token)) }

// Committed is what came of a transaction.
type Committed struct {
	// Results has what came of each operation, in order.
	Results []OperationResult
	// Duplicate is true if it was committed before with its idempotency key.
	Duplicate bool
}

// OperationResult is what came of an operation.
type OperationResult struct {
	// ID is the id of a message that was sent.
	ID string
	// Written is the version of a document that was written, nil otherwise.
	Written *Version
	// Grant is that of locks that were acquired, nil otherwise.
	Grant *Grant
}

// Grant is the grant of locks that nobody renews.
type Grant struct {
	Token        string
	FencingToken uint64
	ExpiresAt    time.Time
}

// Commit does all operations of a transaction, or none of them. Of the options only [WithIdempotencyKey]
// counts; without it the client makes a key for its own repeats. The detail "operation" of an error is the
// number of the operation that was refused, from 0.
func (c *Client) Commit(ctx context.Context, t *Transaction, opts ...SendOption) (*Committed, error) {
	_, key := newMessage(nil, opts)
	in := &sluicepb.CommitTransactionRequest{
		Namespace: c.options.namespace, IdempotencyKey: orElse(key, newKey()),
	}
	for _, one := range t.operations {
		made, err := one(ctx, c)
		if err != nil {
			return nil, err
		}
		in.Operations = append(in.Operations, made)
	}
	out := &sluicepb.CommitTransactionResponse{}
	err := c.call(ctx, sluicepb.Transactions_Commit_FullMethodName, in, out, repeatable, 0)
	return committedOf(out, err)
}

func committedOf(out *sluicepb.CommitTransactionResponse, err error) (*Committed, error) {
	if err != nil {
		return nil, err
	}
	made := &Committed{Duplicate: out.Duplicate}
	for _, one := range out.Results {
		result, err := operationResultOf(one)
		if err != nil {
			return nil, err
		}
		made.Results = append(made.Results, result)
	}
	return made, nil
}

func operationResultOf(one *sluicepb.TransactionResult) (OperationResult, error) {
	result := OperationResult{ID: one.GetId()}
	if one.Written != nil {
		result.Written, _ = versionOf(one.Written, nil)
	}
	if one.Grant == nil {
		return result, nil
	}
	fence, err := parseFencingToken(one.Grant.FencingToken)
	result.Grant = &Grant{one.Grant.Token, fence, timeOf(one.Grant.ExpiresAtMs)}
	return result, err
}
