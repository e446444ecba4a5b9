package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluice/sluice-go"
	"github.com/sluice/sluice-go/sluicepb"
	"github.com/sluice/sluice-go/sluicetest"
)

// The functions of this file hold the examples of the README. TestReadme runs them, and sees that they are
// the same there.

func readmeSend(ctx context.Context, client *sluice.Client) error {
	_, err := client.Send(ctx, "emails", []byte(`{"to":"ann"}`),
		sluice.WithContentType("application/json"),
		sluice.WithDelay(10*time.Second),
		sluice.WithOrderingKey("ann"))
	return err
}

func readmeOutcomes(ctx context.Context, job *sluice.Job) error {
	switch err := deliver(ctx, job.Payload); {
	case errors.Is(err, errNoSuchAddress):
		return sluice.Dead(err) // A dead letter at once.
	case errors.Is(err, errBusy):
		return sluice.RetryAfter(time.Minute, err)
	default:
		return err // nil: done. Else another attempt after the backoff.
	}
}

var errNoSuchAddress, errBusy = errors.New("no such address"), errors.New("busy")

func deliver(context.Context, []byte) error { return nil }

func readmeRequest(ctx context.Context, client *sluice.Client) error {
	worker := client.NewWorker("square", func(ctx context.Context, job *sluice.Job) error {
		n, err := strconv.Atoi(string(job.Payload))
		if err != nil {
			return sluice.Dead(err)
		}
		job.SetResult([]byte(strconv.Itoa(n*n)), "text/plain")
		return nil
	})
	go worker.Run(ctx)

	reply, err := client.Request(ctx, "square", []byte("12"))
	if err != nil {
		return err
	}
	fmt.Println(string(reply.Payload)) // 144
	return expect(string(reply.Payload), "144")
}

func readmeFlow(ctx context.Context, client *sluice.Client) error {
	// When the photo is resized, its result is the payload of the message for upload.
	_, err := client.Send(ctx, "resize", []byte("photo 17"), sluice.WithChain(sluice.Step{Queue: "upload"}))
	if err != nil {
		return err
	}
	// When both pages are printed, the book is bound.
	pages := []sluice.Step{
		sluice.NewStep("print", []byte("page 1")),
		sluice.NewStep("print", []byte("page 2")),
	}
	_, err = client.SendGroup(ctx, pages, sluice.NewStep("bind", []byte("the book")))
	return err
}

func readmeSchedule(ctx context.Context, client *sluice.Client) error {
	_, err := client.Schedules().Put(ctx, sluice.Schedule{
		Name:     "report",
		Cron:     "0 7 * * 1-5",
		TimeZone: "Europe/Zurich",
		Queue:    "reports",
		Message:  sluice.Message{Payload: []byte("daily")},
	})
	return err
}

func readmeLock(ctx context.Context, client *sluice.Client) error {
	err := client.WithLock(ctx, "deploy", func(ctx context.Context, held *sluice.Held) error {
		return deploy(ctx, held.FencingToken())
	})
	return err
}

func deploy(context.Context, uint64) error { return nil }

func readmeDocuments(ctx context.Context, client *sluice.Client) error {
	docs := client.Documents()
	version, err := docs.Put(ctx, "orders/17", []byte(`{"state":"new","sum":5}`), sluice.IfAbsent())
	if err != nil {
		return err
	}
	_, err = docs.Patch(ctx, "orders/17", sluice.MergePatch(`{"state":"paid"}`), sluice.IfETag(version.ETag))
	if errors.Is(err, sluice.ErrVersionMismatch) {
		fmt.Println("another was faster")
	}
	for order, err := range docs.Query(ctx, sluice.Query{Where: `{"/state":"paid"}`, Prefix: "orders/"}) {
		if err != nil {
			return err
		}
		fmt.Println(order.Key, string(order.Content)) // orders/17 {"state":"paid","sum":5}
	}
	return err
}

func readmeAttachments(ctx context.Context, client *sluice.Client) error {
	if _, err := client.Documents().Put(ctx, "orders/17", []byte("{}")); err != nil {
		return err
	}
	attachments := client.Attachments()
	scan := strings.NewReader("%PDF")
	_, err := attachments.Upload(ctx, "orders/17", "scan.pdf", scan, sluice.DocContentType("application/pdf"))
	if err != nil {
		return err
	}
	about, content, err := attachments.Download(ctx, "orders/17", "scan.pdf")
	if err != nil {
		return err
	}
	defer content.Close()
	fmt.Println(about.Bytes, about.ContentType) // 4 application/pdf
	_, err = io.Copy(io.Discard, content)
	return err
}

func readmeTransactionalWorker(ctx context.Context, client *sluice.Client) error {
	reserve := func(ctx context.Context, job *sluice.Job, txn *sluice.Txn) error {
		stock, err := txn.Get(ctx, "stock/7")
		if err != nil || stock == nil {
			return err
		}
		left, err := strconv.Atoi(string(stock.Content))
		if err != nil || left == 0 {
			return sluice.Dead(errors.New("sold out"))
		}
		if err := txn.Put(ctx, "stock/7", strconv.AppendInt(nil, int64(left-1), 10)); err != nil {
			return err
		}
		return txn.Send(ctx, "parcels", job.Payload)
	}
	worker := client.NewTransactionalWorker("reservations", reserve)
	if _, err := client.Documents().Put(ctx, "stock/7", []byte("1")); err != nil {
		return err
	}
	go worker.Run(ctx)
	for _, last := range []bool{false, true} {
		id, err := client.Send(ctx, "reservations", nil, sluice.WithResultTTL(time.Minute))
		if err != nil {
			return err
		}
		if _, err = client.Result(ctx, id); errors.Is(err, sluice.ErrDead) != last {
			return fmt.Errorf("a reservation: %w", err)
		}
	}
	return nil
}

func readmeTransaction(ctx context.Context, client *sluice.Client) error {
	paid := func(ctx context.Context, job *sluice.Job) error {
		_, err := client.Commit(ctx, sluice.NewTransaction().
			Put("orders/18", []byte(`{"state":"paid"}`)).
			Send("mail", []byte("thank you")).
			Ack(job.Receipt))
		return err
	}
	go client.NewWorker("paid", paid).Run(ctx)
	id, err := client.Send(ctx, "paid", nil, sluice.WithResultTTL(time.Minute))
	if err != nil {
		return err
	}
	_, err = client.Result(ctx, id)
	return err
}

func readmeOpenTransaction(ctx context.Context, client *sluice.Client) error {
	err := client.InTransaction(ctx, func(ctx context.Context, txn *sluice.Txn) error {
		order, err := txn.Get(ctx, "orders/17")
		if err != nil || order == nil {
			return err
		}
		if err := txn.Put(ctx, "archive/17", order.Content); err != nil {
			return err
		}
		return txn.Delete(ctx, "orders/17")
	})
	return err
}

func readmeErrors(ctx context.Context, client *sluice.Client) error {
	_, err := client.Documents().Get(ctx, "nowhere")
	var failed *sluice.Error
	if errors.As(err, &failed) {
		fmt.Println(failed.Code, failed.Details["key"]) // document_not_found nowhere
	}
	if errors.Is(err, sluice.ErrNotFound) {
		return nil
	}
	return fmt.Errorf("no such error: %w", err)
}

func readmeStubs(ctx context.Context, client *sluice.Client) error {
	queues := sluicepb.NewQueuesClient(client.Conn())
	attempts := uint32(8)
	_, err := queues.Put(ctx, &sluicepb.SetQueueRequest{Queue: "emails", MaxAttempts: &attempts})
	return err
}

func expect(got, want string) error {
	if got != want {
		return fmt.Errorf("got %q, want %q", got, want)
	}
	return nil
}

func TestSignUpSendsAMail(t *testing.T) {
	server := sluicetest.Start(t)
	recorder := sluicetest.NewRecorder()
	client := server.Client(t, recorder.Option())

	signUp(t.Context(), client, "ann")

	recorder.AssertSent(t, "emails", sluicetest.Contains("ann"))
	recorder.AssertNotSent(t, "alarms")

	// A message with a delay of a day: no test sleeps.
	server.Advance(t, 24*time.Hour)
	reminders, err := client.Receive(t.Context(), "reminders")
	if err != nil || len(reminders) != 1 {
		t.Fatalf("%d reminders: %v", len(reminders), err)
	}
}

func signUp(ctx context.Context, client *sluice.Client, name string) {
	_, _ = client.Send(ctx, "emails", []byte("welcome, "+name))
	_, _ = client.Send(ctx, "reminders", []byte("still there, "+name+"?"), sluice.WithDelay(24*time.Hour))
}
