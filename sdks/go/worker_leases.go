package sluice

import (
	"context"
	"time"

	"github.com/sluice/sluice-go/sluicepb"
)

// lease is a message in hand.
type lease struct {
	job Job
	// ctx ends when the lease is lost, with the reason as its cause, or the message is settled.
	ctx context.Context
	end context.CancelCauseFunc
	// extendAt is when it is extended next, endsAt when it is over by the clock of this process.
	extendAt, endsAt time.Time
	settlement       Settlement
}

// begin makes a lease of one that is new.
func (r *run) begin(l *lease, message *sluicepb.Delivered, since time.Time) {
	length := r.worker.lease
	l.job = Job{Delivery: deliveryOf(message), client: r.worker.client, lease: length}
	l.extendAt, l.endsAt = since.Add(length/2), since.Add(length)
	l.ctx, l.end = context.WithCancelCause(r.base)
}

// keepLeases extends leases at half time, and ends those that are over.
func (r *run) keepLeases(ctx context.Context) {
	every := r.worker.lease / 8
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	extended := make(chan struct{}, 1)
	extended <- struct{}{}
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			r.endLeases(now)
			select {
			case <-extended: // One extend at a time.
				go func() {
					r.extendDue(ctx, now.Add(every))
					extended <- struct{}{}
				}()
			default:
			}
		}
	}
}

// endLeases ends the leases that are over: others get these messages.
func (r *run) endLeases(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.held {
		if l.ctx.Err() == nil && !l.endsAt.After(now) {
			r.worker.log.Warn("sluice: the lease ended before it could be extended", "message", l.job.ID)
			l.end(&Error{Code: CodeLeaseLost, Message: "the lease could not be extended in time"})
		}
	}
}

// extendDue extends the leases that are due at a time.
func (r *run) extendDue(ctx context.Context, at time.Time) {
	since := time.Now()
	due := r.due(at)
	if len(due) == 0 {
		return
	}
	errs, err := r.extend(ctx, due)
	if err != nil {
		r.worker.log.Warn("sluice: leases were not extended", "error", err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, l := range due {
		if errs[i] == nil {
			l.extendAt, l.endsAt = since.Add(r.worker.lease/2), since.Add(r.worker.lease)
			continue
		}
		r.lose(l, errs[i])
	}
}

// due are the leases that are due at a time; each is due again soon, should this extend fail.
func (r *run) due(at time.Time) []*lease {
	r.mu.Lock()
	defer r.mu.Unlock()
	var due []*lease
	for _, l := range r.held {
		if l.ctx.Err() == nil && !l.extendAt.After(at) {
			l.extendAt = at.Add(r.worker.lease / 4)
			due = append(due, l)
		}
	}
	return due
}

// extend extends leases over the session, or by a call while there is none.
func (r *run) extend(ctx context.Context, due []*lease) ([]error, error) {
	extensions := make([]Extension, len(due))
	frame := &sluicepb.ExtendMany{}
	for i, l := range due {
		extensions[i] = Extension{Receipt: l.job.Receipt, Lease: r.worker.lease}
		frame.Items = append(frame.Items, extensions[i].proto())
	}
	ctx, cancel := context.WithTimeout(ctx, max(r.worker.lease/4, time.Second))
	defer cancel()
	if link := r.session(); link != nil {
		result := link.ask(ctx, &sluicepb.ClientFrame{Frame: &sluicepb.ClientFrame_Extend{Extend: frame}})
		if result != nil {
			return frameErrors(result, len(due))
		}
	}
	return r.worker.client.Extend(ctx, extensions...)
}

// lose ends the context of a lease that is lost, for the reason that the server tells. The lock is held.
func (r *run) lose(l *lease, reason error) {
	switch codeOf(reason) {
	case CodeAlreadySettled, CodeInDoubt:
		// Its handler has settled it, or a transaction is about to.
	case CodeCancelled:
		l.end(reason)
	default:
		r.worker.log.Warn("sluice: a lease is lost", "message", l.job.ID, "error", reason)
		l.end(&Error{Code: CodeLeaseLost, Message: reason.Error()})
	}
}

// loseReceipts does so by receipts.
func (r *run) loseReceipts(lost map[string]error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for receipt, reason := range lost {
		if l := r.held[receipt]; l != nil {
			r.lose(l, reason)
		}
	}
}

// receipts are those of the messages in hand that are not lost, for a session that is resumed.
func (r *run) receipts() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for receipt, l := range r.held {
		if l.ctx.Err() == nil {
			all = append(all, receipt)
		}
	}
	return all
}
