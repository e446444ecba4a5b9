package sluicetest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/sluice/sluice-go"
	"github.com/sluice/sluice-go/sluicetest"
)

func TestWhatIsSentIsRecorded(t *testing.T) {
	server := sluicetest.Start(t)
	recorder := sluicetest.NewRecorder()
	client := server.Client(t, recorder.Option())
	ctx := t.Context()
	if _, err := client.Send(ctx, "emails", []byte("hello"), sluice.WithHeader("to", "ann")); err != nil {
		t.Fatal(err)
	}
	commit := sluice.NewTransaction().Send("orders", []byte("order 17"))
	if _, err := client.Commit(ctx, commit); err != nil {
		t.Fatal(err)
	}
	recorder.AssertSent(t, "emails", sluicetest.Payload("hello"), sluicetest.Header("to", "ann"))
	recorder.AssertSent(t, "orders", sluicetest.Contains("17"))
	recorder.AssertNotSent(t, "invoices")
}

func TestWhatATransactionHasSentCountsOnceItIsCommitted(t *testing.T) {
	server := sluicetest.Start(t)
	recorder := sluicetest.NewRecorder()
	client := server.Client(t, recorder.Option())
	failure := errors.New("no")
	for _, result := range []error{failure, nil} {
		err := client.InTransaction(t.Context(), func(ctx context.Context, txn *sluice.Txn) error {
			return errors.Join(txn.Send(ctx, "mail", []byte("thank you")), result)
		})
		if !errors.Is(err, result) {
			t.Fatal(err)
		}
		if sent := len(recorder.Sent("mail")); (sent == 1) != (result == nil) {
			t.Fatalf("%d messages were recorded", sent)
		}
	}
}

func TestADayPassesAtOnce(t *testing.T) {
	server := sluicetest.Start(t)
	client := server.Client(t)
	ctx := t.Context()
	if _, err := client.Send(ctx, "later", []byte("tomorrow"), sluice.WithDelay(24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Send(ctx, "held", []byte("once more")); err != nil {
		t.Fatal(err)
	}
	receive := func(queue string) []*sluice.Delivery {
		got, err := client.Receive(ctx, queue, sluice.ReceiveMax(100))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if held := receive("held"); len(held) != 1 || held[0].Attempt != 1 {
		t.Fatalf("%v", held)
	}
	hourly := sluice.Schedule{
		Name: "hourly", Every: time.Hour, Queue: "reports", Message: sluice.Message{Payload: []byte("report")},
	}
	if _, err := client.Schedules().Put(ctx, hourly); err != nil {
		t.Fatal(err)
	}
	before, began := server.Now(t), time.Now()
	after := server.Advance(t, 24*time.Hour)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
	if passed := after.Sub(before); passed < 24*time.Hour || passed > 25*time.Hour {
		t.Errorf("%v have passed", passed)
	}
	if later := receive("later"); len(later) != 1 || string(later[0].Payload) != "tomorrow" {
		t.Errorf("%v", later)
	}
	if held := receive("held"); len(held) != 1 || held[0].Attempt != 2 {
		t.Errorf("%v", held)
	}
	if reports := receive("reports"); len(reports) != 24 {
		t.Errorf("%d reports", len(reports))
	}
}

// TestChild is what TestAServerEndsWithATestThatIsKilled runs in another process, and kills.
func TestChild(t *testing.T) {
	if os.Getenv("SLUICETEST_CHILD") == "" {
		t.Skip("run by another test")
	}
	os.Stdout.WriteString("server " + sluicetest.Start(t).URL + "\n")
	process, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	_ = process.Kill()
	select {}
}

func TestAServerEndsWithATestThatIsKilled(t *testing.T) {
	binary := sluicetest.Binary(t)
	child := exec.Command(os.Args[0], "-test.run=^TestChild$")
	child.Env = append(os.Environ(), "SLUICETEST_CHILD=1", "SLUICE_BIN="+binary)
	said, err := child.Output()
	url, found := strings.CutPrefix(strings.TrimSpace(string(said)), "server ")
	if err == nil || !found {
		t.Fatalf("%v: %s", err, said)
	}
	client, err := sluice.New(
		sluice.WithoutEnvironment(), sluice.WithServers(url), sluice.WithRetryFor(time.Millisecond),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for end := time.Now().Add(30 * time.Second); ; {
		if _, err := client.Send(t.Context(), "q", nil); err != nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the server is still there")
		}
	}
}
