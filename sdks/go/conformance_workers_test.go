package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice/sluice-go"
	"github.com/sluice/sluice-go/sluicepb"
)

// tally counts what handlers have had, by payload.
type tally struct {
	mu    sync.Mutex
	times map[string]int
}

func (c *tally) add(payload []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.times == nil {
		c.times = map[string]int{}
	}
	c.times[string(payload)]++
}

func (c *tally) distinct() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.times)
}

func queueOf(t *testing.T, client *sluice.Client, name string) *sluicepb.Queue {
	t.Helper()
	queues := sluicepb.NewQueuesClient(client.Conn())
	return must(queues.Get(within(t, 10*time.Second), &sluicepb.GetQueueRequest{Queue: name}))(t)
}

func isEmpty(queue *sluicepb.Queue) bool {
	c := queue.Counts
	return c.Ready+c.Leased+c.Delayed+c.Dead+c.Blocked == 0
}

func workAcks(t *testing.T, client *sluice.Client) {
	var seen tally
	var running, most atomic.Int64
	stop := work(t, client.NewWorker("acks", func(_ context.Context, job *sluice.Job) error {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		time.Sleep(time.Millisecond)
		seen.add(job.Payload)
		return nil
	}, sluice.WorkerConcurrency(8)))
	for i := range 100 {
		send(t, client, "acks", fmt.Sprint(i))
	}
	eventually(t, "all messages are handled", 20*time.Second, func() bool { return seen.distinct() == 100 })
	stop()
	for payload, times := range seen.times {
		equal(t, "times of "+payload, times, 1)
	}
	if most.Load() > 8 {
		t.Fatalf("%d handlers ran at once", most.Load())
	}
	if queue := queueOf(t, client, "acks"); !isEmpty(queue) || queue.Totals.Acked != 100 {
		t.Fatalf("the queue is not empty: %v", queue)
	}
}

func workRenews(t *testing.T, client *sluice.Client) {
	var handled atomic.Int64
	lost := make(chan error, 1)
	stop := work(t, client.NewWorker("renews", func(ctx context.Context, _ *sluice.Job) error {
		handled.Add(1)
		select {
		case <-ctx.Done():
			lost <- context.Cause(ctx)
		case <-time.After(4 * time.Second):
		}
		return nil
	}, sluice.WorkerLease(2*time.Second)))
	send(t, client, "renews", "long")
	for range 35 {
		time.Sleep(100 * time.Millisecond)
		if handled.Load() > 0 {
			receiveNone(t, client, "renews")
		}
	}
	eventually(t, "it is acked", 10*time.Second, func() bool {
		return queueOf(t, client, "renews").Totals.Acked == 1
	})
	stop()
	equal(t, "handled", handled.Load(), 1)
	select {
	case err := <-lost:
		t.Fatalf("the lease was lost: %v", err)
	default:
	}
}

func workRetries(t *testing.T, client *sluice.Client) {
	var mu sync.Mutex
	var attempts []uint32
	var at []time.Time
	work(t, client.NewWorker("retries", func(_ context.Context, job *sluice.Job) error {
		mu.Lock()
		defer mu.Unlock()
		attempts, at = append(attempts, job.Attempt), append(at, time.Now())
		switch job.Attempt {
		case 1:
			return sluice.RetryAfter(300*time.Millisecond, errors.New("busy"))
		case 2:
			panic("no answer")
		}
		return nil
	}))
	backoff := sluice.Backoff{Kind: "fixed", Base: 100 * time.Millisecond, JitterPercent: -1}
	id := send(t, client, "retries", "1", sluice.WithBackoff(backoff), sluice.WithResultTTL(time.Minute))
	must(client.Result(within(t, 20*time.Second), id))(t)
	mu.Lock()
	defer mu.Unlock()
	equal(t, "attempts", fmt.Sprint(attempts), "[1 2 3]")
	for i, wanted := range []time.Duration{300 * time.Millisecond, 100 * time.Millisecond} {
		if waited := at[i+1].Sub(at[i]); waited < wanted-5*time.Millisecond {
			t.Fatalf("attempt %d came after %s", i+2, waited)
		}
	}
}

func workDead(t *testing.T, client *sluice.Client) {
	work(t, client.NewWorker("dead", func(_ context.Context, job *sluice.Job) error {
		switch string(job.Payload) {
		case "never":
			return sluice.Dead(errors.New("this is no order"))
		case "panics":
			panic("out of range")
		}
		return fmt.Errorf("no answer in attempt %d", job.Attempt)
	}))
	expect := map[string]string{
		"fails": "no answer in attempt 2", "never": "this is no order", "panics": "panic: out of range",
	}
	for payload, text := range expect {
		id := send(t, client, "dead", payload, sluice.WithMaxAttempts(2),
			sluice.WithBackoff(sluice.Backoff{Kind: "none"}), sluice.WithResultTTL(time.Minute))
		_, err := client.Result(within(t, 20*time.Second), id)
		if !errors.Is(err, sluice.ErrDead) {
			t.Fatalf("it is no dead letter: %v", err)
		}
		messages := sluicepb.NewMessagesClient(client.Conn())
		stored := must(messages.Get(t.Context(), &sluicepb.GetMessageRequest{Id: id}))(t)
		last := stored.History[len(stored.History)-1]
		equal(t, "error of "+payload, last.Error, text)
	}
}

func workRefused(t *testing.T, client *sluice.Client) {
	const messages = 20
	var begun sync.WaitGroup
	begun.Add(messages)
	var handled atomic.Int64
	work(t, client.NewWorker("refused", func(_ context.Context, job *sluice.Job) error {
		handled.Add(1)
		begun.Done()
		begun.Wait()
		if string(job.Payload) == "5" {
			job.SetResult(make([]byte, 300_000), "")
		}
		return nil
	}, sluice.WorkerConcurrency(messages)))
	var refused string
	for n := range messages {
		if id := send(t, client, "refused", fmt.Sprint(n), sluice.WithMaxAttempts(1)); n == 5 {
			refused = id
		}
	}
	eventually(t, "the counts", 20*time.Second, func() bool {
		queue := queueOf(t, client, "refused")
		return queue.Totals.Acked == messages-1 && queue.Counts.Dead == 1
	})
	equal(t, "handled", handled.Load(), messages)
	request := &sluicepb.GetMessageRequest{Id: refused}
	stored := must(sluicepb.NewMessagesClient(client.Conn()).Get(t.Context(), request))(t)
	if text := stored.History[0].Error; !strings.Contains(text, "262144") {
		t.Fatalf("%q does not tell the limit", text)
	}
}

func workStops(t *testing.T, client *sluice.Client) {
	begun, goOn := make(chan struct{}, 10), make(chan struct{})
	var done atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	worker := client.NewWorker("stops", func(context.Context, *sluice.Job) error {
		begun <- struct{}{}
		<-goOn
		done.Add(1)
		return nil
	}, sluice.WorkerConcurrency(2), sluice.WorkerPrefetch(3))
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	for i := range 8 {
		send(t, client, "stops", fmt.Sprint(i))
	}
	<-begun
	<-begun
	eventually(t, "it holds what it may", 10*time.Second, func() bool {
		return queueOf(t, client, "stops").Counts.Leased == 5
	})
	stop()
	eventually(t, "what was not begun is given back", 10*time.Second, func() bool {
		return queueOf(t, client, "stops").Counts.Leased == 2
	})
	close(goOn)
	check(t, <-ended)
	equal(t, "handled", done.Load(), 2)
	queue := queueOf(t, client, "stops")
	equal(t, "ready", queue.Counts.Ready, 6)
	equal(t, "acked", queue.Totals.Acked, 2)
	for range 6 {
		equal(t, "attempt", receiveOne(t, client, "stops").Attempt, 1)
	}
}
