package sluice

import (
	"context"

	"github.com/sluice/sluice-go/sluicepb"
)

// Get returns a document as the transaction sees it, nil if there is none. What the transaction has written
// has no version and no ETag yet.
func (t *Txn) Get(ctx context.Context, key string) (*Document, error) {
	read := fixed(&sluicepb.TransactionOperation{Get: &sluicepb.TransactionGet{Key: &key}})
	result, err := t.stage(ctx, read)
	if err != nil || result.Document == nil {
		return nil, err
	}
	d := result.Document
	return &Document{
		Version: Version{Version: d.GetVersion(), ETag: d.GetEtag()}, Key: key, Content: d.Content,
		ContentType: d.GetContentType(), Attributes: d.Attributes, ContentBytes: uint64(len(d.Content)),
	}, nil
}

// Put writes a document.
func (t *Txn) Put(ctx context.Context, key string, content []byte, opts ...DocumentOption) error {
	return t.do(ctx, putOperation(key, content, opts))
}

// Patch changes a document whose content is JSON.
func (t *Txn) Patch(ctx context.Context, key string, patch Patch, opts ...DocumentOption) error {
	return t.do(ctx, patchOperation(key, patch, opts))
}

// Delete deletes a document.
func (t *Txn) Delete(ctx context.Context, key string, opts ...DocumentOption) error {
	return t.do(ctx, deleteOperation(key, opts))
}

// Check refuses the commit unless the document is as the condition says.
func (t *Txn) Check(ctx context.Context, key string, condition DocumentOption) error {
	return t.do(ctx, checkOperation(key, condition))
}

// Send sends a message.
func (t *Txn) Send(ctx context.Context, queue string, payload []byte, opts ...SendOption) error {
	return t.do(ctx, sendOperation(NewStep(queue, payload, opts...)))
}

// Ack acks a delivery that was not received by this transaction, such as that of a worker.
func (t *Txn) Ack(ctx context.Context, receipt string) error { return t.Settle(ctx, Ack(receipt)) }

// Settle settles a delivery; of one that this transaction has received it takes the place of the ack.
func (t *Txn) Settle(ctx context.Context, one Settlement) error {
	return t.do(ctx, settleOperation(one))
}

// Acquire acquires a lock at the commit, if it is free then.
func (t *Txn) Acquire(ctx context.Context, key string, opts ...LockOption) error {
	return t.do(ctx, acquireOperation(key, opts))
}

// Release releases a lock at the commit, which is refused unless it is held.
func (t *Txn) Release(ctx context.Context, token string) error {
	return t.do(ctx, releaseOperation(token))
}

// Receive takes messages from a queue, which the commit acks. They go back if it does not come to that.
func (t *Txn) Receive(ctx context.Context, queue string, opts ...ReceiveOption) ([]*Delivery, error) {
	out, err := t.client.receive(ctx, queue, opts, t.id, once)
	if err != nil {
		return nil, unlessKnown(ctx, t.noted(ctx, err))
	}
	return deliveriesOf(out.Messages), nil
}

func (t *Txn) do(ctx context.Context, one operation) error {
	_, err := t.stage(ctx, one)
	return err
}
