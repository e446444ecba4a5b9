package sluice

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sluice/sluice-go/sluicepb"
)

// run is one run of a worker.
type run struct {
	worker *Worker
	// base is the context from which those of handlers are made.
	base context.Context

	mu sync.Mutex
	// changed tells that a handler or a settlement has ended.
	changed *sync.Cond
	// toSettle tells that there is something to settle.
	toSettle *sync.Cond
	// held are the messages in hand, by receipt: those that wait for a handler, and those that have one.
	held     map[string]*lease
	waiting  []*lease
	running  int
	stopping bool
	// settling are settlements that wait, and unanswered the number of these and of those under way.
	settling   []*lease
	unanswered int
	// requests are the settlements under way, and share the most messages of one of them.
	requests, share int
	ended           bool
	// link is the session; nil while there is none.
	link *link

	refused      chan struct{}
	refusal      error
	sessionEnded chan struct{}
}

func newRun(ctx context.Context, w *Worker) *run {
	r := &run{
		worker: w, base: context.WithoutCancel(ctx), held: map[string]*lease{}, share: settleShare(w.credit()),
		refused: make(chan struct{}), sessionEnded: make(chan struct{}),
	}
	r.changed, r.toSettle = sync.NewCond(&r.mu), sync.NewCond(&r.mu)
	return r
}

// deliver takes messages that have come; their leases began a moment before.
func (r *run) deliver(messages []*sluicepb.Delivered) {
	now := time.Now()
	// In one piece: it lives as long as the last of them, as a frame does.
	leases := make([]lease, len(messages))
	for i, message := range messages {
		r.begin(&leases[i], message, now)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range leases {
		l := &leases[i]
		r.held[l.job.Receipt] = l
		if r.stopping {
			r.giveBack(l)
			continue
		}
		r.waiting = append(r.waiting, l)
	}
	r.startHandlers()
}

// startHandlers starts as many handlers as may run. The lock is held.
func (r *run) startHandlers() {
	for r.running < r.worker.concurrency && len(r.waiting) > 0 {
		l := r.waiting[0]
		r.waiting = r.waiting[1:]
		if l.ctx.Err() != nil {
			r.giveBack(l)
			continue
		}
		r.running++
		go r.handle(l)
	}
}

// handle runs the handler of a message to its end.
func (r *run) handle(l *lease) {
	ctx := r.worker.client.extract(l.ctx, l.job.Headers)
	if r.worker.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.worker.timeout)
		defer cancel()
	}
	l.job.run(ctx, r.worker.handler, func(err error) {
		r.tellPanic(l, err)
		settlement := l.job.settlementOf(ctx, err)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.running--
		r.end(l, settlement)
		r.startHandlers()
		r.changed.Broadcast()
	})
}

func (r *run) tellPanic(l *lease, err error) {
	if panicked, ok := err.(*panicError); ok {
		r.worker.log.Error("sluice: a handler has panicked", "message", l.job.ID, "panic", panicked.value,
			"stack", string(panicked.stack))
	}
}

// giveBack releases a message that was not begun. The lock is held.
func (r *run) giveBack(l *lease) { r.end(l, Release(l.job.Receipt, 0)) }

// end hands a message over to be settled. The lock is held.
func (r *run) end(l *lease, settlement Settlement) {
	l.settlement = settlement
	if size := settlement.size(); size > settleBytesMax {
		// A frame of any size might end the session.
		r.nackInstead(l, fmt.Errorf("its %d bytes are more than %d", size, settleBytesMax))
	}
	l.end(nil)
	delete(r.held, l.job.Receipt)
	r.settling = append(r.settling, l)
	r.unanswered++
	// A request that is under way looks itself for what has come meanwhile.
	if waiting := len(r.settling); (waiting == 1 && r.requests == 0) || waiting == r.share {
		r.toSettle.Signal()
	}
}

// stop takes no more messages, and gives back those that were not begun.
func (r *run) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopping = true
	for _, l := range r.waiting {
		r.giveBack(l)
	}
	r.waiting = nil
	if r.link != nil {
		go r.link.setCredit(0)
	}
}

// finish waits until all handlers have ended and all messages are settled. After the grace the contexts of
// the handlers end.
func (r *run) finish(grace time.Duration) {
	if grace > 0 {
		timer := time.AfterFunc(grace, r.interrupt)
		defer timer.Stop()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.running > 0 || r.unanswered > 0 {
		r.changed.Wait()
	}
}

func (r *run) interrupt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.held {
		l.end(ErrStopping)
	}
}

// isIdle is true when nothing is in hand, and nothing on the way to the server.
func (r *run) isIdle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.held) == 0 && r.unanswered == 0
}

// refuse ends the run with an error that no retry can cure.
func (r *run) refuse(err error) {
	r.refusal = err
	close(r.refused)
}
