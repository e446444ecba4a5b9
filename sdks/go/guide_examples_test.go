package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice/sluice-go"
)

// The functions of this file hold the code of docs/guides/nats.md, which TestReadme runs and compares.

var errNoSuchOrder = errors.New("no such order")

func guideWork(ctx context.Context, client *sluice.Client) error {
	_, err := client.Send(ctx, "orders", []byte("17"),
		sluice.WithIdempotencyKey("17-paid"),
		sluice.WithHeader("subject", "orders.paid"))
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	var paid string
	pay := func(payload []byte) error {
		defer stop()
		paid = string(payload)
		return nil
	}
	worker := client.NewWorker("orders", func(ctx context.Context, job *sluice.Job) error {
		switch err := pay(job.Payload); {
		case errors.Is(err, errNoSuchOrder):
			return sluice.Dead(err)
		case err != nil:
			return sluice.RetryAfter(10*time.Second, err)
		default:
			return nil // acked, and the ack is answered
		}
	}, sluice.WorkerConcurrency(64), sluice.WorkerLease(30*time.Second))
	err = worker.Run(ctx)
	if err != nil {
		return err
	}
	return expect(paid, "17")
}

func guideRequest(ctx context.Context, client *sluice.Client) error {
	worker := client.NewWorker("square", func(_ context.Context, job *sluice.Job) error {
		job.SetResult([]byte("144"), "text/plain")
		return nil
	})
	working, stop := context.WithCancel(ctx)
	defer stop()
	go worker.Run(working)

	reply, err := client.Request(ctx, "square", []byte("12"))
	if err != nil {
		return err
	}
	return expect(string(reply.Payload), "144")
}

func guideDocuments(ctx context.Context, client *sluice.Client) error {
	if err := client.Documents().Delete(ctx, "orders/17"); err != nil && !errors.Is(err, sluice.ErrNotFound) {
		return fmt.Errorf("begin anew: %w", err)
	}
	docs := client.Documents()
	version, err := docs.Put(ctx, "orders/17", []byte(`{"state":"new"}`), sluice.IfAbsent())
	if err != nil {
		return err
	}
	_, err = docs.Put(ctx, "orders/17", []byte(`{"state":"paid"}`), sluice.IfETag(version.ETag))
	return err
}
