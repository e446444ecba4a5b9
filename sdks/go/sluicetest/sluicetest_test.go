package sluicetest_test

import (
	"context"
	"errors"
	"testing"

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
