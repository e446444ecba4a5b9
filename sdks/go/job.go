package sluice

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// Job is a message that a worker works on.
type Job struct {
	Delivery
	client      *Client
	lease       time.Duration
	result      []byte
	contentType string
}

// SetResult sets the result that goes with the ack: who has sent the message can wait for it.
func (j *Job) SetResult(result []byte, contentType string) {
	j.result, j.contentType = notNil(result), contentType
}

// Save keeps a checkpoint, which the next attempt gets if this one fails.
func (j *Job) Save(ctx context.Context, checkpoint []byte) error {
	return j.extend(ctx, Extension{Checkpoint: notNil(checkpoint)})
}

// Report tells how far the work has come.
func (j *Job) Report(ctx context.Context, progress Progress) error {
	return j.extend(ctx, Extension{Progress: &progress})
}

// Spend reports a cost of the work beyond that of the message and of earlier reports: it counts in the rates of
// the queue's limit.
func (j *Job) Spend(ctx context.Context, cost uint32) error {
	return j.extend(ctx, Extension{AddCost: cost})
}

func (j *Job) extend(ctx context.Context, extension Extension) error {
	extension.Receipt, extension.Lease = j.Receipt, j.lease
	return firstError(j.client.Extend(ctx, extension))
}

// ending is an error of a handler that says how its message ends.
type ending struct {
	cause  error
	settle func(receipt, reason string) Settlement
}

func (e *ending) Error() string { return e.cause.Error() }
func (e *ending) Unwrap() error { return e.cause }

// RetryAfter is the error of a handler that wants the next attempt after a delay.
func RetryAfter(delay time.Duration, err error) error {
	return &ending{orUnknown(err), func(receipt, reason string) Settlement {
		return Nack(receipt, reason, max(delay, 0))
	}}
}

// Dead is the error of a handler whose message will never work: it becomes a dead letter at once.
func Dead(err error) error { return &ending{orUnknown(err), Reject} }

// NotNow is the error of a handler that gives its message back, ready after a delay. The attempt does not
// count.
func NotNow(delay time.Duration) error {
	return &ending{errors.New("not now"), func(receipt, _ string) Settlement {
		return Release(receipt, max(delay, 0))
	}}
}

func orUnknown(err error) error {
	if err == nil {
		return errors.New("unknown error")
	}
	return err
}

// settlementOf is the same of any error, also of one that panics when it is asked for its text, such as a nil
// pointer: a nack.
func (j *Job) settlementOf(ctx context.Context, err error) (made Settlement) {
	defer func() {
		if panicked := recover(); panicked != nil {
			made = Nack(j.Receipt, fmt.Sprintf("the error of the handler, a %T, has panicked: %v", err, panicked), -1)
		}
	}()
	return j.settlement(ctx, err)
}

// settlement is how a message ends whose handler has returned this error.
func (j *Job) settlement(ctx context.Context, err error) Settlement {
	var told *ending
	switch {
	case err == nil && j.result == nil:
		return Ack(j.Receipt)
	case err == nil:
		return AckWith(j.Receipt, j.result, j.contentType)
	case errors.As(err, &told):
		return told.settle(j.Receipt, err.Error())
	case errors.Is(context.Cause(ctx), ErrStopping):
		return Release(j.Receipt, 0)
	default:
		return Nack(j.Receipt, err.Error(), -1)
	}
}

// errNotReturned is the error of a handler that ended its goroutine.
var errNotReturned = errors.New("the handler has not returned")

// panicError is the error of a handler that has panicked.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// run calls the handler and then f with its error, also if it panics or ends its goroutine.
func (j *Job) run(ctx context.Context, handler Handler, f func(error)) {
	err := errNotReturned
	defer func() {
		if panicked := recover(); panicked != nil {
			err = &panicError{panicked, debug.Stack()}
		}
		f(err)
	}()
	err = handler(ctx, j)
}
