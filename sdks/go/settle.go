package sluice

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sluice/sluice-go/sluicepb"
)

// Settlement is the end of a delivery. [Ack], [Nack], [Release] and [Reject] make one.
type Settlement struct{ proto *sluicepb.Settlement }

// Ack says that the work is done.
func Ack(receipt string) Settlement {
	return Settlement{&sluicepb.Settlement{Receipt: receipt, Outcome: "ack"}}
}

// AckWith says that the work is done, with its result.
func AckWith(receipt string, result []byte, contentType string) Settlement {
	made := Ack(receipt)
	made.proto.Result, made.proto.ResultContentType = result, given(valid(contentType))
	return made
}

// Nack says that the work has failed: another attempt follows after the delay, or after the backoff of the
// message if it is negative.
func Nack(receipt, reason string, delay time.Duration) Settlement {
	return Settlement{&sluicepb.Settlement{
		Receipt: receipt, Outcome: "nack", Error: given(errorText(reason)), DelayMs: delayMillis(delay),
	}}
}

// Release gives the message back, ready after the delay. The attempt does not count.
func Release(receipt string, delay time.Duration) Settlement {
	return Settlement{&sluicepb.Settlement{
		Receipt: receipt, Outcome: "release", DelayMs: delayMillis(delay),
	}}
}

// Reject makes the message a dead letter at once.
func Reject(receipt, reason string) Settlement {
	return Settlement{&sluicepb.Settlement{
		Receipt: receipt, Outcome: "reject", Error: given(errorText(reason)),
	}}
}

// WithCost is the same end, with a cost of the work beyond that of the message, which counts in the rates of
// the queue's limit.
func (s Settlement) WithCost(cost uint32) Settlement {
	made := sluicepb.Settlement{
		Receipt: s.proto.Receipt, Outcome: s.proto.Outcome, Error: s.proto.Error, DelayMs: s.proto.DelayMs,
		Result: s.proto.Result, ResultContentType: s.proto.ResultContentType, AddCost: given(cost),
	}
	return Settlement{&made}
}

// isPlainAck is true of an ack without a result or a cost.
func (s Settlement) isPlainAck() bool {
	p := s.proto
	return p.Outcome == "ack" && p.Result == nil && p.ResultContentType == nil && p.AddCost == nil
}

// size is the number of bytes of its result and of the text of its error.
func (s Settlement) size() int { return len(s.proto.Result) + len(s.proto.GetError()) }

// instead is the nack for a settlement that is not taken.
func (s Settlement) instead(reason string) Settlement {
	text := fmt.Sprintf("the %s was refused: %s", s.proto.Outcome, reason)
	if said := s.proto.GetError(); said != "" {
		text += "; the handler said: " + said
	}
	return Nack(s.proto.Receipt, text, -1)
}

// errorTextMax is where the server cuts texts of errors.
const errorTextMax = 4096

func errorText(text string) string { return valid(text[:min(len(text), errorTextMax)]) }

// valid is a text without what is no UTF-8, which no request can hold.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// delayMillis is a delay, which may be 0; nil for a negative one.
func delayMillis(d time.Duration) *uint64 {
	if d < 0 {
		return nil
	}
	if d == 0 {
		return new(uint64)
	}
	return millis(d)
}

// Settle ends deliveries. It returns the error of each, in order, nil for those that are settled; a delivery
// that was settled before by the same receipt counts as settled.
func (c *Client) Settle(ctx context.Context, settlements ...Settlement) ([]error, error) {
	in := &sluicepb.SettleRequest{Namespace: c.options.namespace}
	for _, one := range settlements {
		in.Items = append(in.Items, one.proto)
	}
	out := &sluicepb.ResultsResponse{}
	if err := c.call(ctx, sluicepb.Messages_Settle_FullMethodName, in, out, repeatable, 0); err != nil {
		return nil, err
	}
	return itemErrors(out, nil), nil
}

// Ack says that the work on one delivery is done.
func (c *Client) Ack(ctx context.Context, receipt string) error {
	return firstError(c.Settle(ctx, Ack(receipt)))
}

// Extension extends a lease.
type Extension struct {
	Receipt string
	// Lease is its new length from now on; 0: the queue's.
	Lease time.Duration
	// Checkpoint is handed to the next attempt; nil: as before.
	Checkpoint []byte
	// Progress is told to those who look; nil: as before.
	Progress *Progress
	// AddCost is the cost of the work beyond that of the message and of earlier reports.
	AddCost uint32
}

// Progress is how far the work has come.
type Progress struct {
	// Percent is 0 to 100.
	Percent uint32
	Note    string
}

// Extend extends leases. It returns the error of each, in order: [ErrLeaseLost] and [ErrCancelled] say that
// the work is of no use any more. A report with a cost is not repeated when its answer is lost: the server would
// add the cost once more.
func (c *Client) Extend(ctx context.Context, extensions ...Extension) ([]error, error) {
	in := &sluicepb.ExtendRequest{Namespace: c.options.namespace}
	may := repeatable
	for _, one := range extensions {
		in.Items = append(in.Items, one.proto())
		if one.AddCost > 0 {
			may = once
		}
	}
	out := &sluicepb.ResultsResponse{}
	if err := c.call(ctx, sluicepb.Messages_Extend_FullMethodName, in, out, may, 0); err != nil {
		return nil, err
	}
	return itemErrors(out, &Error{Code: CodeAlreadySettled, Message: "the message was settled before"}), nil
}

func (e *Extension) proto() *sluicepb.Extension {
	made := &sluicepb.Extension{Receipt: e.Receipt, LeaseMs: millis(e.Lease), Checkpoint: e.Checkpoint, AddCost: given(e.AddCost)}
	if e.Progress != nil {
		made.Progress = &sluicepb.Report{Percent: &e.Progress.Percent, Note: given(valid(e.Progress.Note))}
	}
	return made
}

// itemErrors are the errors of the items; settled is that of one whose message was settled before.
func itemErrors(out *sluicepb.ResultsResponse, settled error) []error {
	errs := make([]error, len(out.Results))
	for i, result := range out.Results {
		switch {
		case result.AlreadySettled:
			errs[i] = settled
		case result.Error != nil:
			errs[i] = fromItem(result.Error)
		}
	}
	return errs
}

// firstError is the error of a call, else that of its only item.
func firstError(items []error, err error) error {
	if err != nil || len(items) == 0 {
		return err
	}
	return items[0]
}
