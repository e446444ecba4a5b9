package sluice

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice/sluice-go/sluicepb"
)

// pollFor is how long one call of a longer wait lasts: a wait that is lost with its server begins anew by
// then.
const pollFor = 20 * time.Second

// Result is the result of a message that is done.
type Result struct {
	// Payload is what the worker has returned; nil if nothing was, or if it is not kept.
	Payload     []byte
	ContentType string
	DoneAt      time.Time
	KeptUntil   time.Time
}

// DeadLetterError says that a message has become a dead letter. errors.Is(err, ErrDead) is true of it.
type DeadLetterError struct {
	ID string
	// Reason is max_attempts, rejected, expired, ...
	Reason string
}

// Error names the message and the reason.
func (e *DeadLetterError) Error() string {
	return fmt.Sprintf("message %s is a dead letter: %s", e.ID, e.Reason)
}

// Is makes errors.Is(err, ErrDead) true.
func (e *DeadLetterError) Is(target error) bool { return target == ErrDead }

// Result waits until a message is done, for as long as the context lasts, and returns its result. The message
// has to be sent with [WithResultTTL], or its queue to keep what is done. A dead letter is a
// [DeadLetterError].
func (c *Client) Result(ctx context.Context, id string) (*Result, error) {
	in := &sluicepb.AwaitResultRequest{Namespace: c.options.namespace, Id: id, WaitMs: millis(pollFor)}
	for {
		out := &sluicepb.AwaitResultResponse{}
		err := c.call(ctx, sluicepb.Messages_AwaitResult_FullMethodName, in, out, repeatable, pollFor)
		if err != nil {
			return nil, err
		}
		switch out.State {
		case "done":
			return &Result{out.Result, out.ResultContentType, timeOf(out.GetDoneAtMs()),
				timeOf(out.GetKeptUntilMs())}, nil
		case "dead":
			return nil, &DeadLetterError{id, out.Reason}
		}
	}
}

const (
	replyKeptFor   = time.Minute
	requestTimeout = 30 * time.Second
)

// Request sends a message and waits for the result that a worker gives it. The context bounds the wait, or 30
// seconds if it has no deadline. A request that nobody has begun by then expires.
func (c *Client) Request(
	ctx context.Context, queue string, payload []byte, opts ...SendOption,
) (*Result, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, requestTimeout)
		defer cancel()
	}
	until, _ := ctx.Deadline()
	defaults := onMessage(func(m *Message) {
		if m.ResultTTL == 0 {
			m.ResultTTL = replyKeptFor
		}
		if m.TTL == 0 && m.ExpiresAt.IsZero() {
			m.TTL = max(time.Until(until), time.Millisecond)
		}
	})
	id, err := c.Send(ctx, queue, payload, append(opts[:len(opts):len(opts)], defaults)...)
	if err != nil {
		return nil, err
	}
	result, err := c.Result(ctx, id)
	var dead *DeadLetterError
	if errors.As(err, &dead) && dead.Reason == "expired" {
		// The server has seen the end of the time first.
		return nil, fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	return result, err
}
