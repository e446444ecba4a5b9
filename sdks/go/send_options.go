package sluice

import "time"

// SendOption changes a message that is sent, or the send itself.
type SendOption func(*outgoing)

// outgoing is what the options of a send change.
type outgoing struct {
	message        Message
	idempotencyKey string
}

// newMessage is a message with options, and the idempotency key among them.
func newMessage(payload []byte, opts []SendOption) (Message, string) {
	out := outgoing{message: Message{Payload: payload}}
	for _, opt := range opts {
		opt(&out)
	}
	return out.message, out.idempotencyKey
}

func onMessage(change func(*Message)) SendOption {
	return func(out *outgoing) { change(&out.message) }
}

// WithIdempotencyKey sets the key by which a repeat of this send is known for ten minutes. By default each
// send has a random one, for the repeats of the client itself.
func WithIdempotencyKey(key string) SendOption {
	return func(out *outgoing) { out.idempotencyKey = key }
}

// WithContentType sets the media type of the payload.
func WithContentType(mediaType string) SendOption {
	return onMessage(func(m *Message) { m.ContentType = mediaType })
}

// WithHeader adds a header.
func WithHeader(name, value string) SendOption {
	return onMessage(func(m *Message) { m.Headers = append(m.Headers, Header{name, value}) })
}

// WithTags adds tags.
func WithTags(tags ...string) SendOption {
	return onMessage(func(m *Message) { m.Tags = append(m.Tags, tags...) })
}

// WithPriority sets the priority, 0 to 9.
func WithPriority(priority uint32) SendOption {
	return onMessage(func(m *Message) { m.Priority = priority })
}

// WithDelay delays the message.
func WithDelay(d time.Duration) SendOption {
	return onMessage(func(m *Message) { m.Delay = d })
}

// WithDeliverAt sets the time at which the message is ready.
func WithDeliverAt(t time.Time) SendOption {
	return onMessage(func(m *Message) { m.DeliverAt = t })
}

// WithMaxAttempts sets the number of attempts before the message becomes a dead letter.
func WithMaxAttempts(attempts uint32) SendOption {
	return onMessage(func(m *Message) { m.MaxAttempts = attempts })
}

// WithBackoff sets the delay between attempts.
func WithBackoff(backoff Backoff) SendOption {
	return onMessage(func(m *Message) { m.Backoff = &backoff })
}

// WithOrderingKey puts the message in line with others of this key.
func WithOrderingKey(key string) SendOption {
	return onMessage(func(m *Message) { m.OrderingKey = key })
}

// WithFairKey sets the key by which messages are served in turn.
func WithFairKey(key string) SendOption {
	return onMessage(func(m *Message) { m.FairKey = key })
}

// WithLimitKey sets the key that counts against the limit of the queue.
func WithLimitKey(key string) SendOption {
	return onMessage(func(m *Message) { m.LimitKey = key })
}

// WithCost sets what counts instead of 1 in the rates of the limit that the queue follows, with each delivery.
func WithCost(cost uint32) SendOption {
	return onMessage(func(m *Message) { m.Cost = &cost })
}

// WithUnique allows one message with this key at a time.
func WithUnique(unique Unique) SendOption {
	return onMessage(func(m *Message) { m.Unique = &unique })
}

// WithTTL lets the message expire after this time if it still waits.
func WithTTL(d time.Duration) SendOption {
	return onMessage(func(m *Message) { m.TTL = d })
}

// WithExpiresAt lets the message expire at this time if it still waits.
func WithExpiresAt(t time.Time) SendOption {
	return onMessage(func(m *Message) { m.ExpiresAt = t })
}

// WithResultTTL keeps the result of the work for this time; see [Client.Result].
func WithResultTTL(d time.Duration) SendOption {
	return onMessage(func(m *Message) { m.ResultTTL = d })
}

// WithCorrelationID sets an id that the reply has as well.
func WithCorrelationID(id string) SendOption {
	return onMessage(func(m *Message) { m.CorrelationID = id })
}

// WithReplyTo names the queue that gets the result as a message.
func WithReplyTo(queue string) SendOption {
	return onMessage(func(m *Message) { m.ReplyTo = queue })
}

// WithHold holds the message until somebody approves it.
func WithHold() SendOption {
	return onMessage(func(m *Message) { m.Hold = true })
}

// WithDependsOn lets the message wait until these messages are done.
func WithDependsOn(ids ...string) SendOption {
	return onMessage(func(m *Message) { m.DependsOn = append(m.DependsOn, ids...) })
}

// WithChain adds steps that follow when the message is done.
func WithChain(steps ...Step) SendOption {
	return onMessage(func(m *Message) { m.Chain = append(m.Chain, steps...) })
}

// WithOnFailure sets the step that is sent when the message, or a step of its chain, fails.
func WithOnFailure(step Step) SendOption {
	return onMessage(func(m *Message) { m.OnFailure = &step })
}
