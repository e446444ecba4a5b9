package sluice

import (
	"time"

	"github.com/sluice/sluice-go/sluicepb"
)

// Delivery is a message as its consumer receives it.
type Delivery struct {
	ID string
	// Receipt is the proof of this delivery: it settles the message.
	Receipt     string
	Queue       string
	Payload     []byte
	ContentType string
	Headers     []Header
	Tags        []string
	Priority    uint32
	// Attempt is the number of the attempt, from 1, of at most MaxAttempts.
	Attempt, MaxAttempts uint32
	// Deliveries counts those that were no attempts, too.
	Deliveries uint32
	SentAt     time.Time
	// LeaseUntil is the end of the lease as it was delivered.
	LeaseUntil time.Time
	// FromQueue and Reason are those of a dead letter from another queue.
	FromQueue, Reason string
	CorrelationID     string
	ReplyTo           string
	// Checkpoint is what an earlier attempt has left; nil if there is none.
	Checkpoint []byte
}

// Header returns the value of a header, empty if there is none.
func (d *Delivery) Header(name string) string {
	for _, header := range d.Headers {
		if header.Name == name {
			return header.Value
		}
	}
	return ""
}

func deliveryOf(m *sluicepb.Delivered) Delivery {
	made := Delivery{
		ID: m.Id, Receipt: m.Receipt, Queue: m.Queue, Payload: m.Payload, ContentType: m.ContentType,
		Tags: m.Tags, Priority: m.Priority, Attempt: m.Attempt, MaxAttempts: m.MaxAttempts,
		Deliveries: m.Deliveries, SentAt: timeOf(m.SentAtMs), LeaseUntil: timeOf(m.LeaseUntilMs),
		FromQueue: m.FromQueue, Reason: m.Reason, CorrelationID: m.CorrelationId, ReplyTo: m.ReplyTo,
		Checkpoint: m.Checkpoint,
	}
	if len(m.Headers) > 0 {
		made.Headers = make([]Header, len(m.Headers))
	}
	for i, header := range m.Headers {
		made.Headers[i] = Header{header.Name, header.Value}
	}
	return made
}

func deliveriesOf(messages []*sluicepb.Delivered) []*Delivery {
	made := make([]*Delivery, 0, len(messages))
	for _, message := range messages {
		delivery := deliveryOf(message)
		made = append(made, &delivery)
	}
	return made
}
