package sluicetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/sluice/sluice-go"
	"github.com/sluice/sluice-go/sluicepb"
)

// Sent is a message that a client has sent: by itself, in a group, or by a transaction that was committed.
type Sent struct {
	Queue       string
	Payload     []byte
	ContentType string
	Headers     map[string]string
	Tags        []string
	Priority    uint32
	Delay       time.Duration
}

// Recorder records what clients send that are made with its option.
type Recorder struct {
	mu   sync.Mutex
	sent []Sent
	// staged is what open transactions would send, by their ids.
	staged map[string][]Sent
}

// NewRecorder is a recorder that has recorded nothing.
func NewRecorder() *Recorder { return &Recorder{staged: map[string][]Sent{}} }

// Option is for the client whose sends are recorded.
func (r *Recorder) Option() sluice.Option {
	return sluice.WithDialOptions(grpc.WithChainUnaryInterceptor(r.intercept))
}

// Sent returns what was sent to a queue, in order.
func (r *Recorder) Sent(queue string) []Sent {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []Sent
	for _, one := range r.sent {
		if one.Queue == queue {
			found = append(found, one)
		}
	}
	return found
}

// Condition is what a message has to be like.
type Condition struct {
	text  string
	holds func(Sent) bool
}

// Payload is true of messages with this payload.
func Payload(text string) Condition {
	return Condition{fmt.Sprintf("payload %q", text), func(s Sent) bool { return string(s.Payload) == text }}
}

// Contains is true of messages whose payload contains a text.
func Contains(text string) Condition {
	return Condition{fmt.Sprintf("a payload with %q", text), func(s Sent) bool {
		return strings.Contains(string(s.Payload), text)
	}}
}

// Header is true of messages with this header.
func Header(name, value string) Condition {
	return Condition{fmt.Sprintf("header %s: %s", name, value), func(s Sent) bool {
		return s.Headers[name] == value
	}}
}

// Matching is true of messages of which f is.
func Matching(text string, f func(Sent) bool) Condition { return Condition{text, f} }

// AssertSent fails the test unless a message of which all conditions are true was sent to the queue.
func (r *Recorder) AssertSent(t testing.TB, queue string, conditions ...Condition) {
	t.Helper()
	sent := r.Sent(queue)
	for _, one := range sent {
		if all(one, conditions) {
			return
		}
	}
	var wanted []string
	for _, condition := range conditions {
		wanted = append(wanted, condition.text)
	}
	t.Errorf("no message was sent to %q with %s; there are %d: %+v",
		queue, strings.Join(wanted, " and "), len(sent), sent)
}

// AssertNotSent fails the test if a message of which all conditions are true was sent to the queue.
func (r *Recorder) AssertNotSent(t testing.TB, queue string, conditions ...Condition) {
	t.Helper()
	for _, one := range r.Sent(queue) {
		if all(one, conditions) {
			t.Errorf("a message was sent to %q: %+v", queue, one)
		}
	}
}

func all(one Sent, conditions []Condition) bool {
	for _, condition := range conditions {
		if !condition.holds(one) {
			return false
		}
	}
	return true
}

// intercept records the calls that succeed. A repeat of the client is within one call of its own, of which
// the last try alone succeeds.
func (r *Recorder) intercept(
	ctx context.Context, method string, in, out any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	if err := invoke(ctx, method, in, out, conn, opts...); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch request := in.(type) {
	case *sluicepb.SendRequest:
		for _, message := range request.Messages {
			r.sent = append(r.sent, sentOf(request.Queue, message))
		}
	case *sluicepb.SendGroupRequest:
		callback := []*sluicepb.GroupMessage{request.Callback}
		for _, message := range slices.Concat(request.Messages.GetValues(), callback) {
			r.sent = append(r.sent, sentOf(message.Queue, message))
		}
	case *sluicepb.CommitTransactionRequest:
		r.sent = append(r.sent, sends(request.Operations)...)
	case *sluicepb.StageTransactionRequest:
		staged := append(r.staged[request.Transaction], sends(request.Operations)...)
		r.staged[request.Transaction] = staged
	case *sluicepb.CloseTransactionRequest:
		r.sent = append(r.sent, r.staged[request.Transaction]...)
		delete(r.staged, request.Transaction)
	case *sluicepb.RollbackTransactionRequest:
		delete(r.staged, request.Transaction)
	}
	return nil
}

func sends(operations []*sluicepb.TransactionOperation) []Sent {
	var found []Sent
	for _, operation := range operations {
		if operation.Send != nil {
			found = append(found, sentOf(operation.Send.Queue, operation.Send))
		}
	}
	return found
}

// message is what the messages of a send and of a group have in common.
type message interface {
	GetPayload() []byte
	GetContentType() string
	GetHeaders() []*sluicepb.Header
	GetTags() []string
	GetPriority() uint32
	GetDelayMs() uint64
}

func sentOf(queue string, m message) Sent {
	headers := map[string]string{}
	for _, header := range m.GetHeaders() {
		headers[header.Name] = header.Value
	}
	return Sent{
		Queue: queue, Payload: m.GetPayload(), ContentType: m.GetContentType(), Headers: headers,
		Tags: m.GetTags(), Priority: m.GetPriority(), Delay: time.Duration(m.GetDelayMs()) * time.Millisecond,
	}
}
