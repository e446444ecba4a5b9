package sluice_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/sluice/sluice-go"
)

func TestARepeatHasTheSameKeyAndComesNoSoonerThanTheServerAsks(t *testing.T) {
	server := startFake(t,
		refusal(codes.ResourceExhausted, sluice.CodeOverloaded, 80*time.Millisecond),
		refusal(codes.Unknown, sluice.CodeOutcomeUnknown, 0))
	client := clientOf(t, []string{server.address})
	began := time.Now()
	must(client.Send(within(t, 10*time.Second), "q", nil))(t)
	if time.Since(began) < 80*time.Millisecond {
		t.Error("the repeat came too soon")
	}
	equal(t, "requests", len(server.requests), 3)
	key := server.requests[0].IdempotencyKey
	if key == "" || server.requests[1].IdempotencyKey != key || server.requests[2].IdempotencyKey != key {
		t.Errorf("the keys differ: %v", server.requests)
	}
}

func TestWhatMayHaveHadItsEffectIsNotRepeatedWithoutAKey(t *testing.T) {
	server := startFake(t, refusal(codes.Unknown, sluice.CodeOutcomeUnknown, 0))
	_, err := clientOf(t, []string{server.address}).Schedules().Trigger(t.Context(), "s")
	if !errors.Is(err, sluice.ErrOutcomeUnknown) || server.asked() != 1 {
		t.Fatalf("asked %d times: %v", server.asked(), err)
	}
	server = startFake(t, refusal(codes.Unavailable, sluice.CodeNoLeader, 0))
	must(clientOf(t, []string{server.address}).Schedules().Trigger(t.Context(), "s"))(t)
	equal(t, "tries of what surely had no effect", server.asked(), 2)
}

func TestAnErrorOfTheRequestIsFinal(t *testing.T) {
	server := startFake(t, refusal(codes.NotFound, sluice.CodeQueueNotFound, 0, "queue", "q"))
	_, err := clientOf(t, []string{server.address}).Send(t.Context(), "q", nil)
	var e *sluice.Error
	if !errors.As(err, &e) || !errors.Is(err, sluice.ErrNotFound) || e.Details["queue"] != "q" {
		t.Fatal(err)
	}
	equal(t, "text", err.Error(), "the server says so (queue_not_found)")
	equal(t, "tries", server.asked(), 1)
}

func TestARequestThatCannotBeEncodedIsFinal(t *testing.T) {
	server := startFake(t)
	client := must(sluice.New(sluice.WithServers(server.address)))(t)
	began := time.Now()
	_, err := client.Send(t.Context(), "q", nil, sluice.WithTags("a\xff"))
	if !errors.Is(err, sluice.ErrInvalid) || time.Since(began) > 5*time.Second {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
}

func TestTheNextServerIsAskedWhereOneIsNotThere(t *testing.T) {
	server := startFake(t)
	client := clientOf(t, []string{nowhere(t), server.address})
	must(client.Send(within(t, 10*time.Second), "q", nil))(t)
	equal(t, "server", client.Server(), server.address)
}

func TestTheLeaderThatIsNamedIsAsked(t *testing.T) {
	leader := startFake(t)
	other := startFake(t)
	notLeader := refusal(codes.Unavailable, sluice.CodeNotLeader, time.Second, "address", leader.address)
	follower := startFake(t, notLeader)
	client := clientOf(t, []string{follower.address, other.address, leader.address})
	began := time.Now()
	must(client.Send(within(t, 10*time.Second), "q", nil))(t)
	must(client.Send(within(t, 10*time.Second), "q", nil))(t)
	equal(t, "asked the leader", leader.asked(), 2)
	equal(t, "asked the other", other.asked(), 0)
	if time.Since(began) > 900*time.Millisecond {
		t.Error("it waited although another server could be asked")
	}
}

func TestTheDeadlineBoundsTheRepeats(t *testing.T) {
	client := clientOf(t, []string{nowhere(t)})
	began := time.Now()
	_, err := client.Send(within(t, 300*time.Millisecond), "q", nil)
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, sluice.ErrUnavailable) {
		t.Fatal(err)
	}
	if waited := time.Since(began); waited < 250*time.Millisecond || waited > 3*time.Second {
		t.Errorf("it ended after %s", waited)
	}
	client = clientOf(t, []string{nowhere(t)}, sluice.WithRetryFor(200*time.Millisecond))
	_, err = client.Send(t.Context(), "q", nil)
	if !errors.Is(err, sluice.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
}

func TestACertificateThatIsNotTrustedIsFinal(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	began := time.Now()
	_, err := clientOf(t, []string{server.URL}).Send(t.Context(), "q", nil)
	if !errors.Is(err, sluice.ErrUnavailable) || time.Since(began) > 5*time.Second {
		t.Fatalf("after %s: %v", time.Since(began), err)
	}
}
