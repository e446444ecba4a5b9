package sluice

import (
	"fmt"
	"time"

	"github.com/sluice/sluice-go/sluicepb"
)

// Header is a header of a message. Names are unique within a message.
type Header struct{ Name, Value string }

// Message is a message to send. Fields that are empty take the defaults of the queue.
type Message struct {
	// Payload is any bytes, up to 1 MiB.
	Payload []byte
	// ContentType is kept with the payload, and not interpreted.
	ContentType string
	Headers     []Header
	// Tags select messages, up to 16.
	Tags []string
	// Priority is 0 to 9, higher first.
	Priority uint32
	// Delay, or DeliverAt, is when the message is ready.
	Delay     time.Duration
	DeliverAt time.Time
	// MaxAttempts is the number of attempts before the message becomes a dead letter.
	MaxAttempts uint32
	Backoff     *Backoff
	// OrderingKey: of the messages with this key one is in flight at a time, in the order of sending.
	OrderingKey string
	// FairKey: messages of different keys are served in turn.
	FairKey string
	// LimitKey counts against the limit per key that the queue follows.
	LimitKey string
	// Cost counts instead of 1 in the rates of the limit that the queue follows, with each delivery; nil: 1.
	Cost   *uint32
	Unique *Unique
	// TTL, or ExpiresAt, is when the message expires if it still waits.
	TTL       time.Duration
	ExpiresAt time.Time
	// ResultTTL is how long the result of the work is kept.
	ResultTTL time.Duration
	// CorrelationID is passed on to the reply.
	CorrelationID string
	// ReplyTo is the queue that gets the result as a message.
	ReplyTo string
	// Hold: the message waits until somebody approves it.
	Hold bool
	// DependsOn are ids of messages to wait for; "#0" is the first message of the same send.
	DependsOn []string
	// DependsAny: wait for any of them, not for all.
	DependsAny bool
	// OnParentFailed is what happens if one of them fails: "cancel" (default), "hold" or "run".
	OnParentFailed string
	// Chain are the steps that follow when the message is done.
	Chain []Step
	// OnFailure is sent when the message, or a step of its chain, fails.
	OnFailure *Step
}

// Step is a message with its queue: a step of a chain, or a message of a group. A step of a chain has no
// unique key, no parents and no steps of its own; if its Payload is nil, its payload is the result of the
// step before.
type Step struct {
	Queue string
	Message
}

// NewStep is a message with its queue.
func NewStep(queue string, payload []byte, opts ...SendOption) Step {
	message, _ := newMessage(payload, opts)
	return Step{queue, message}
}

// Backoff is the delay between attempts.
type Backoff struct {
	// Kind is "none", "fixed", "linear" or "exponential".
	Kind string
	// Base is the delay after the first attempt, and Cap the longest one.
	Base, Cap time.Duration
	// JitterPercent varies the delay at random; 0: by the default of 10, negative: not at all.
	JitterPercent int
}

// Unique allows one message of a queue with its key at a time.
type Unique struct {
	Key string
	// Window is how long the key counts at most (default one day).
	Window time.Duration
	// Until is when the key becomes free: "gone" (default) or "window".
	Until string
	// OnDuplicate is what a duplicate does: "keep" (default), "replace_payload" or "debounce".
	OnDuplicate string
}

// proto is the message for the wire, its headers given apart.
func (m *Message) proto(headers []Header) *sluicepb.Message {
	return &sluicepb.Message{
		Payload:        m.Payload,
		ContentType:    m.ContentType,
		Headers:        headersProto(headers),
		Tags:           m.Tags,
		Priority:       given(m.Priority),
		DelayMs:        millis(m.Delay),
		DeliverAtMs:    millisAt(m.DeliverAt),
		MaxAttempts:    given(m.MaxAttempts),
		Backoff:        m.Backoff.proto(),
		OrderingKey:    m.OrderingKey,
		FairKey:        m.FairKey,
		LimitKey:       m.LimitKey,
		Cost:           m.Cost,
		Unique:         m.Unique.proto(),
		TtlMs:          millis(m.TTL),
		ExpiresAtMs:    millisAt(m.ExpiresAt),
		ResultTtlMs:    millis(m.ResultTTL),
		CorrelationId:  m.CorrelationID,
		ReplyTo:        m.ReplyTo,
		Hold:           given(m.Hold),
		DependsOn:      m.DependsOn,
		DependsMode:    m.dependsMode(),
		OnParentFailed: given(m.OnParentFailed),
		Chain:          chainProto(m.Chain),
		OnFailure:      m.OnFailure.proto(),
	}
}

func (m *Message) dependsMode() *string {
	if m.DependsAny {
		return given("any")
	}
	return nil
}

// groupMessage is the message for a group or a transaction, its headers given apart.
func (s *Step) groupMessage(headers []Header) *sluicepb.GroupMessage {
	m := s.Message.proto(headers)
	return &sluicepb.GroupMessage{
		Queue: s.Queue, Payload: m.Payload, ContentType: m.ContentType, Headers: m.Headers, Tags: m.Tags,
		Priority: m.Priority, DelayMs: m.DelayMs, DeliverAtMs: m.DeliverAtMs, MaxAttempts: m.MaxAttempts,
		Backoff: m.Backoff, OrderingKey: m.OrderingKey, FairKey: m.FairKey, LimitKey: m.LimitKey,
		Cost: m.Cost, Unique: m.Unique, TtlMs: m.TtlMs, ExpiresAtMs: m.ExpiresAtMs, ResultTtlMs: m.ResultTtlMs,
		CorrelationId: m.CorrelationId, ReplyTo: m.ReplyTo, Hold: m.Hold, DependsOn: m.DependsOn,
		DependsMode: m.DependsMode, OnParentFailed: m.OnParentFailed, Chain: m.Chain, OnFailure: m.OnFailure,
	}
}

// check refuses steps with what a step cannot have, and what would be lost on the way.
func (m *Message) check() error {
	steps := m.Chain
	if m.OnFailure != nil {
		steps = append(steps[:len(steps):len(steps)], *m.OnFailure)
	}
	for _, s := range steps {
		depends := len(s.DependsOn) > 0 || s.DependsAny || s.OnParentFailed != ""
		if s.Unique != nil || depends || len(s.Chain) > 0 || s.OnFailure != nil {
			const text = "sluice: the step for %q has a unique key, parents or steps of its own"
			return fmt.Errorf(text, s.Queue)
		}
	}
	return nil
}

// proto is the step of a chain.
func (s *Step) proto() *sluicepb.Step {
	if s == nil {
		return nil
	}
	m := s.Message.proto(s.Headers)
	return &sluicepb.Step{
		Queue: s.Queue, Payload: m.Payload, ContentType: m.ContentType, Headers: m.Headers, Tags: m.Tags,
		Priority: m.Priority, DelayMs: m.DelayMs, DeliverAtMs: m.DeliverAtMs, MaxAttempts: m.MaxAttempts,
		Backoff: m.Backoff, OrderingKey: m.OrderingKey, FairKey: m.FairKey, LimitKey: m.LimitKey,
		Cost: m.Cost, TtlMs: m.TtlMs, ExpiresAtMs: m.ExpiresAtMs, ResultTtlMs: m.ResultTtlMs,
		CorrelationId: m.CorrelationId, ReplyTo: m.ReplyTo, Hold: m.Hold,
	}
}

func chainProto(steps []Step) []*sluicepb.Step {
	var made []*sluicepb.Step
	for i := range steps {
		made = append(made, steps[i].proto())
	}
	return made
}

func (b *Backoff) proto() *sluicepb.Backoff {
	if b == nil {
		return nil
	}
	made := &sluicepb.Backoff{Kind: given(b.Kind), BaseMs: millis(b.Base), CapMs: millis(b.Cap)}
	if b.JitterPercent != 0 {
		percent := uint32(max(b.JitterPercent, 0))
		made.JitterPercent = &percent
	}
	return made
}

func (u *Unique) proto() *sluicepb.Unique {
	if u == nil {
		return nil
	}
	return &sluicepb.Unique{
		Key: u.Key, WindowMs: millis(u.Window), Until: given(u.Until), OnDuplicate: given(u.OnDuplicate),
	}
}

func headersProto(headers []Header) []*sluicepb.Header {
	var made []*sluicepb.Header
	for _, header := range headers {
		made = append(made, &sluicepb.Header{Name: header.Name, Value: header.Value})
	}
	return made
}

// given is nil for a value that is empty: the field is not sent.
func given[T comparable](value T) *T {
	var empty T
	if value == empty {
		return nil
	}
	return &value
}

// millis is a duration in milliseconds, rounded up; nil for none.
func millis(d time.Duration) *uint64 {
	if d <= 0 {
		return nil
	}
	return given(uint64((d + time.Millisecond - 1) / time.Millisecond))
}

// millisAt is a time in milliseconds since the Unix epoch; nil for none.
func millisAt(t time.Time) *uint64 {
	if t.IsZero() {
		return nil
	}
	return given(uint64(t.UnixMilli()))
}

// timeOf is the time of milliseconds since the Unix epoch; zero for none.
func timeOf(ms uint64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(ms))
}
