package sluice

import (
	"context"
	"time"

	"github.com/sluice/sluice-go/sluicepb"
)

// ReceiveOption changes a receive.
type ReceiveOption func(*receiving)

type receiving struct {
	request sluicepb.ReceiveRequest
	wait    time.Duration
}

// ReceiveMax sets how many messages come at most (default 1, at most 1,000).
func ReceiveMax(messages int) ReceiveOption {
	return func(r *receiving) { r.request.Max = given(uint32(messages)) }
}

// ReceiveWait sets how long to wait for the first message, up to a minute (default: not at all).
func ReceiveWait(d time.Duration) ReceiveOption {
	return func(r *receiving) { r.request.WaitMs, r.wait = millis(d), d }
}

// ReceiveLease sets the lease of the messages (default: the queue's).
func ReceiveLease(d time.Duration) ReceiveOption {
	return func(r *receiving) { r.request.LeaseMs = millis(d) }
}

// ReceiveAs names the consumer, for lists.
func ReceiveAs(name string) ReceiveOption {
	return func(r *receiving) { r.request.Consumer = given(name) }
}

// ReceiveAlso adds queues, which are tried in their order.
func ReceiveAlso(queues ...string) ReceiveOption {
	return func(r *receiving) { r.add(queues...) }
}

func (r *receiving) add(queues ...string) {
	for _, queue := range queues {
		r.request.Queues = append(r.request.Queues, &sluicepb.WeightedQueue{Name: queue})
	}
}

// Receive takes messages from a queue; none if nothing is there. Each is to be settled before its lease ends.
// A [Worker] does all of this by itself.
//
// Where the answer to a receive is lost, and it is made again, the messages of the first one come back when
// their leases end.
func (c *Client) Receive(ctx context.Context, queue string, opts ...ReceiveOption) ([]*Delivery, error) {
	out, err := c.receive(ctx, queue, opts, "", repeatable)
	if err != nil {
		return nil, err
	}
	return deliveriesOf(out.Messages), nil
}

func (c *Client) receive(
	ctx context.Context, queue string, opts []ReceiveOption, transaction string, may safety,
) (*sluicepb.ReceiveResponse, error) {
	r := &receiving{}
	r.add(queue)
	for _, opt := range opts {
		opt(r)
	}
	r.request.Namespace, r.request.Transaction = c.options.namespace, given(transaction)
	out := &sluicepb.ReceiveResponse{}
	err := c.call(ctx, sluicepb.Messages_Receive_FullMethodName, &r.request, out, may, r.wait)
	return out, err
}
