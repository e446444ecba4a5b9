package sluice_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/sluice/sluice-go"
	"github.com/sluice/sluice-go/sluicepb"
	"github.com/sluice/sluice-go/sluicetest"
)

func TestTheTokenGoesWithEachCall(t *testing.T) {
	server := startFake(t)
	client := clientOf(t, []string{server.address}, sluice.WithToken("t1"))
	must(client.Send(t.Context(), "q", nil))(t)
	equal(t, "authorization", server.authorization, "Bearer t1")
}

func TestATokenThatNoHeaderCanCarryIsRefusedAndNotShown(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	for _, token := range []string{"SECRET\nb", "SECRETé", "a\rSECRET", "SECRET\x7f", "SECRET\xff"} {
		file := filepath.Join(t.TempDir(), "token")
		check(t, os.WriteFile(file, []byte(token), 0o600))
		refused := func(name string, opts ...sluice.Option) {
			t.Helper()
			_, err := sluice.New(opts...)
			if err == nil || err.Error() != "sluice: the token has characters that no token has" {
				t.Errorf("%s %q: %v", name, token, err)
			}
		}
		refused("option", sluice.WithToken(token))
		t.Setenv("SLUICE_TOKEN", token)
		refused("variable")
		t.Setenv("SLUICE_TOKEN", "")
		t.Setenv("SLUICE_TOKEN_FILE", file)
		refused("file")
		t.Setenv("SLUICE_TOKEN_FILE", "")
		folder := filepath.Join(os.Getenv("XDG_CONFIG_HOME"), "sluice")
		check(t, os.MkdirAll(folder, 0o700))
		text := "current = 'shop'\n[contexts.shop]\nserver = 'http://a:1'\n" +
			"[contexts.shop.credentials]\ntoken_file = '" + file + "'\n"
		check(t, os.WriteFile(filepath.Join(folder, "contexts.toml"), []byte(text), 0o600))
		refused("context")
	}
}

func TestAllOptionsOfASendAreKept(t *testing.T) {
	client := sluicetest.Start(t).Client(t)
	id := send(t, client, "q", "1", sluice.WithFairKey("fair"), sluice.WithLimitKey("limit"),
		sluice.WithCost(0), sluice.WithCorrelationID("c1"), sluice.WithReplyTo("replies"), sluice.WithHold(),
		sluice.WithExpiresAt(time.Now().Add(time.Hour)), sluice.WithMaxAttempts(3),
		sluice.WithOnFailure(sluice.NewStep("failed", nil)))
	messages := sluicepb.NewMessagesClient(client.Conn())
	stored := must(messages.Get(t.Context(), &sluicepb.GetMessageRequest{Id: id}))(t)
	equal(t, "keys", stored.FairKey+" "+stored.LimitKey+" "+stored.CorrelationId, "fair limit c1")
	equal(t, "cost", *stored.Cost, 0)
	equal(t, "state", stored.State, "held")
	equal(t, "attempts", stored.MaxAttempts, 3)
	must(messages.Approve(t.Context(), &sluicepb.ChangeRequest{Id: id}))(t)
	message := receiveOne(t, client, "other", sluice.ReceiveAlso("q"), sluice.ReceiveAs("tester"),
		sluice.ReceiveLease(time.Minute))
	errs := must(client.Settle(t.Context(), sluice.AckWith(message.Receipt, []byte("r"), "").WithCost(5)))(t)
	check(t, errs[0])
	reply := receiveOne(t, client, "replies")
	equal(t, "reply", string(reply.Payload)+" "+reply.CorrelationID, "r c1")
	send(t, client, "q", "past", sluice.WithDeliverAt(time.Now().Add(-time.Hour)))
	receiveOne(t, client, "q")
}

func TestAStepHasNoStepsOfItsOwn(t *testing.T) {
	client := clientOf(t, []string{nowhere(t)})
	inner := sluice.NewStep("b", nil, sluice.WithUnique(sluice.Unique{Key: "k"}))
	outer := sluice.NewStep("a", nil, sluice.WithOnFailure(inner))
	_, sendErr := client.Send(t.Context(), "a", nil, sluice.WithChain(inner))
	_, groupErr := client.SendGroup(t.Context(), nil, outer)
	_, commitErr := client.Commit(t.Context(),
		sluice.NewTransaction().Send("a", nil, sluice.WithChain(outer)))
	for _, err := range []error{sendErr, groupErr, commitErr} {
		if err == nil || errors.Is(err, sluice.ErrUnavailable) {
			t.Error(err)
		}
	}
}

func TestPatchesOfDocuments(t *testing.T) {
	client := sluicetest.Start(t).Client(t)
	docs := client.Documents()
	ctx := t.Context()
	if _, err := docs.Put(ctx, "d", nil, sluice.IfExists()); !errors.Is(err, sluice.ErrVersionMismatch) {
		t.Errorf("a document that is not there: %v", err)
	}
	must(docs.Put(ctx, "d", []byte(`{"a":1}`), sluice.DocTTL(time.Hour)))(t)
	must(docs.Patch(ctx, "d", sluice.JSONPatch(`[{"op":"add","path":"/b","value":2}]`)))(t)
	must(docs.Patch(ctx, "d", sluice.Increment("/a", 1).And(sluice.Increment("/b", -5))))(t)
	patch := sluice.NewTransaction().Patch("d", sluice.MergePatch(`{"c":3}`)).Delete("gone")
	if _, err := client.Commit(ctx, patch); !errors.Is(err, sluice.ErrNotFound) {
		t.Errorf("a deletion of what is not there: %v", err)
	}
	read := must(docs.Get(ctx, "d"))(t)
	equal(t, "content", string(read.Content), `{"a":2,"b":-3}`)
	equal(t, "expires", read.ExpiresAt.IsZero(), false)
}

func TestASchedulesMessageIsReadAsItWasPut(t *testing.T) {
	schedules := sluicetest.Start(t).Client(t).Schedules()
	ctx := t.Context()
	message := sluice.Message{
		Payload: []byte("1"), Headers: []sluice.Header{{Name: "a", Value: "b"}}, Priority: 3,
		Backoff: &sluice.Backoff{Kind: "fixed", Base: time.Second, JitterPercent: -1},
		Unique:  &sluice.Unique{Key: "u"}, Delay: time.Hour,
	}
	must(schedules.Put(ctx, sluice.Schedule{Name: "s", Cron: "@daily", Queue: "q", Message: message}))(t)
	check(t, schedules.Pause(ctx, "s"))
	read := must(schedules.Get(ctx, "s"))(t)
	m := read.Message
	if !read.Paused || m.Priority != 3 || m.Headers[0].Value != "b" || m.Backoff.JitterPercent != -1 ||
		m.Unique.Key != "u" || m.Delay != time.Hour {
		t.Errorf("%+v", read)
	}
	check(t, schedules.Resume(ctx, "s"))
	must(schedules.Trigger(ctx, "s"))(t)
}

func TestTheLogOfAWorkerHasPanicsAndLostLeases(t *testing.T) {
	client := sluicetest.Start(t).Client(t)
	var log bytes.Buffer
	stop := work(t, client.NewWorker("q", func(ctx context.Context, job *sluice.Job) error {
		if err := job.Report(ctx, sluice.Progress{Percent: 50, Note: "half"}); err != nil {
			t.Error(err)
		}
		panic("out of range")
	}, sluice.WorkerLogger(slog.New(slog.NewTextHandler(&log, nil))), sluice.WorkerName("tester")))
	id := send(t, client, "q", "1", sluice.WithMaxAttempts(1), sluice.WithResultTTL(time.Minute))
	if _, err := client.Result(within(t, 10*time.Second), id); !errors.Is(err, sluice.ErrDead) {
		t.Fatal(err)
	}
	stop()
	if !bytes.Contains(log.Bytes(), []byte("out of range")) || !bytes.Contains(log.Bytes(), []byte("stack")) {
		t.Error(log.String())
	}
}

// authorized notes the token of a call.
func (f *fake) authorized(
	ctx context.Context, in any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler,
) (any, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	if values := md.Get("authorization"); len(values) == 1 {
		f.mu.Lock()
		f.authorization = values[0]
		f.mu.Unlock()
	}
	return handle(ctx, in)
}
