package sluice

import (
	"context"
	"errors"
	"time"

	"github.com/sluice/sluice-go/sluicepb"
)

const (
	sessionPause    = 50 * time.Millisecond
	sessionPauseMax = 5 * time.Second
	sessionHopsMax  = 4
	// silenceMax is the time without a frame after which a session is broken: the server sends one each 20 s.
	silenceMax    = time.Minute
	drainLook     = 50 * time.Millisecond
	detachTimeout = 2 * time.Second
	graceMax      = time.Hour
	consumer      = 1
)

// keepSession keeps a session open until the context ends.
func (r *run) keepSession(ctx context.Context) {
	defer close(r.sessionEnded)
	servers := r.worker.client.servers
	for failures, hops := 0, 0; ctx.Err() == nil; {
		asked := servers.asked()
		began := time.Now()
		err := r.holdSession(ctx, asked)
		if ctx.Err() != nil {
			return
		}
		if !isPassing(err.Code) || asked.refused.Load() {
			r.refuse(err)
			return
		}
		toAnother := servers.passOn(asked, err)
		if time.Since(began) > sessionPauseMax {
			failures, hops = 0, 0
		}
		if toAnother && err.Code == CodeNotLeader && hops < sessionHopsMax {
			hops++
			continue
		}
		r.worker.log.Warn("sluice: the session has ended", "server", asked.address, "error", err)
		_ = sleep(ctx, jittered(grow(sessionPause, failures, sessionPauseMax)))
		failures++
	}
}

// isPassing is true of errors after which a later session may get what this one was refused.
func isPassing(code string) bool {
	switch code {
	case CodeUnreachable, CodeOutcomeUnknown, CodeNotLeader, CodeNoLeader, CodeShuttingDown, CodeInDoubt,
		CodeJournalFailed, CodeInternal, CodeOverloaded, CodeRateLimited, CodeQueueFull, CodeQuotaExceeded,
		CodeLimitExceeded, CodeDiskFull, CodeRequestTimeout, CodeConsumerNotFound:
		return true
	}
	return false
}

// holdSession opens a session, attaches the consumer and handles what comes, until the session ends.
func (r *run) holdSession(ctx context.Context, asked *server) *Error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := sluicepb.NewSessionsClient(asked.conn).Session(ctx)
	if err != nil {
		return toError(ctx, err)
	}
	l := newLink(stream)
	defer l.close()
	defer r.setSession(nil)
	resume := r.receipts()
	l.begin(r.open(), r.attach(resume), resume)
	silence := time.AfterFunc(silenceMax, cancel)
	defer silence.Stop()
	for {
		frame, err := stream.Recv()
		if err != nil {
			e := endOfStream(ctx, err)
			e.cause = nil // The silence has ended it, or the run: that is looked at by the caller.
			return e
		}
		silence.Reset(silenceMax)
		if e := r.take(ctx, cancel, l, frame); e != nil {
			return e
		}
	}
}

// take handles a frame of the server.
func (r *run) take(ctx context.Context, end func(), l *link, frame *sluicepb.ServerFrame) *Error {
	switch f := frame.Frame.(type) {
	case *sluicepb.ServerFrame_Deliveries:
		r.deliver(f.Deliveries.Messages)
	case *sluicepb.ServerFrame_Result:
		return r.takeResult(l, f.Result)
	case *sluicepb.ServerFrame_Cancellations:
		lost := map[string]error{}
		for _, receipt := range f.Cancellations.Receipts {
			lost[receipt] = &Error{Code: CodeCancelled, Message: "the message was cancelled"}
		}
		r.loseReceipts(lost)
	case *sluicepb.ServerFrame_Draining:
		go r.drain(ctx, end)
	case *sluicepb.ServerFrame_Detached:
		return &Error{Code: CodeConsumerNotFound, Message: "the consumer was detached"}
	}
	return nil
}

// takeResult handles the result of a frame. A session whose first two frames were refused is of no use.
func (r *run) takeResult(l *link, result *sluicepb.FrameResult) *Error {
	switch {
	case result.Number > l.attached:
		l.answered(result)
	case result.Error != nil:
		return fromItem(result.Error)
	case result.Number == l.attached:
		r.attached(l, result)
	}
	return nil
}

// drain ends the session of a server that is about to stop, once nothing is in hand.
func (r *run) drain(ctx context.Context, end func()) {
	for !r.isIdle() {
		if sleep(ctx, drainLook) != nil {
			return
		}
	}
	end()
}

// attached notes that messages come, and which of those that were in hand are lost.
func (r *run) attached(l *link, result *sluicepb.FrameResult) {
	lost := map[string]error{}
	for _, failure := range result.Failures {
		if int(failure.Item) < len(l.resume) {
			lost[l.resume[failure.Item]] = itemError(failure)
		}
	}
	r.loseReceipts(lost)
	r.setSession(l)
}

func (r *run) setSession(l *link) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.link = l
	if l != nil && r.stopping {
		go l.setCredit(0)
	}
}

// session is the session that is attached; nil while there is none.
func (r *run) session() *link {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.link
}

func (r *run) open() *sluicepb.Open {
	c := r.worker.client
	return &sluicepb.Open{Namespace: c.options.namespace, FollowsLeaders: c.servers.others() > 0}
}

func (r *run) attach(resume []string) *sluicepb.Attach {
	w := r.worker
	credit := w.credit()
	r.mu.Lock()
	if r.stopping {
		credit = 0
	}
	r.mu.Unlock()
	return &sluicepb.Attach{
		Consumer: consumer, Queues: w.queues, Credit: credit, LeaseMs: millis(w.lease), Name: w.name,
		GraceMs: millis(min(w.lease, graceMax)), Resume: resume,
	}
}

// detach gives back at once what came too late to be seen.
func (r *run) detach(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, detachTimeout)
	defer cancel()
	if l := r.session(); l != nil {
		detach := &sluicepb.Detach{Consumer: consumer}
		l.ask(ctx, &sluicepb.ClientFrame{Frame: &sluicepb.ClientFrame_Detach{Detach: detach}})
	}
}

// itemError is the error of an item of a frame.
func itemError(failure *sluicepb.ItemFailure) error {
	if failure.AlreadySettled {
		return &Error{Code: CodeAlreadySettled, Message: "settled before"}
	}
	if failure.Error == nil {
		return errors.New("sluice: an item failed without an error")
	}
	return fromItem(failure.Error)
}
