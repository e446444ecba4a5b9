package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice/sluice-go"
	"github.com/sluice/sluice-go/sluicepb"
	"github.com/sluice/sluice-go/sluicetest"
)

func TestAWorkerOfANamespaceThatDoesNotExistEnds(t *testing.T) {
	client := sluicetest.Start(t).Client(t, sluice.WithNamespace("nowhere"))
	err := client.NewWorker("q", nil).Run(within(t, 20*time.Second))
	if !errors.Is(err, sluice.ErrNotFound) {
		t.Fatal(err)
	}
}

func TestACancelledMessageEndsTheContextOfItsHandler(t *testing.T) {
	client := sluicetest.Start(t).Client(t)
	causes := make(chan error, 1)
	work(t, client.NewWorker("q", func(ctx context.Context, job *sluice.Job) error {
		messages := sluicepb.NewMessagesClient(client.Conn())
		if _, err := messages.Cancel(ctx, &sluicepb.ChangeRequest{Id: job.ID}); err != nil {
			t.Error(err)
		}
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return ctx.Err()
	}))
	send(t, client, "q", "1")
	select {
	case cause := <-causes:
		if !errors.Is(cause, sluice.ErrCancelled) {
			t.Fatal(cause)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the context has not ended")
	}
}

func TestAHandlerThatIsNotWaitedForGivesItsMessageBack(t *testing.T) {
	client := sluicetest.Start(t).Client(t)
	begun := make(chan struct{})
	stop := work(t, client.NewWorker("q", func(ctx context.Context, _ *sluice.Job) error {
		close(begun)
		<-ctx.Done()
		return context.Cause(ctx)
	}, sluice.WorkerStopWithin(100*time.Millisecond)))
	send(t, client, "q", "1")
	<-begun
	stop()
	equal(t, "attempt", receiveOne(t, client, "q").Attempt, 1)
}

func TestEveryKindOfEndOfAHandler(t *testing.T) {
	client := sluicetest.Start(t).Client(t)
	var notNow atomic.Bool
	work(t, client.NewWorker("q", func(ctx context.Context, job *sluice.Job) error {
		switch job.Attempt {
		case 1:
			if !notNow.Swap(true) {
				return sluice.NotNow(0)
			}
			if err := job.Save(ctx, []byte("half")); err != nil {
				t.Error(err)
			}
			runtime.Goexit()
		case 2:
			equal(t, "checkpoint", string(job.Checkpoint), "half")
			<-ctx.Done() // Its time is over.
			return ctx.Err()
		case 3:
			_, err := client.Commit(ctx, sluice.NewTransaction().
				Settle(sluice.AckWith(job.Receipt, []byte("committed"), "")))
			return err
		}
		return errors.New("too often")
	}, sluice.WorkerTimeout(200*time.Millisecond)))
	id := send(t, client, "q", "1", sluice.WithResultTTL(time.Minute),
		sluice.WithBackoff(sluice.Backoff{Kind: "none"}))
	result := must(client.Result(within(t, 20*time.Second), id))(t)
	equal(t, "result", string(result.Payload), "committed")
	eventually(t, "the counts", 5*time.Second, func() bool {
		totals := queueOf(t, client, "q").Totals
		return totals.Released == 1 && totals.Nacked == 2 && totals.Acked == 1
	})
}

func TestAWorkerOfManyQueuesAndMessages(t *testing.T) {
	client := sluicetest.Start(t).Client(t)
	const each = 2000
	var handled atomic.Int64
	work(t, client.NewWorker("a", func(context.Context, *sluice.Job) error {
		handled.Add(1)
		return nil
	}, sluice.WorkerQueues("b"), sluice.WorkerConcurrency(16), sluice.WorkerPrefetch(64)))
	for _, queue := range []string{"a", "b"} {
		must(client.SendMany(t.Context(), queue, make([]sluice.Message, each)))(t)
	}
	eventually(t, "all is acked", 30*time.Second, func() bool {
		return isEmpty(queueOf(t, client, "a")) && isEmpty(queueOf(t, client, "b"))
	})
	equal(t, "handled", handled.Load(), 2*each)
}

// pairs is a propagator of one value.
type pairs struct{}

type pairKey struct{}

func (pairs) Inject(ctx context.Context, headers map[string]string) {
	if value, ok := ctx.Value(pairKey{}).(string); ok {
		headers["traceparent"] = value
	}
}

func (pairs) Extract(ctx context.Context, headers map[string]string) context.Context {
	return context.WithValue(ctx, pairKey{}, headers["traceparent"])
}

func TestTheContextOfATraceGoesWithTheMessage(t *testing.T) {
	client := sluicetest.Start(t).Client(t, sluice.WithPropagator(pairs{}))
	seen := make(chan any, 2)
	work(t, client.NewWorker("q", func(ctx context.Context, _ *sluice.Job) error {
		seen <- ctx.Value(pairKey{})
		return nil
	}))
	ctx := context.WithValue(t.Context(), pairKey{}, "00-17")
	must(client.Send(ctx, "q", nil))(t)
	equal(t, "trace of a send", <-seen, any("00-17"))
	must(client.Commit(ctx, sluice.NewTransaction().Send("q", nil)))(t)
	equal(t, "trace of a transaction", <-seen, any("00-17"))
}

func TestABatchOfAllKindsHasTheOutcomeOfEach(t *testing.T) {
	server := sluicetest.Start(t)
	client := server.Client(t)
	messages := make([]sluice.Message, 40)
	for i := range messages {
		messages[i] = sluice.Message{Payload: fmt.Append(nil, i), ResultTTL: 2 * time.Hour}
	}
	var ready sync.WaitGroup
	ready.Add(len(messages))
	goOn := make(chan struct{})
	work(t, client.NewWorker("q", func(_ context.Context, job *sluice.Job) error {
		n := must(strconv.Atoi(string(job.Payload)))(t)
		if n%4 != 2 {
			extension := sluice.Extension{Receipt: job.Receipt, Lease: 2 * time.Hour}
			must(client.Extend(t.Context(), extension))(t)
		}
		if job.Attempt == 1 {
			ready.Done()
			<-goOn
		}
		switch n % 4 {
		case 1:
			job.SetResult(job.Payload, "")
		case 3:
			return sluice.Dead(errors.New("no"))
		}
		return nil
	}, sluice.WorkerConcurrency(len(messages))))
	sent := must(client.SendMany(t.Context(), "q", messages))(t)
	ready.Wait()
	// The leases of every fourth message end meanwhile: these come again.
	server.Advance(t, 10*time.Minute)
	close(goOn)
	for n, id := range sent.IDs {
		result, err := client.Result(within(t, 20*time.Second), id)
		if n%4 == 3 {
			equal(t, "dead", errors.Is(err, sluice.ErrDead), true)
			continue
		}
		check(t, err)
		wanted := ""
		if n%4 == 1 {
			wanted = fmt.Sprint(n)
		}
		equal(t, "result", string(result.Payload), wanted)
	}
	eventually(t, "30 are acked", 10*time.Second, func() bool { return queueOf(t, client, "q").Totals.Acked == 30 })
	equal(t, "expired", queueOf(t, client, "q").Totals.Expired, 10)
}
