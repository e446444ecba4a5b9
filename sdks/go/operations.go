package sluice

import (
	"context"

	"github.com/sluice/sluice-go/sluicepb"
)

// fixed is an operation that does not depend on the commit.
func fixed(made *sluicepb.TransactionOperation) operation {
	return func(context.Context, *Client) (*sluicepb.TransactionOperation, error) { return made, nil }
}

func sendOperation(step Step) operation {
	return func(ctx context.Context, c *Client) (*sluicepb.TransactionOperation, error) {
		message := step.groupMessage(c.inject(ctx, step.Headers))
		return &sluicepb.TransactionOperation{Send: message}, step.check()
	}
}

func settleOperation(one Settlement) operation {
	return fixed(&sluicepb.TransactionOperation{Settle: one.proto})
}

func putOperation(key string, content []byte, opts []DocumentOption) operation {
	w := newWrite(opts)
	return fixed(&sluicepb.TransactionOperation{Put: &sluicepb.TransactionPut{
		Key: &key, Content: notNil(content), ContentType: given(w.contentType), Attributes: w.attributes,
		TtlMs: millis(w.ttl), History: w.history, IfVersion: w.ifVersion, IfEtag: w.ifETag,
		IfExists: w.ifExists, IfAbsent: w.ifAbsent, Token: w.token,
	}})
}

func patchOperation(key string, patch Patch, opts []DocumentOption) operation {
	w := newWrite(opts)
	return fixed(&sluicepb.TransactionOperation{Patch: &sluicepb.TransactionPatch{
		Key: &key, MergePatch: patch.merge, JsonPatch: patch.json, Increment: patch.increment,
		IfVersion: w.ifVersion, IfEtag: w.ifETag, Token: w.token,
	}})
}

func deleteOperation(key string, opts []DocumentOption) operation {
	w := newWrite(opts)
	return fixed(&sluicepb.TransactionOperation{Delete: &sluicepb.TransactionDelete{
		Key: &key, IfVersion: w.ifVersion, IfEtag: w.ifETag, Token: w.token,
	}})
}

func checkOperation(key string, condition DocumentOption) operation {
	w := newWrite([]DocumentOption{condition})
	return fixed(&sluicepb.TransactionOperation{Check: &sluicepb.TransactionCheck{
		Key: &key, IfVersion: w.ifVersion, IfEtag: w.ifETag, IfExists: w.ifExists, IfAbsent: w.ifAbsent,
		Token: w.token,
	}})
}

func acquireOperation(key string, opts []LockOption) operation {
	return func(_ context.Context, c *Client) (*sluicepb.TransactionOperation, error) {
		r := &c.newClaim(key, opts).request
		return &sluicepb.TransactionOperation{Acquire: &sluicepb.TransactionAcquire{
			Key: r.Key, Keys: r.Keys, Owner: r.Owner, Mode: r.Mode, Holders: r.Holders, TtlMs: r.TtlMs,
		}}, nil
	}
}

func releaseOperation(token string) operation {
	return fixed(&sluicepb.TransactionOperation{Release: &sluicepb.TransactionRelease{Token: &token}})
}
