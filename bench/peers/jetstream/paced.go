package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	credit         = 512 // messages that a consumer pulls ahead, as a session's window in Sluice's benchmark
	setTimerSlack  = 29  // PR_SET_TIMERSLACK of prctl(2)
	lookEvery      = 5 * time.Millisecond
	unconfirmedMax = 1 << 20 // an open loop sends on, however many publishes are unconfirmed
)

// pace tells when messages are due: at even distances, those of the publishers in turns.
type pace struct {
	messages int64
	distance time.Duration
	began    time.Time
}

func (p pace) due(number int64) time.Time {
	return p.began.Add(time.Duration(number) * p.distance)
}

// keep hands each publisher the numbers of its messages when they are due. It has a thread to itself, whose
// sleeps end as exactly as the clock is: those of Go's runtime may end a millisecond late.
func (p pace) keep(publishers []chan int64) {
	runtime.LockOSThread()
	// Without it the figures are a little worse, and still true.
	syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, 1, 0)
	for number := range p.messages {
		if early := time.Until(p.due(number)); early > 0 {
			sleep := syscall.NsecToTimespec(int64(early))
			_ = syscall.Nanosleep(&sleep, nil)
		}
		publishers[number%int64(len(publishers))] <- number
	}
	for _, publisher := range publishers {
		close(publisher)
	}
}

// reader takes messages as they come and acknowledges each by itself.
type reader struct {
	pace     *pace
	ledger   *ledger
	took     []time.Duration // from when a message was due to its delivery
	failures chan<- error
}

func (r *reader) read(message jetstream.Msg) {
	now := time.Now()
	number, err := strconv.ParseInt(string(message.Data()[:numberBytes]), 16, 64)
	if err != nil {
		r.fail(fmt.Errorf("a message that is not of this run: %w", err))
		return
	}
	r.took = append(r.took, now.Sub(r.pace.due(number)))
	if err := message.Ack(); err != nil {
		r.fail(fmt.Errorf("ack: %w", err))
		return
	}
	r.ledger.ack(number)
}

// fail tells the first failure; others of the same run say no more.
func (r *reader) fail(err error) {
	select {
	case r.failures <- err:
	default:
	}
}

func (r *reader) begin(c connection) (jetstream.ConsumeContext, error) {
	js, err := jetstream.New(c.nats)
	if err != nil {
		return nil, err
	}
	found, err := js.Consumer(context.Background(), stream, consumer)
	if err != nil {
		return nil, fmt.Errorf("consumer: %w", err)
	}
	return found.Consume(r.read, jetstream.PullMaxMessages(credit))
}

// runPaced publishes single messages at a fixed rate and takes them with continuous pulls, at once.
func runPaced(s settings) (map[string]any, error) {
	if err := prepare(s); err != nil {
		return nil, err
	}
	distance := time.Second / time.Duration(s.rate)
	p := &pace{messages: int64((s.pacedFor() + distance - 1) / distance), distance: distance}
	l, failures := &ledger{}, make(chan error, 1)
	readers := make([]*reader, s.workers)
	for i := range readers {
		c, err := connect(s)
		if err != nil {
			return nil, err
		}
		defer c.nats.Close()
		readers[i] = &reader{pace: p, ledger: l, failures: failures}
		consuming, err := readers[i].begin(c)
		if err != nil {
			return nil, err
		}
		defer consuming.Stop()
	}
	if err := publishAll(s, p, l); err != nil {
		return nil, err
	}
	if err := untilAcked(l, failures); err != nil {
		return nil, err
	}
	return pacedFigures(l, readers), nil
}

// publishAll publishes every message when it is due, and waits for the confirmations.
func publishAll(s settings, p *pace, l *ledger) error {
	s.batch = unconfirmedMax
	publishers := make([]chan int64, s.workers)
	connections := make([]connection, s.workers)
	for i := range publishers {
		c, err := connect(s)
		if err != nil {
			return err
		}
		defer c.nats.Close()
		// Room for all, so that no publisher holds up the others.
		connections[i], publishers[i] = c, make(chan int64, p.messages/int64(s.workers)+1)
	}
	p.began = time.Now()
	l.started = p.began
	go p.keep(publishers)
	failures := make([]error, s.workers)
	var group sync.WaitGroup
	for i, c := range connections {
		group.Go(func() { failures[i] = publishDue(s, l, c, publishers[i]) })
	}
	group.Wait()
	return errors.Join(failures...)
}

func publishDue(s settings, l *ledger, c connection, due <-chan int64) error {
	for number := range due {
		if _, err := c.js.PublishAsync(subject, payload(s, number)); err != nil {
			return fmt.Errorf("publish: %w", err)
		}
		l.sent.Add(1)
	}
	return confirmed(c)
}

func untilAcked(l *ledger, failures <-chan error) error {
	last, before := time.Now(), int64(-1)
	for l.acked.Load() < l.sent.Load() {
		select {
		case err := <-failures:
			return err
		case <-time.After(lookEvery):
		}
		if acked := l.acked.Load(); acked != before {
			last, before = time.Now(), acked
		} else if time.Since(last) > stalled {
			return fmt.Errorf("nothing came for %v, with %d of %d acknowledged", stalled, acked, l.sent.Load())
		}
	}
	if l.twice.Load() > 0 {
		return fmt.Errorf("%d of %d were acknowledged twice", l.twice.Load(), l.sent.Load())
	}
	return nil
}

func pacedFigures(l *ledger, readers []*reader) map[string]any {
	var took []time.Duration
	for _, r := range readers {
		took = append(took, r.took...)
	}
	slices.Sort(took)
	at := func(share float64) float64 {
		return float64(took[int(share*float64(len(took)-1))].Nanoseconds()) / 1e3
	}
	return map[string]any{
		"jetstream.messages":    l.sent.Load(),
		"jetstream.p50_us":      at(0.50),
		"jetstream.p99_us":      at(0.99),
		"jetstream.paced_per_s": float64(l.acked.Load()) / time.Duration(l.lastAckNs.Load()).Seconds(),
	}
}
