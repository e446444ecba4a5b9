package sluice

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluice/sluice-go/sluicepb"
)

const (
	settleBatchMax = 1000
	// settleBytesMax is the largest number of bytes of results and of texts of errors in one request, less than
	// the server takes by default.
	settleBytesMax = 4 << 20
	// settleBatchLeast is a share of the credit that is worth a request.
	settleBatchLeast = 16
	// settleRequestsMax is the number of requests that may be under way.
	settleRequestsMax = 4
	settlePause       = 500 * time.Millisecond
)

// settle settles what is handed over, in batches, without waiting for one to fill: what gathers while one is
// under way is the next one. When that is a share of the credit it goes along, so that the server fetches the
// next messages while handlers still work on others.
func (r *run) settle(ctx context.Context) {
	defer context.AfterFunc(ctx, r.endSettling)()
	for range settleRequestsMax - 1 {
		go r.settleBatches(ctx)
	}
	r.settleBatches(ctx)
}

func (r *run) settleBatches(ctx context.Context) {
	for {
		batch := acksLast(r.nextBatch())
		if batch == nil {
			return
		}
		r.settleAll(ctx, batch, false)
		r.mu.Lock()
		r.unanswered -= len(batch)
		r.requests--
		r.toSettle.Signal()
		r.changed.Broadcast()
		r.mu.Unlock()
	}
}

func (r *run) endSettling() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	r.toSettle.Broadcast()
}

// nextBatch waits for something to settle; nil at the end.
func (r *run) nextBatch() []*lease {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.settling) == 0 || (r.requests > 0 && len(r.settling) < r.share) {
		if r.ended {
			return nil
		}
		r.toSettle.Wait()
	}
	n := fitting(r.settling[:min(len(r.settling), r.share)])
	batch := r.settling[:n:n]
	r.settling = r.settling[n:]
	r.requests++
	if len(r.settling) >= r.share {
		r.toSettle.Signal()
	}
	return batch
}

// settleShare is the largest number of settlements of one request.
func settleShare(credit uint32) int {
	return min(max(int(credit)/settleRequestsMax, settleBatchLeast), settleBatchMax)
}

// fitting is how many settlements one request takes: at least one.
func fitting(settling []*lease) int {
	size := 0
	for n, l := range settling {
		if size += l.settlement.size(); size > settleBytesMax && n > 0 {
			return n
		}
	}
	return len(settling)
}

// acksLast puts acks without anything else behind the others: they travel as receipts alone, in a list of their
// own.
func acksLast(batch []*lease) []*lease {
	if !slices.ContainsFunc(batch, func(l *lease) bool { return !l.settlement.isPlainAck() }) {
		return batch
	}
	sorted := make([]*lease, 0, len(batch))
	for _, plain := range []bool{false, true} {
		for _, l := range batch {
			if l.settlement.isPlainAck() == plain {
				sorted = append(sorted, l)
			}
		}
	}
	return sorted
}

// settleAll settles a batch. The server takes it or refuses all of it: one that it refuses is settled by halves,
// down to what it does not take, of which the message is nacked.
func (r *run) settleAll(ctx context.Context, batch []*lease, isLastResort bool) {
	errs, err := r.settleBatch(ctx, batch)
	isRefused := !isLastResort && (errors.Is(err, ErrInvalid) || errors.Is(err, ErrTooLarge))
	switch {
	case !isRefused:
		for i, l := range batch {
			one := err
			if err == nil {
				one = errs[i]
			}
			r.tellUnsettled(l, one)
		}
	case len(batch) > 1:
		middle := len(batch) / 2
		r.settleAll(ctx, batch[:middle], false)
		r.settleAll(ctx, batch[middle:], false)
	default:
		r.nackInstead(batch[0], err)
		r.settleAll(ctx, batch, true)
	}
}

// nackInstead replaces a settlement that is not taken.
func (r *run) nackInstead(l *lease, reason error) {
	outcome := l.settlement.proto.Outcome
	r.worker.log.Error("sluice: refused, and nacked instead", "message", l.job.ID, "outcome", outcome, "error", reason)
	l.settlement = l.settlement.instead(reason.Error())
}

// settleBatch settles over the session, else by a call, for as long as the leases may live.
func (r *run) settleBatch(ctx context.Context, batch []*lease) ([]error, error) {
	frame := &sluicepb.SettleMany{Acks: make([]string, 0, len(batch))}
	for _, l := range batch {
		if l.settlement.isPlainAck() {
			frame.Acks = append(frame.Acks, l.settlement.proto.Receipt)
		} else {
			frame.Items = append(frame.Items, l.settlement.proto)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, r.worker.lease)
	defer cancel()
	errs, err := r.settleFrame(ctx, frame)
	if err == nil && !isOpen(errs) {
		return errs, nil
	}
	settlements := make([]Settlement, len(batch))
	for i, l := range batch {
		settlements[i] = l.settlement
	}
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
	return frameErrors(result, len(frame.Items)+len(frame.Acks))
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
