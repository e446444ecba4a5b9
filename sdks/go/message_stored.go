package sluice

import (
	"time"

	"github.com/sluice/sluice-go/sluicepb"
)

// messageOf is the message of a schedule, as it was put. What a schedule sends has no steps and no parents.
func messageOf(m *sluicepb.Message) Message {
	made := Message{
		Payload: m.Payload, ContentType: m.ContentType, Tags: m.Tags, Priority: m.GetPriority(),
		Delay: durationOf(m.DelayMs), MaxAttempts: m.GetMaxAttempts(), OrderingKey: m.OrderingKey,
		FairKey: m.FairKey, LimitKey: m.LimitKey, Cost: m.Cost, TTL: durationOf(m.TtlMs),
		ResultTTL: durationOf(m.ResultTtlMs), CorrelationID: m.CorrelationId, ReplyTo: m.ReplyTo,
		Hold: m.GetHold(),
	}
	for _, header := range m.Headers {
		made.Headers = append(made.Headers, Header{header.Name, header.Value})
	}
	if b := m.Backoff; b != nil {
		made.Backoff = &Backoff{b.GetKind(), durationOf(b.BaseMs), durationOf(b.CapMs), jitterOf(b)}
	}
	if u := m.Unique; u != nil {
		made.Unique = &Unique{u.Key, durationOf(u.WindowMs), u.GetUntil(), u.GetOnDuplicate()}
	}
	return made
}

// durationOf is the duration of milliseconds, 0 for none.
func durationOf(ms *uint64) time.Duration {
	if ms == nil {
		return 0
	}
	return time.Duration(*ms) * time.Millisecond
}

func jitterOf(b *sluicepb.Backoff) int {
	if b.JitterPercent != nil && *b.JitterPercent == 0 {
		return -1
	}
	return int(b.GetJitterPercent())
}
