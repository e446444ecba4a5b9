package sluice

import (
	"context"
	"sync"

	"google.golang.org/grpc"

	"github.com/sluice/sluice-go/sluicepb"
)

// link is one session: frames go out with growing numbers, and their results come back in any order.
type link struct {
	stream grpc.BidiStreamingClient[sluicepb.ClientFrame, sluicepb.ServerFrame]
	// sending guards the stream and the number, so that numbers grow as frames go.
	sending sync.Mutex
	number  uint64
	// attached is the number of the frame that attaches the consumer, and resume the receipts in it.
	attached uint64
	resume   []string

	mu      sync.Mutex
	pending map[uint64]chan *sluicepb.FrameResult
	// closed is closed when the session has ended.
	closed chan struct{}
}

func newLink(stream grpc.BidiStreamingClient[sluicepb.ClientFrame, sluicepb.ServerFrame]) *link {
	pending := map[uint64]chan *sluicepb.FrameResult{}
	return &link{stream: stream, pending: pending, closed: make(chan struct{})}
}

// begin opens the session and attaches the consumer, with the receipts of what it holds.
func (l *link) begin(open *sluicepb.Open, attach *sluicepb.Attach, resume []string) {
	l.resume = resume
	l.send(&sluicepb.ClientFrame{Frame: &sluicepb.ClientFrame_Open{Open: open}}, nil)
	l.attached = l.send(&sluicepb.ClientFrame{Frame: &sluicepb.ClientFrame_Attach{Attach: attach}}, nil)
}

// send sends a frame. That a session is broken is told to whoever reads it.
func (l *link) send(frame *sluicepb.ClientFrame, reply chan *sluicepb.FrameResult) uint64 {
	l.sending.Lock()
	defer l.sending.Unlock()
	l.number++
	frame.Number = l.number
	if reply != nil {
		l.mu.Lock()
		l.pending[l.number] = reply
		l.mu.Unlock()
	}
	_ = l.stream.Send(frame)
	return l.number
}

// ask sends a frame and waits for its result; nil: the session ended before that.
func (l *link) ask(ctx context.Context, frame *sluicepb.ClientFrame) *sluicepb.FrameResult {
	reply := make(chan *sluicepb.FrameResult, 1)
	l.send(frame, reply)
	select {
	case result := <-reply:
		return result
	case <-l.closed:
	case <-ctx.Done():
	}
	return nil
}

// setCredit sets how many messages the consumer may hold.
func (l *link) setCredit(credit uint32) {
	set := &sluicepb.SetCredit{Consumer: consumer, Credit: credit}
	l.send(&sluicepb.ClientFrame{Frame: &sluicepb.ClientFrame_Credit{Credit: set}}, nil)
}

// answered hands a result to whoever waits for it.
func (l *link) answered(result *sluicepb.FrameResult) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if reply := l.pending[result.Number]; reply != nil {
		delete(l.pending, result.Number)
		reply <- result
	}
}

func (l *link) close() { close(l.closed) }

// frameErrors are the errors of the items of a frame, nil for those that succeeded.
func frameErrors(result *sluicepb.FrameResult, items int) ([]error, error) {
	if result.Error != nil {
		return nil, fromItem(result.Error)
	}
	errs := make([]error, items)
	for _, failure := range result.Failures {
		if int(failure.Item) < items && !failure.AlreadySettled {
			errs[failure.Item] = itemError(failure)
		}
	}
	return errs, nil
}
