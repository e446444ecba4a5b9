package sluice

import (
	"context"
	"log/slog"
	"time"
)

const (
	workerLease    = 30 * time.Second
	workerLeaseMin = time.Second
	creditMax      = 10_000
)

// Handler works on a message. The message is acked when it returns nil. An error is a nack: another attempt
// follows after the backoff of the message, or as [RetryAfter], [Dead] and [NotNow] tell. A panic is an
// error.
//
// The context is cancelled when the lease is lost ([ErrLeaseLost] is its cause then) or the message is
// cancelled ([ErrCancelled]): the work is of no use any more. It is not cancelled when the worker is told to
// stop.
type Handler func(ctx context.Context, job *Job) error

// Worker takes messages from queues over a session, as they become ready, and runs a handler for each.
type Worker struct {
	client  *Client
	handler Handler
	queues  []string
	name    string
	lease   time.Duration
	timeout time.Duration
	grace   time.Duration
	log     *slog.Logger

	transactionTTL time.Duration

	concurrency, prefetch int
}

// WorkerOption changes a worker.
type WorkerOption func(*Worker)

// WorkerConcurrency sets how many handlers run at once (default 1).
func WorkerConcurrency(handlers int) WorkerOption {
	return func(w *Worker) { w.concurrency = max(handlers, 1) }
}

// WorkerPrefetch sets how many messages are held ready beyond those that are worked on (default 0): a few for
// work of some milliseconds.
func WorkerPrefetch(messages int) WorkerOption {
	return func(w *Worker) { w.prefetch = max(messages, 0) }
}

// WorkerLease sets the lease of the messages, which is extended for as long as the handler runs (default 30
// s, at least 1 s): after a crash of this process others get them after so long.
func WorkerLease(d time.Duration) WorkerOption {
	return func(w *Worker) { w.lease = max(d, workerLeaseMin) }
}

// WorkerTimeout sets how long a handler may take until its context ends (default: any time).
func WorkerTimeout(d time.Duration) WorkerOption {
	return func(w *Worker) { w.timeout = d }
}

// WorkerStopWithin sets how long a worker that stops waits for its handlers (default: any time). After that
// their contexts end, with [ErrStopping] as the cause; the messages of handlers that then return an error are
// given back, and these attempts do not count.
func WorkerStopWithin(d time.Duration) WorkerOption {
	return func(w *Worker) { w.grace = d }
}

// WorkerName names the consumer, for lists.
func WorkerName(name string) WorkerOption {
	return func(w *Worker) { w.name = name }
}

// WorkerQueues adds queues to work on.
func WorkerQueues(queues ...string) WorkerOption {
	return func(w *Worker) { w.queues = append(w.queues, queues...) }
}

// WorkerLogger sets where lost connections, lost leases and panics are told (default: nowhere).
func WorkerLogger(log *slog.Logger) WorkerOption {
	return func(w *Worker) { w.log = log }
}

// NewWorker makes a worker on a queue. [Worker.Run] runs it.
func (c *Client) NewWorker(queue string, handler Handler, opts ...WorkerOption) *Worker {
	w := &Worker{
		client: c, handler: handler, queues: []string{queue}, lease: workerLease, concurrency: 1,
		log: slog.New(slog.DiscardHandler), transactionTTL: workerTransactionTTL,
	}
	for _, opt := range opts {
		opt(w)
	}
	return w
}

// Run works until the context ends, then finishes what it has begun, gives back what it has not, and returns
// nil. A server that cannot be reached is tried again for ever. An error that no retry can cure, such as a
// namespace that does not exist, is returned after what runs has finished.
func (w *Worker) Run(ctx context.Context) error {
	r := newRun(ctx, w)
	keeping, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	go r.keepSession(keeping)
	go r.keepLeases(keeping)
	go r.settle(keeping)
	select {
	case <-ctx.Done():
	case <-r.refused:
	}
	r.stop()
	r.finish(w.grace)
	r.detach(keeping)
	end()
	<-r.sessionEnded
	return r.refusal
}

// credit is the number of messages that the worker may hold.
func (w *Worker) credit() uint32 { return uint32(min(w.concurrency+w.prefetch, creditMax)) }
