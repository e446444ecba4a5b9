package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice/sluice-go"
	"github.com/sluice/sluice-go/sluicepb"
	"github.com/sluice/sluice-go/sluicetest"
)

// nilError is an error that panics when it is asked for its text and is nil.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

func TestAnEndThatIsRefusedIsANackOfItsMessageAlone(t *testing.T) {
	const messages = 12
	var none *nilError
	for name, c := range map[string]struct {
		end  func(job *sluice.Job) error
		says []string
	}{
		"too large": {
			func(job *sluice.Job) error { job.SetResult(make([]byte, 300_000), ""); return nil },
			[]string{"the ack was refused", "262144"},
		},
		"far too large": {
			func(job *sluice.Job) error { job.SetResult(make([]byte, 40_000_000), ""); return nil },
			[]string{"the ack was refused", "40000000 bytes"},
		},
		"too late": {
			func(*sluice.Job) error {
				return sluice.RetryAfter(100_000*time.Hour, errors.New("the disk is full"))
			},
			[]string{"the nack was refused", "delay_ms", "the handler said: the disk is full"},
		},
		"never": {
			func(*sluice.Job) error { return sluice.NotNow(math.MaxInt64) },
			[]string{"the release was refused", "delay_ms"},
		},
		"no text": {
			func(*sluice.Job) error { return errors.New("a byte: \xff" + strings.Repeat("é", 2048)) },
			[]string{"a byte: \uFFFDé"},
		},
		"no media type": {
			func(job *sluice.Job) error {
				job.SetResult([]byte("1"), "a/\xff"+strings.Repeat("b", 5000))
				return nil
			},
			[]string{"the ack was refused"},
		},
		"nil":   {func(*sluice.Job) error { return none }, []string{"*sluice_test.nilError, has panicked", "nil pointer"}},
		"panic": {func(*sluice.Job) error { panic("on purpose") }, []string{"panic: on purpose"}},
	} {
		t.Run(name, func(t *testing.T) {
			client := sluicetest.Start(t).Client(t)
			var begun sync.WaitGroup
			begun.Add(messages)
			work(t, client.NewWorker("q", func(_ context.Context, job *sluice.Job) error {
				if job.Attempt > 1 {
					return sluice.NotNow(time.Hour)
				}
				begun.Done()
				begun.Wait()
				if string(job.Payload) == "5" {
					return c.end(job)
				}
				return nil
			}, sluice.WorkerConcurrency(messages)))
			var id string
			for n := range messages {
				if sent := send(t, client, "q", fmt.Sprint(n)); n == 5 {
					id = sent
				}
			}
			eventually(t, "the counts", 20*time.Second, func() bool {
				totals := queueOf(t, client, "q").Totals
				return totals.Acked == messages-1 && totals.Nacked == 1
			})
			request := &sluicepb.GetMessageRequest{Id: id}
			stored := must(sluicepb.NewMessagesClient(client.Conn()).Get(t.Context(), request))(t)
			for _, says := range c.says {
				if text := stored.History[0].Error; !strings.Contains(text, says) {
					t.Errorf("%q does not say %q", text, says)
				}
			}
		})
	}
}

func TestResultsThatAreTooLargeTogetherAreSettledInParts(t *testing.T) {
	const messages = 400
	client := sluicetest.Start(t).Client(t)
	var begun sync.WaitGroup
	begun.Add(messages)
	work(t, client.NewWorker("q", func(_ context.Context, job *sluice.Job) error {
		begun.Done()
		begun.Wait()
		job.SetResult(make([]byte, 200_000), "")
		return nil
	}, sluice.WorkerConcurrency(messages)))
	must(client.SendMany(t.Context(), "q", make([]sluice.Message, messages)))(t)
	eventually(t, "the acks", 60*time.Second, func() bool { return queueOf(t, client, "q").Totals.Acked == messages })
}
