// Package sluice is the client of Sluice, a server for queues, locks and documents.
//
//	client, err := sluice.New()                 // SLUICE_SERVER, or 127.0.0.1:7070
//	id, err := client.Send(ctx, "emails", []byte("hello"))
//	err = client.NewWorker("emails", handle).Run(ctx)
//
// A [Client] is safe for use by many goroutines. All its calls take a context first; they are repeated after
// errors that pass, at the next server where there are several, until the deadline of the context, or for 30
// seconds if it has none. What is sent has an idempotency key, and what is written a request id, so that a
// repeat has no second effect.
//
// Errors of the server are of the type [*Error]. [errors.Is] tells them apart by values such as
// [ErrVersionMismatch] and [ErrLeaseLost].
//
// Calls that the package does not wrap, those on queues and namespaces among them, are made with the
// generated stubs of the package sluicepb, over [Client.Conn].
package sluice
