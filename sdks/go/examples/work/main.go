// Work works on the messages of the queue emails until Ctrl-C.
package main

import (
	"context"
	"fmt"
	"log"
	"os/signal"
	"syscall"

	"github.com/sluice/sluice-go"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	client, err := sluice.New()
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	worker := client.NewWorker("emails", handle, sluice.WorkerConcurrency(8))
	if err := worker.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

// handle acks the message by returning nil. An error is another attempt, after the backoff of the queue.
func handle(ctx context.Context, job *sluice.Job) error {
	fmt.Printf("mail to %s, attempt %d\n", job.Payload, job.Attempt)
	return nil
}
