// Command bench sends and works through one queue, over the SDK for Go or over nats.go with JetStream. It
// prints one JSON object with the messages a second of both, and this process's processor time for each;
// scripts/bench-sdks starts the servers.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/sluice/sluice-go"
)

const (
	digits  = 16 // decimal digits at the beginning of each payload
	queue   = "bench"
	stalled = 5 * time.Minute
)

var (
	system   = flag.String("system", "", "sluice or jetstream")
	url      = flag.String("url", "", "address of the server")
	messages = flag.Int("messages", 0, "messages in all")
	payload  = flag.Int("payload", 0, "bytes of a payload")
	window   = flag.Int("window", 0, "messages that are not confirmed, or held")
	batch    = flag.Int("batch", 0, "messages of a request")
)

// ledger knows which messages have come, by their numbers.
type ledger struct {
	seen        []atomic.Bool
	left, twice atomic.Int64
	done        chan struct{}
}

func (l *ledger) came(content []byte) {
	number, err := strconv.Atoi(string(content[:digits]))
	if err != nil || l.seen[number].Swap(true) {
		l.twice.Add(1)
	} else if l.left.Add(-1) == 0 {
		close(l.done)
	}
}

func (l *ledger) wait() error {
	select {
	case <-l.done:
		return nil
	case <-time.After(stalled):
		return fmt.Errorf("%d messages have not come", l.left.Load())
	}
}

func main() {
	flag.Parse()
	l := &ledger{seen: make([]atomic.Bool, *messages), done: make(chan struct{})}
	l.left.Store(int64(*messages))
	run := withSluice
	if *system == "jetstream" {
		run = withJetStream
	}
	figures := map[string]float64{}
	err := run(context.Background(), l, func(phase string, work func() error) error {
		began, cpuBegan := time.Now(), cpuMicros()
		err := work()
		figures[phase+"_per_s"] = float64(*messages) / time.Since(began).Seconds()
		figures[phase+"_cpu_us"] = float64(cpuMicros()-cpuBegan) / float64(*messages)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	figures["missing"], figures["twice"] = float64(l.left.Load()), float64(l.twice.Load())
	_ = json.NewEncoder(os.Stdout).Encode(figures)
}

// cpuMicros is the processor time of this process so far, in microseconds.
func cpuMicros() int64 {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return (used.Utime.Sec+used.Stime.Sec)*1e6 + used.Utime.Usec + used.Stime.Usec
}

// senders sends all messages in batches, as many at a time as the window has.
func senders(send func(payloads [][]byte) error) error {
	filler := strings.Repeat("x", *payload-digits)
	var next atomic.Int64
	var all sync.WaitGroup
	errs := make(chan error, *window / *batch)
	for range *window / *batch {
		all.Go(func() {
			for {
				first := int(next.Add(int64(*batch))) - *batch
				if first >= *messages {
					return
				}
				payloads := make([][]byte, min(*batch, *messages-first))
				for i := range payloads {
					payloads[i] = fmt.Appendf(nil, "%0*d%s", digits, first+i, filler)
				}
				if err := send(payloads); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(errs)
	return <-errs
}

func withSluice(ctx context.Context, l *ledger, timed func(string, func() error) error) error {
	client, err := sluice.New(sluice.WithServers(*url))
	if err != nil {
		return err
	}
	defer client.Close()
	err = timed("send", func() error {
		return senders(func(payloads [][]byte) error {
			batch := make([]sluice.Message, len(payloads))
			for i, content := range payloads {
				batch[i].Payload = content
			}
			_, err := client.SendMany(ctx, queue, batch)
			return err
		})
	})
	if err != nil {
		return err
	}
	return timed("work", func() error {
		handle := func(_ context.Context, job *sluice.Job) error {
			l.came(job.Payload)
			return nil
		}
		ctx, stop := context.WithCancel(ctx)
		worker := client.NewWorker(queue, handle,
			sluice.WorkerConcurrency(*batch), sluice.WorkerPrefetch(*window-*batch))
		ended := make(chan error, 1)
		go func() { ended <- worker.Run(ctx) }()
		err := l.wait()
		stop()
		if err != nil {
			return err
		}
		return <-ended
	})
}

func withJetStream(ctx context.Context, l *ledger, timed func(string, func() error) error) error {
	connection, err := nats.Connect(*url)
	if err != nil {
		return err
	}
	defer connection.Close()
	js, err := jetstream.New(connection, jetstream.WithPublishAsyncMaxPending(*window))
	if err != nil {
		return err
	}
	stream, err := js.CreateStream(ctx, jetstream.StreamConfig{
		Name: queue, Subjects: []string{queue}, Retention: jetstream.WorkQueuePolicy,
	})
	if err != nil {
		return err
	}
	consumer, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: "workers", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 1 << 16,
		// Nothing is to come again because the machine is slow; Sluice's workers renew their leases.
		AckWait: stalled,
	})
	if err != nil {
		return err
	}
	err = timed("send", func() error {
		return senders(func(payloads [][]byte) error { return publish(js, payloads) })
	})
	if err != nil {
		return err
	}
	return timed("work", func() error {
		handle := func(message jetstream.Msg) {
			l.came(message.Data())
			_ = message.Ack()
		}
		coming, err := consumer.Consume(handle,
			jetstream.PullMaxMessages(*window), jetstream.PullThresholdMessages(*window-*batch))
		if err != nil {
			return err
		}
		defer coming.Stop()
		if err := l.wait(); err != nil {
			return err
		}
		// The server has seen the last ack when it answers.
		return connection.Flush()
	})
}

func publish(js jetstream.JetStream, payloads [][]byte) error {
	confirmed := make([]jetstream.PubAckFuture, len(payloads))
	for i, content := range payloads {
		var err error
		if confirmed[i], err = js.PublishAsync(queue, content, jetstream.WithStallWait(stalled)); err != nil {
			return err
		}
	}
	for _, one := range confirmed {
		select {
		case <-one.Ok():
		case err := <-one.Err():
			return err
		}
	}
	return nil
}
