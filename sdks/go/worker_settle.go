package sluice

import (
	"context"
	"time"

	"github.com/sluice/sluice-go/sluicepb"
)

const (
	settleBatchMax = 1000
	settlePause    = 500 * time.Millisecond
)

// settle settles what is handed over, in batches: what gathers while one is under way is the next one.
func (r *run) settle(ctx context.Context) {
	defer context.AfterFunc(ctx, r.endSettling)()
	for {
		batch := r.nextBatch()
		if batch == nil {
			return
		}
		errs, err := r.settleBatch(ctx, batch)
		for i, l := range batch {
			one := err
			if err == nil {
				one = errs[i]
			}
			r.tellUnsettled(l, one)
		}
		r.mu.Lock()
		r.unanswered -= len(batch)
		r.changed.Broadcast()
		r.mu.Unlock()
	}
}

func (r *run) endSettling() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	r.toSettle.Signal()
}

// nextBatch waits for something to settle; nil at the end.
func (r *run) nextBatch() []*lease {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.settling) == 0 {
		if r.ended {
			return nil
		}
		r.toSettle.Wait()
	}
	n := min(len(r.settling), settleBatchMax)
	batch := r.settling[:n:n]
	r.settling = r.settling[n:]
	return batch
}

// settleBatch settles over the session, else by a call, for as long as the leases may live.
func (r *run) settleBatch(ctx context.Context, batch []*lease) ([]error, error) {
	settlements := make([]Settlement, len(batch))
	frame := &sluicepb.SettleMany{}
	for i, l := range batch {
		settlements[i] = l.settlement
		frame.Items = append(frame.Items, l.settlement.proto)
	}
	ctx, cancel := context.WithTimeout(ctx, r.worker.lease)
	defer cancel()
	errs, err := r.settleFrame(ctx, frame)
	for err != nil || isOpen(errs) {
		if err != nil && !isPassing(codeOf(err)) {
			return nil, err
		}
		if err != errNoSession && sleep(ctx, settlePause) != nil {
			return errs, err
		}
		errs, err = r.worker.client.Settle(ctx, settlements...)
		if ctx.Err() != nil {
			return errs, err
		}
	}
	return errs, nil
}

func (r *run) settleFrame(ctx context.Context, frame *sluicepb.SettleMany) ([]error, error) {
	link := r.session()
	if link == nil {
		return nil, errNoSession
	}
	result := link.ask(ctx, &sluicepb.ClientFrame{Frame: &sluicepb.ClientFrame_Settle{Settle: frame}})
	if result == nil {
		return nil, errNoSession
	}
	return frameErrors(result, len(frame.Items))
}

// errNoSession says that there is no session, or that it broke before the answer.
var errNoSession error = &Error{Code: CodeUnreachable, Message: "there is no session"}

// isOpen is true when a transaction that is being decided is about one of the messages.
func isOpen(errs []error) bool {
	for _, err := range errs {
		if codeOf(err) == CodeInDoubt {
			return true
		}
	}
	return false
}

func (r *run) tellUnsettled(l *lease, err error) {
	if err != nil {
		outcome := l.settlement.proto.Outcome
		r.worker.log.Warn("sluice: not settled", "message", l.job.ID, "outcome", outcome, "error", err)
	}
}
