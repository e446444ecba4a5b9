package sluice

import (
	"context"

	"github.com/sluice/sluice-go/sluicepb"
)

// Sent is what came of a send.
type Sent struct {
	// IDs has the id of each message, in order; for a duplicate by its unique key that of the first one.
	IDs []string
	// Duplicate is true if the send was made before with its idempotency key.
	Duplicate bool
	// Duplicates are the indexes of messages whose unique keys were taken.
	Duplicates []int
}

// Send sends a message to a queue, which is created if it does not exist. It returns the id of the message,
// once the server has stored it.
func (c *Client) Send(ctx context.Context, queue string, payload []byte, opts ...SendOption) (string, error) {
	message, key := newMessage(payload, opts)
	sent, err := c.send(ctx, queue, []Message{message}, key)
	if err != nil {
		return "", err
	}
	return sent.IDs[0], nil
}

// SendMany sends up to 10,000 messages to a queue, all or none, next to each other in this order. Of the
// options only [WithIdempotencyKey] is for the send as a whole: the others belong into the messages.
func (c *Client) SendMany(
	ctx context.Context, queue string, messages []Message, opts ...SendOption,
) (*Sent, error) {
	_, key := newMessage(nil, opts)
	return c.send(ctx, queue, messages, key)
}

func (c *Client) send(ctx context.Context, queue string, messages []Message, key string) (*Sent, error) {
	in := &sluicepb.SendRequest{
		Namespace: c.options.namespace, Queue: queue, IdempotencyKey: orElse(key, newKey()),
	}
	for i := range messages {
		if err := messages[i].check(); err != nil {
			return nil, err
		}
		in.Messages = append(in.Messages, messages[i].proto(c.inject(ctx, messages[i].Headers)))
	}
	out := &sluicepb.SendResponse{}
	if err := c.call(ctx, sluicepb.Messages_Send_FullMethodName, in, out, repeatable, 0); err != nil {
		return nil, err
	}
	return &Sent{IDs: out.Ids, Duplicate: out.Duplicate, Duplicates: indexes(out.Duplicates)}, nil
}

func indexes(of []uint32) []int {
	var made []int
	for _, index := range of {
		made = append(made, int(index))
	}
	return made
}
