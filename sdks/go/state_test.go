package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sluice/sluice-go"
	"github.com/sluice/sluice-go/sluicepb"
	"github.com/sluice/sluice-go/sluicetest"
)

func TestALockThatIsLostEndsTheContextOfItsWork(t *testing.T) {
	client := sluicetest.Start(t).Client(t)
	ctx := within(t, 20*time.Second)
	err := client.WithLock(ctx, "k", func(inner context.Context, _ *sluice.Held) error {
		locks := sluicepb.NewLocksClient(client.Conn())
		must(locks.Break(ctx, &sluicepb.BreakLockRequest{Key: "k"}))(t)
		<-inner.Done()
		if !errors.Is(context.Cause(inner), sluice.ErrLeaseLost) {
			t.Error(context.Cause(inner))
		}
		return nil
	}, sluice.LockTTL(600*time.Millisecond))
	if !errors.Is(err, sluice.ErrLeaseLost) {
		t.Fatal(err)
	}
}

func TestWhoHasStoppedWaitingLeavesTheLine(t *testing.T) {
	client := sluicetest.Start(t).Client(t)
	held := must(client.Lock(t.Context(), "k"))(t)
	_, err := client.Lock(within(t, 200*time.Millisecond), "k")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	locks := sluicepb.NewLocksClient(client.Conn())
	eventually(t, "nobody waits", 10*time.Second, func() bool {
		lock := must(locks.Show(t.Context(), &sluicepb.ShowLockRequest{Key: "k"}))(t)
		return lock.WaiterCount == 0
	})
	check(t, held.Unlock(t.Context()))
	if err := held.Unlock(t.Context()); err != nil {
		t.Errorf("a second unlock: %v", err)
	}
}

func TestSharedAndCountingLocks(t *testing.T) {
	client := sluicetest.Start(t).Client(t)
	now := sluice.LockWait(0)
	for name, mode := range map[string]sluice.LockOption{
		"shared": sluice.LockShared(), "counting": sluice.LockCounting(2),
	} {
		first := must(client.Lock(t.Context(), name, mode, now, sluice.LockAlso(name+"/more")))(t)
		second := must(client.Lock(t.Context(), name, mode, now))(t)
		if _, err := client.Lock(t.Context(), name, now); !errors.Is(err, sluice.ErrLockHeld) {
			t.Errorf("%s: %v", name, err)
		}
		check(t, errors.Join(first.Unlock(t.Context()), second.Unlock(t.Context())))
	}
}

func TestATransactionUnderALock(t *testing.T) {
	client := sluicetest.Start(t).Client(t)
	held := must(client.Lock(t.Context(), "orders/1"))(t)
	commit := sluice.NewTransaction().
		Put("orders/1", []byte("paid"), sluice.IfHeld(held.Token())).
		Check("orders/2", sluice.IfAbsent()).
		Acquire("orders/3").
		Release(held.Token())
	done := must(client.Commit(t.Context(), commit))(t)
	held.Released()
	if done.Results[2].Grant == nil || done.Results[2].Grant.FencingToken <= held.FencingToken() {
		t.Errorf("%+v", done.Results)
	}
	check(t, must(client.Lock(t.Context(), "orders/1", sluice.LockWait(0)))(t).Unlock(t.Context()))
}

func TestATransactionThatReceives(t *testing.T) {
	client := sluicetest.Start(t).Client(t)
	send(t, client, "in", "1")
	failure := errors.New("no")
	for _, result := range []error{failure, nil} {
		err := client.InTransaction(t.Context(), func(ctx context.Context, txn *sluice.Txn) error {
			messages := must(txn.Receive(ctx, "in", sluice.ReceiveWait(5*time.Second)))(t)
			equal(t, "attempt", fmt.Sprint(len(messages), messages[0].Attempt), "1 1")
			return errors.Join(txn.Send(ctx, "out", messages[0].Payload), result)
		}, sluice.TransactionTTL(20*time.Second))
		if !errors.Is(err, result) {
			t.Fatal(err)
		}
	}
	equal(t, "payload", string(receiveOne(t, client, "out").Payload), "1")
	receiveNone(t, client, "out")
	equal(t, "empty", isEmpty(queueOf(t, client, "in")), true)
}

func TestAWatchTellsDocumentsAndThenChanges(t *testing.T) {
	client := sluicetest.Start(t).Client(t)
	docs := client.Documents()
	must(docs.Put(t.Context(), "a/1", []byte("1")))(t)
	must(docs.Put(t.Context(), "b/1", []byte("1")))(t)
	var told []string
	position := ""
	for change, err := range docs.Watch(within(t, 20*time.Second), "a/", "") {
		check(t, err)
		told = append(told, fmt.Sprint(change.Key, change.Current, change.Gone))
		if position = change.Position; change.Current {
			must(docs.Put(t.Context(), "a/2", []byte("2")))(t)
		}
		if change.Key == "a/2" {
			break
		}
	}
	equal(t, "told", fmt.Sprint(told), "[a/1false false true false a/2false false]")
	check(t, docs.Delete(t.Context(), "a/1"))
	for change, err := range docs.Watch(within(t, 20*time.Second), "a/", position) {
		check(t, err)
		if change.Key != "" {
			equal(t, "told", fmt.Sprint(change.Key, change.Gone), "a/1true")
			break
		}
	}
}

func TestTheNamespaceOfTheClientIsThatOfItsStubs(t *testing.T) {
	server := sluicetest.Start(t)
	namespaces := sluicepb.NewNamespacesClient(server.Client(t).Conn())
	must(namespaces.Put(t.Context(), &sluicepb.PutNamespaceRequest{Namespace: "shop"}))(t)
	client := server.Client(t, sluice.WithNamespace("shop"))
	send(t, client, "q", "1")
	equal(t, "namespace", queueOf(t, client, "q").Namespace, "shop")
	equal(t, "namespace", client.Namespace(), "shop")
	held := must(client.Lock(t.Context(), "k"))(t)
	locks := sluicepb.NewLocksClient(client.Conn())
	stream := must(locks.Watch(t.Context(), &sluicepb.WatchLockRequest{Key: "k"}))(t)
	equal(t, "holders", must(stream.Recv())(t).HolderCount, 1)
	check(t, held.Unlock(t.Context()))
	stream = must(locks.Watch(t.Context(), &sluicepb.WatchLockRequest{Namespace: "nowhere", Key: "k"}))(t)
	if _, err := stream.Recv(); !errors.Is(err, sluice.ErrNotFound) {
		t.Errorf("a stream of a namespace that is not there: %v", err)
	}
}
