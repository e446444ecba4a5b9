package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sluice/sluice-go"
)

func lock(t *testing.T, client *sluice.Client) {
	ctx := within(t, 20*time.Second)
	first := must(client.Lock(ctx, "deploy", sluice.LockOwner("ann")))(t)
	_, err := client.Lock(ctx, "deploy", sluice.LockWait(0))
	var e *sluice.Error
	if !errors.As(err, &e) || !errors.Is(err, sluice.ErrLockHeld) || e.Details["owner"] != "ann" {
		t.Fatalf("a second holder: %v", err)
	}
	var released time.Time
	go func() {
		time.Sleep(300 * time.Millisecond)
		released = time.Now()
		_ = first.Unlock(ctx)
	}()
	err = client.WithLock(ctx, "deploy", func(_ context.Context, second *sluice.Held) error {
		if released.IsZero() || second.FencingToken() <= first.FencingToken() {
			t.Errorf("tokens %d and %d", first.FencingToken(), second.FencingToken())
		}
		return errors.New("mine")
	})
	if err == nil || err.Error() != "mine" {
		t.Fatalf("the error of the work: %v", err)
	}
	check(t, must(client.Lock(ctx, "deploy", sluice.LockWait(0)))(t).Unlock(ctx))
}

func lockIsRenewed(t *testing.T, client *sluice.Client) {
	ctx := within(t, 20*time.Second)
	err := client.WithLock(ctx, "long", func(ctx context.Context, _ *sluice.Held) error {
		for range 45 {
			time.Sleep(100 * time.Millisecond)
			if _, err := client.Lock(ctx, "long", sluice.LockWait(0)); !errors.Is(err, sluice.ErrLockHeld) {
				return fmt.Errorf("somebody else has got it: %w", err)
			}
		}
		return context.Cause(ctx)
	}, sluice.LockTTL(2*time.Second))
	check(t, err)
}

func documents(t *testing.T, client *sluice.Client) {
	ctx := within(t, 20*time.Second)
	docs := client.Documents()
	first := must(docs.Put(ctx, "orders/17", []byte(`{"state":"new","sum":5}`), sluice.DocHistory(3),
		sluice.DocContentType("application/json"), sluice.DocAttribute("by", "ann"), sluice.IfAbsent()))(t)
	equal(t, "version", first.Version, 1)
	read := must(docs.Get(ctx, "orders/17"))(t)
	equal(t, "content", string(read.Content), `{"state":"new","sum":5}`)
	equal(t, "content type and attribute", read.ContentType+" "+read.Attributes["by"], "application/json ann")

	second := must(docs.Put(ctx, "orders/17", []byte(`{"state":"paid","sum":5}`), sluice.IfVersion(1)))(t)
	equal(t, "version", second.Version, 2)
	_, err := docs.Put(ctx, "orders/17", []byte("late"), sluice.IfVersion(1))
	if !errors.Is(err, sluice.ErrVersionMismatch) {
		t.Fatalf("a write with an old version: %v", err)
	}
	must(docs.Patch(ctx, "orders/17", sluice.MergePatch(`{"state":"sent"}`), sluice.IfETag(second.ETag)))(t)
	must(docs.Increment(ctx, "orders/17", "/sum", 2))(t)
	must(docs.Put(ctx, "orders/18", []byte(`{"state":"new"}`)))(t)

	var found, listed []string
	for one, err := range docs.Query(ctx, sluice.Query{Where: `{"/state":"sent"}`, Prefix: "orders/"}) {
		check(t, err)
		found = append(found, one.Key+" "+string(one.Content))
	}
	equal(t, "found", fmt.Sprint(found), `[orders/17 {"state":"sent","sum":7}]`)
	for one, err := range docs.List(ctx, "orders/") {
		check(t, err)
		listed = append(listed, one.Key)
	}
	equal(t, "listed", fmt.Sprint(listed), "[orders/17 orders/18]")
	history := must(docs.History(ctx, "orders/17"))(t)
	equal(t, "versions", len(history), 4)
	old := must(docs.GetVersion(ctx, "orders/17", 2))(t)
	equal(t, "old content", string(old.Content), `{"state":"paid","sum":5}`)

	check(t, docs.Delete(ctx, "orders/17"))
	if _, err := docs.Get(ctx, "orders/17"); !errors.Is(err, sluice.ErrNotFound) {
		t.Fatalf("a document that was deleted: %v", err)
	}
}

func transaction(t *testing.T, client *sluice.Client) {
	t.Run("of one call", func(t *testing.T) { transactionOfOneCall(t, client) })
	t.Run("over several calls", func(t *testing.T) { openTransaction(t, client) })
}

func transactionOfOneCall(t *testing.T, client *sluice.Client) {
	ctx := within(t, 20*time.Second)
	docs := client.Documents()
	must(docs.Put(ctx, "paid/17", []byte("new")))(t)
	send(t, client, "paid", "order 17")
	message := receiveOne(t, client, "paid")
	commit := func(version uint64) (*sluice.Committed, error) {
		return client.Commit(ctx, sluice.NewTransaction().
			Put("paid/17", []byte("paid"), sluice.IfVersion(version)).
			Send("thanks", []byte("thank you")).
			Ack(message.Receipt))
	}
	_, err := commit(7)
	if !errors.Is(err, sluice.ErrVersionMismatch) {
		t.Fatalf("a stale version: %v", err)
	}
	equal(t, "content", string(must(docs.Get(ctx, "paid/17"))(t).Content), "new")
	receiveNone(t, client, "thanks")
	equal(t, "leased", queueOf(t, client, "paid").Counts.Leased, 1)

	done := must(commit(1))(t)
	equal(t, "version", done.Results[0].Written.Version, 2)
	equal(t, "content", string(must(docs.Get(ctx, "paid/17"))(t).Content), "paid")
	equal(t, "id", receiveOne(t, client, "thanks").ID, done.Results[1].ID)
	equal(t, "empty", isEmpty(queueOf(t, client, "paid")), true)
}

func openTransaction(t *testing.T, client *sluice.Client) {
	ctx := within(t, 20*time.Second)
	docs := client.Documents()
	must(docs.Put(ctx, "stock/1", []byte("5")))(t)
	failure := errors.New("no")
	err := client.InTransaction(ctx, func(ctx context.Context, txn *sluice.Txn) error {
		return errors.Join(txn.Put(ctx, "stock/1", []byte("0")), failure)
	})
	if !errors.Is(err, failure) {
		t.Fatalf("the error of the function: %v", err)
	}
	func() {
		defer func() { equal(t, "panic", recover() != nil, true) }()
		_ = client.InTransaction(ctx, func(ctx context.Context, txn *sluice.Txn) error {
			check(t, txn.Put(ctx, "stock/1", []byte("1")))
			panic("stop")
		})
	}()
	equal(t, "content", string(must(docs.Get(ctx, "stock/1"))(t).Content), "5")
	calls := 0
	check(t, client.InTransaction(ctx, func(ctx context.Context, txn *sluice.Txn) error {
		calls++
		before, err := txn.Get(ctx, "stock/1")
		if err != nil {
			return err
		}
		if calls == 1 {
			must(docs.Put(ctx, "stock/1", []byte("6")))(t) // Another is faster.
		}
		return errors.Join(
			txn.Put(ctx, "stock/1", append(before.Content, '-')), txn.Send(ctx, "stock", before.Content))
	}))
	equal(t, "calls", calls, 2)
	equal(t, "content", string(must(docs.Get(ctx, "stock/1"))(t).Content), "6-")
	equal(t, "message", string(receiveOne(t, client, "stock").Payload), "6")
	receiveNone(t, client, "stock")
}

func errorsOfTheAPI(t *testing.T, client *sluice.Client) {
	ctx := within(t, 20*time.Second)
	_, err := client.Documents().Get(ctx, "nowhere")
	var e *sluice.Error
	if !errors.As(err, &e) || !errors.Is(err, sluice.ErrNotFound) {
		t.Fatalf("a document that is not there: %v", err)
	}
	equal(t, "code", e.Code, sluice.CodeDocumentNotFound)
	equal(t, "detail", e.Details["key"], "nowhere")
	_, err = client.Send(ctx, "no such name!", nil)
	if !errors.Is(err, sluice.ErrInvalid) {
		t.Fatalf("a name that is none: %v", err)
	}
	_, err = client.Commit(ctx, sluice.NewTransaction().Send("x", nil).Put("y", nil, sluice.IfVersion(3)))
	if !errors.As(err, &e) || e.Code != sluice.CodeVersionMismatch || e.Details["operation"] != "1" {
		t.Fatalf("the operation that was refused: %v", err)
	}
	message := receiveSent(t, client)
	check(t, client.Ack(ctx, message.Receipt))
	errs := must(client.Extend(ctx, sluice.Extension{Receipt: message.Receipt}))(t)
	if !errors.Is(errs[0], sluice.ErrAlreadySettled) {
		t.Fatalf("the extension of what is settled: %v", errs[0])
	}
}

func receiveSent(t *testing.T, client *sluice.Client) *sluice.Delivery {
	send(t, client, "errors", "1")
	return receiveOne(t, client, "errors")
}
