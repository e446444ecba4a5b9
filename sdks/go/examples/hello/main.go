// Hello sends a message, and works on it and on all that come later.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/sluice/sluice-go"
)

func main() {
	ctx, client := context.Background(), sluice.MustNew() // SLUICE_SERVER, or http://127.0.0.1:7070
	id, err := client.Send(ctx, "emails", []byte("ann@example.com"))
	fmt.Println("sent", id, err)
	worker := client.NewWorker("emails", func(ctx context.Context, job *sluice.Job) error {
		fmt.Printf("mail to %s\n", job.Payload)
		return nil // it is acked
	})
	log.Fatal(worker.Run(ctx))
}
