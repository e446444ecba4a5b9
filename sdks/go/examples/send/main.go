// Send sends a message to the queue emails.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/sluice/sluice-go"
)

func main() {
	client, err := sluice.New()
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	id, err := client.Send(context.Background(), "emails", []byte("ann@example.com"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("sent", id)
}
