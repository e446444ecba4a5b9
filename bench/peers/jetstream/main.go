// Command jetstream puts a NATS JetStream work queue under the load of `sluice bench queue --rows main`: it
// sends messages from so many connections, then receives and acknowledges them all, and checks that each came
// exactly once. It prints one JSON object, whose keys are those of Sluice's benchmark with "jetstream" in
// place of "queue". With -rate it does what `sluice bench stream --rate N --batch 1` does instead, and its
// keys are those of that.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	stream      = "BENCH"
	subject     = "bench.queue"
	consumer    = "workers"
	numberBytes = 16                     // hexadecimal digits of a message's number, at the beginning of its payload
	fetchWait   = 200 * time.Millisecond // how long a fetch waits, so that an idle worker notices the end
	rateMax     = 10_000_000             // messages a second
	stalled     = 60 * time.Second       // without any progress for so long the run is given up
)

type settings struct {
	url      string
	messages int
	duration time.Duration
	payload  int
	workers  int
	batch    int
	rate     int // messages a second; 0: as many as can be
	memory   bool
	replicas int // copies of the stream and its consumer, on as many servers
}

func (s settings) storage() nats.StorageType {
	if s.memory {
		return nats.MemoryStorage
	}
	return nats.FileStorage
}

func (s settings) pacedFor() time.Duration {
	if s.duration > 0 {
		return s.duration
	}
	return 5 * time.Second
}

// ledger knows every message by its number.
type ledger struct {
	next      atomic.Int64
	sent      atomic.Int64
	acked     atomic.Int64
	twice     atomic.Int64
	seen      sync.Map // chunk number -> *[chunkSize]atomic.Bool
	lastAckNs atomic.Int64
	started   time.Time
}

const chunkSize = 1 << 16

type chunk [chunkSize]atomic.Bool

func (l *ledger) ack(number int64) {
	found, ok := l.seen.Load(number / chunkSize)
	if !ok {
		found, _ = l.seen.LoadOrStore(number/chunkSize, new(chunk))
	}
	if found.(*chunk)[number%chunkSize].Swap(true) {
		l.twice.Add(1)
		return
	}
	l.acked.Add(1)
	l.lastAckNs.Store(int64(time.Since(l.started)))
}

// connection is what one worker has for itself.
type connection struct {
	nats    *nats.Conn
	js      nats.JetStreamContext
	refused *atomic.Int64
}

func connect(s settings) (connection, error) {
	nc, err := nats.Connect(s.url)
	if err != nil {
		return connection{}, fmt.Errorf("connect to %s: %w", s.url, err)
	}
	refused := new(atomic.Int64)
	onError := func(nats.JetStream, *nats.Msg, error) { refused.Add(1) }
	js, err := nc.JetStream(nats.PublishAsyncMaxPending(s.batch), nats.PublishAsyncErrHandler(onError))
	return connection{nc, js, refused}, err
}

// prepare makes an empty work queue: a message leaves it when it is acknowledged.
func prepare(s settings) error {
	c, err := connect(s)
	if err != nil {
		return err
	}
	defer c.nats.Close()
	if err := c.js.DeleteStream(stream); err != nil && !errors.Is(err, nats.ErrStreamNotFound) {
		return fmt.Errorf("delete the stream: %w", err)
	}
	_, err = c.js.AddStream(&nats.StreamConfig{
		Name: stream, Subjects: []string{subject}, Retention: nats.WorkQueuePolicy, Storage: s.storage(),
		Replicas: s.replicas,
	})
	if err != nil {
		return fmt.Errorf("create the stream: %w", err)
	}
	_, err = c.js.AddConsumer(stream, &nats.ConsumerConfig{
		Durable: consumer, AckPolicy: nats.AckExplicitPolicy, MaxAckPending: 1 << 16,
		Replicas: s.replicas,
	})
	return err
}

// send publishes until the messages or the time are used up, with up to a batch unconfirmed, and waits for every
// confirmation. A publish waits by itself while a batch is unconfirmed.
func send(s settings, l *ledger, c connection) error {
	until := l.started.Add(s.duration)
	for s.duration == 0 || time.Now().Before(until) {
		number := l.next.Add(1) - 1
		if s.duration == 0 && number >= int64(s.messages) {
			break
		}
		if _, err := c.js.PublishAsync(subject, payload(s, number), nats.StallWait(stalled)); err != nil {
			return fmt.Errorf("publish: %w", err)
		}
		l.sent.Add(1)
	}
	return confirmed(c)
}

func confirmed(c connection) error {
	select {
	case <-c.js.PublishAsyncComplete():
	case <-time.After(stalled):
		return errors.New("publish: confirmations are missing")
	}
	if refused := c.refused.Load(); refused > 0 {
		return fmt.Errorf("publish: %d were refused", refused)
	}
	return nil
}

func payload(s settings, number int64) []byte {
	body := make([]byte, s.payload)
	copy(body, fmt.Sprintf("%0*x", numberBytes, number))
	for i := numberBytes; i < len(body); i++ {
		body[i] = '.'
	}
	return body
}

// work fetches and acknowledges until everything that was sent is.
func work(s settings, l *ledger, c connection) error {
	sub, err := c.js.PullSubscribe(subject, consumer, nats.Bind(stream, consumer))
	if err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	last := time.Now()
	for l.acked.Load() < l.sent.Load() {
		messages, err := sub.Fetch(s.batch, nats.MaxWait(fetchWait))
		if err != nil && !errors.Is(err, nats.ErrTimeout) {
			return fmt.Errorf("fetch: %w", err)
		}
		if len(messages) > 0 {
			last = time.Now()
		} else if time.Since(last) > stalled {
			return fmt.Errorf("nothing came for %v, with %d of %d acknowledged", stalled, l.acked.Load(), l.sent.Load())
		}
		for _, message := range messages {
			number, err := strconv.ParseInt(string(message.Data[:numberBytes]), 16, 64)
			if err != nil {
				return fmt.Errorf("a message that is not of this run: %w", err)
			}
			if err := message.Ack(); err != nil {
				return fmt.Errorf("ack: %w", err)
			}
			l.ack(number)
		}
	}
	return c.nats.Flush()
}

// all runs one loop for each worker, on connections made before the clock starts, and tells how long they took.
func all(s settings, l *ledger, loop func(connection) error) (time.Duration, error) {
	connections := make([]connection, s.workers)
	for i := range connections {
		c, err := connect(s)
		if err != nil {
			return 0, err
		}
		defer c.nats.Close()
		connections[i] = c
	}
	failures := make(chan error, s.workers)
	l.started = time.Now()
	for _, c := range connections {
		go func() { failures <- loop(c) }()
	}
	for range connections {
		if err := <-failures; err != nil {
			return 0, err
		}
	}
	return time.Since(l.started), nil
}

func run(s settings) (map[string]any, error) {
	if err := prepare(s); err != nil {
		return nil, err
	}
	l := &ledger{}
	sending, err := all(s, l, func(c connection) error { return send(s, l, c) })
	if err != nil {
		return nil, err
	}
	if _, err := all(s, l, func(c connection) error { return work(s, l, c) }); err != nil {
		return nil, err
	}
	if l.acked.Load() != l.sent.Load() || l.twice.Load() > 0 {
		return nil, fmt.Errorf("%d sent, %d acknowledged, %d of them twice", l.sent.Load(), l.acked.Load(), l.twice.Load())
	}
	perSecond := func(d time.Duration) float64 { return float64(l.sent.Load()) / d.Seconds() }
	return map[string]any{
		"jetstream.messages":   l.sent.Load(),
		"jetstream.send_per_s": perSecond(sending),
		// The last fetches wait for nothing: the phase ended with the last acknowledgement.
		"jetstream.work_per_s": perSecond(time.Duration(l.lastAckNs.Load())),
	}, nil
}

func main() {
	var s settings
	flag.StringVar(&s.url, "url", "nats://127.0.0.1:4222", "server, or several of one cluster, separated by commas")
	flag.IntVar(&s.messages, "messages", 200_000, "messages to move")
	flag.DurationVar(&s.duration, "seconds", 0, "send for so long instead, as in 30s")
	flag.IntVar(&s.payload, "payload", 128, "bytes of a payload, at least 16")
	flag.IntVar(&s.workers, "workers", 8, "connections")
	flag.IntVar(&s.batch, "batch", 64, "messages of a fetch, and unconfirmed publishes of a connection")
	flag.IntVar(&s.rate, "rate", 0, "instead: single messages a second, at even distances, for 5 s or -seconds")
	flag.BoolVar(&s.memory, "memory", false, "keep the stream in memory")
	flag.IntVar(&s.replicas, "replicas", 1, "copies of the stream and its consumer, on as many servers")
	flag.Parse()
	if s.payload < numberBytes || s.workers < 1 || s.batch < 1 || s.messages < 1 || s.rate < 0 || s.rate > rateMax {
		fmt.Fprintln(os.Stderr, "jetstream: --payload must be at least 16, --rate 0 to 10,000,000, the others 1 or more")
		os.Exit(2)
	}
	measure := run
	if s.rate > 0 {
		measure = runPaced
	}
	found, err := measure(s)
	if err != nil {
		fmt.Fprintln(os.Stderr, "jetstream:", err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		fmt.Fprintln(os.Stderr, "jetstream:", err)
		os.Exit(1)
	}
}
