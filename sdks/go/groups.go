package sluice

import (
	"context"

	"github.com/sluice/sluice-go/sluicepb"
)

// SentGroup is what came of sending a group.
type SentGroup struct {
	// Group is the id of the group, which is that of its callback.
	Group string
	// IDs has the id of each message, in order.
	IDs []string
	// Duplicate is true if the group was sent before with its idempotency key.
	Duplicate bool
}

// SendGroup sends messages, and a callback that is delivered when all of them have ended; all or none. Of the
// options only [WithIdempotencyKey] is for the group as a whole: the others belong into the messages.
func (c *Client) SendGroup(
	ctx context.Context, messages []Step, callback Step, opts ...SendOption,
) (*SentGroup, error) {
	for _, one := range append(messages[:len(messages):len(messages)], callback) {
		if err := one.check(); err != nil {
			return nil, err
		}
	}
	_, key := newMessage(nil, opts)
	in := &sluicepb.SendGroupRequest{
		Namespace:      c.options.namespace,
		IdempotencyKey: orElse(key, newKey()),
		Messages:       &sluicepb.GroupMessageList{},
		Callback:       callback.groupMessage(c.inject(ctx, callback.Headers)),
	}
	for i := range messages {
		one := messages[i].groupMessage(c.inject(ctx, messages[i].Headers))
		in.Messages.Values = append(in.Messages.Values, one)
	}
	out := &sluicepb.SendGroupResponse{}
	if err := c.call(ctx, sluicepb.Messages_SendGroup_FullMethodName, in, out, repeatable, 0); err != nil {
		return nil, err
	}
	return &SentGroup{out.Group, out.Ids, out.Duplicate}, nil
}

// GroupProgress is how far a group has come.
type GroupProgress struct {
	// Pending messages have not ended, Done ones are done, Dead ones are dead letters or gone.
	Pending, Done, Dead uint64
	// Callback is the state of the callback.
	Callback string
}

// Group returns how far a group has come.
func (c *Client) Group(ctx context.Context, group string) (*GroupProgress, error) {
	in := &sluicepb.GetGroupRequest{Namespace: c.options.namespace, Group: group}
	out := &sluicepb.Group{}
	if err := c.call(ctx, sluicepb.Messages_GetGroup_FullMethodName, in, out, repeatable, 0); err != nil {
		return nil, err
	}
	return &GroupProgress{out.Pending, out.Done, out.Dead, out.Callback}, nil
}
