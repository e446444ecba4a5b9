package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/sluice/sluice-go"
	"github.com/sluice/sluice-go/sluicepb"
	"github.com/sluice/sluice-go/sluicetest"
)

func TestWhatIsStagedComesWithTheAck(t *testing.T) {
	client := sluicetest.Start(t).Client(t)
	docs := client.Documents()
	must(docs.Put(t.Context(), "o/1", []byte("new")))(t)
	handle := func(ctx context.Context, job *sluice.Job, txn *sluice.Txn) error {
		order, err := txn.Get(ctx, string(job.Payload))
		if err != nil {
			return err
		}
		job.SetResult([]byte("it was "+string(order.Content)), "text/plain")
		err = errors.Join(txn.Put(ctx, "o/1", []byte("paid")), txn.Send(ctx, "mail", []byte("thank you")))
		equal(t, "content for others", string(must(docs.Get(ctx, "o/1"))(t).Content), "new")
		return err
	}
	stop := work(t, client.NewTransactionalWorker("paid", handle))
	id := send(t, client, "paid", "o/1", sluice.WithResultTTL(time.Minute))
	result := must(client.Result(within(t, 20*time.Second), id))(t)
	stop()
	equal(t, "result", string(result.Payload), "it was new")
	equal(t, "content", string(must(docs.Get(t.Context(), "o/1"))(t).Content), "paid")
	equal(t, "mail", string(receiveOne(t, client, "mail").Payload), "thank you")
	receiveNone(t, client, "mail")
	equal(t, "acked", queueOf(t, client, "paid").Totals.Acked, 1)
}

func TestNothingThatIsStagedHappensWhenTheHandlerFails(t *testing.T) {
	client := sluicetest.Start(t).Client(t)
	work(t, client.NewTransactionalWorker("q", func(ctx context.Context, job *sluice.Job, txn *sluice.Txn) error {
		check(t, errors.Join(txn.Put(ctx, "never", nil), txn.Send(ctx, "mail", nil)))
		switch string(job.Payload) {
		case "dead":
			return sluice.Dead(errors.New("never"))
		case "panics":
			panic("out of range")
		}
		return errors.New("no good")
	}))
	for payload, text := range map[string]string{
		"dead": "never", "panics": "panic: out of range", "fails": "no good",
	} {
		id := send(t, client, "q", payload, sluice.WithMaxAttempts(1), sluice.WithResultTTL(time.Minute))
		if _, err := client.Result(within(t, 20*time.Second), id); !errors.Is(err, sluice.ErrDead) {
			t.Fatalf("it is no dead letter: %v", err)
		}
		messages := sluicepb.NewMessagesClient(client.Conn())
		stored := must(messages.Get(t.Context(), &sluicepb.GetMessageRequest{Id: id}))(t)
		equal(t, "error of "+payload, stored.History[0].Error, text)
	}
	if _, err := client.Documents().Get(t.Context(), "never"); !errors.Is(err, sluice.ErrNotFound) {
		t.Errorf("what was staged: %v", err)
	}
	receiveNone(t, client, "mail")
}

func TestAConflictRunsTheHandlerAgain(t *testing.T) {
	client := sluicetest.Start(t).Client(t)
	docs := client.Documents()
	must(docs.Put(t.Context(), "n", []byte("5")))(t)
	var runs atomic.Int64
	work(t, client.NewTransactionalWorker("q", func(ctx context.Context, _ *sluice.Job, txn *sluice.Txn) error {
		before, err := txn.Get(ctx, "n")
		if err != nil {
			return err
		}
		if runs.Add(1) == 1 {
			must(docs.Put(ctx, "n", []byte("6")))(t) // Another is faster.
		}
		return txn.Put(ctx, "n", fmt.Appendf(nil, "%s+1", before.Content))
	}))
	send(t, client, "q", "1")
	eventually(t, "it is acked", 20*time.Second, func() bool {
		return queueOf(t, client, "q").Totals.Acked == 1
	})
	equal(t, "runs", runs.Load(), 2)
	equal(t, "content", string(must(docs.Get(t.Context(), "n"))(t).Content), "6+1")
}

func TestAConflictThatStaysIsAFailedAttempt(t *testing.T) {
	client := sluicetest.Start(t).Client(t)
	var runs atomic.Int64
	work(t, client.NewTransactionalWorker("q", func(ctx context.Context, _ *sluice.Job, txn *sluice.Txn) error {
		runs.Add(1)
		return txn.Check(ctx, "missing", sluice.IfExists())
	}))
	id := send(t, client, "q", "1", sluice.WithMaxAttempts(1), sluice.WithResultTTL(time.Minute))
	if _, err := client.Result(within(t, 30*time.Second), id); !errors.Is(err, sluice.ErrDead) {
		t.Fatal(err)
	}
	messages := sluicepb.NewMessagesClient(client.Conn())
	stored := must(messages.Get(t.Context(), &sluicepb.GetMessageRequest{Id: id}))(t)
	equal(t, "runs", runs.Load(), 20)
	equal(t, "tells why", strings.Contains(stored.History[0].Error, "missing"), true)
}

func TestNothingHappensAfterTheMessageIsLost(t *testing.T) {
	client := sluicetest.Start(t).Client(t)
	ended := make(chan error, 1)
	messages := sluicepb.NewMessagesClient(client.Conn())
	stop := work(t, client.NewTransactionalWorker("q",
		func(ctx context.Context, job *sluice.Job, txn *sluice.Txn) error {
			err := txn.Put(ctx, "staged", nil)
			_, cancelled := messages.Cancel(ctx, &sluicepb.ChangeRequest{Id: job.ID})
			ended <- errors.Join(err, cancelled)
			return nil
		}))
	send(t, client, "q", "1")
	check(t, <-ended)
	stop()
	queue := queueOf(t, client, "q")
	equal(t, "empty", isEmpty(queue), true)
	equal(t, "acked", queue.Totals.Acked, 0)
	if _, err := client.Documents().Get(t.Context(), "staged"); !errors.Is(err, sluice.ErrNotFound) {
		t.Errorf("what was staged: %v", err)
	}
}

func TestAMessageIsGivenBackWhileTheServerIsAwayFromItsTransaction(t *testing.T) {
	server := sluicetest.Start(t)
	for _, method := range []string{
		sluicepb.Transactions_Begin_FullMethodName,
		sluicepb.Transactions_Stage_FullMethodName,
		sluicepb.Transactions_Close_FullMethodName,
	} {
		t.Run(method, func(t *testing.T) {
			var left atomic.Int32
			left.Store(1)
			client := server.Client(t, sluice.WithRetryFor(0), sluice.WithDialOptions(grpc.WithChainUnaryInterceptor(
				func(
					ctx context.Context, asked string, in, out any, conn *grpc.ClientConn,
					invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
				) error {
					if asked == method && left.Add(-1) >= 0 {
						return refusal(codes.Unavailable, sluice.CodeShuttingDown, 0)
					}
					return invoke(ctx, asked, in, out, conn, opts...)
				})))
			var attempts atomic.Uint32
			queue := "q-" + path.Base(method)
			send(t, client, queue, "x", sluice.WithMaxAttempts(1))
			work(t, client.NewTransactionalWorker(queue, func(ctx context.Context, job *sluice.Job, txn *sluice.Txn) error {
				attempts.Store(job.Attempt)
				if txn.Put(ctx, "away", nil) != nil {
					return errors.New("an error of the handler's own")
				}
				return nil
			}))
			eventually(t, "the ack", 20*time.Second, func() bool { return queueOf(t, client, queue).Totals.Acked == 1 })
			totals := queueOf(t, client, queue).Totals
			equal(t, "attempts", attempts.Load(), 1)
			equal(t, "nacked", totals.Nacked, 0)
			equal(t, "released", totals.Released, 1)
		})
	}
}

func TestAnotherServerThatIsAwayIsAnErrorOfTheHandler(t *testing.T) {
	client := sluicetest.Start(t).Client(t)
	away := clientOf(t, []string{nowhere(t)}, sluice.WithRetryFor(0))
	send(t, client, "q", "x", sluice.WithMaxAttempts(1))
	work(t, client.NewTransactionalWorker("q", func(ctx context.Context, job *sluice.Job, txn *sluice.Txn) error {
		check(t, txn.Put(ctx, "never", nil))
		_, err := away.Send(ctx, "q", nil)
		return err
	}))
	eventually(t, "the nack", 20*time.Second, func() bool { return queueOf(t, client, "q").Totals.Nacked == 1 })
}
