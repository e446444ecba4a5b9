package sluice

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"github.com/sluice/sluice-go/sluicepb"
)

// Change is a change of a document.
type Change struct {
	// Position is where to go on after this change; empty where there is no such place.
	Position string
	Key      string
	// ETag is that of the version, or of the end of the document: later changes have larger ones.
	ETag      string
	ChangedAt time.Time
	// Document is the document without its content; nil when it is gone.
	Document *Document
	// Gone is true if the document was deleted, or its time is over.
	Gone bool
	// Current is true once, of a change without a key: from then on all documents are known as they are.
	Current bool
}

// Watch tells the documents whose keys begin with the prefix as they are, and then each change, for as long
// as the context lasts; after a position, only what comes behind it. It connects again when the connection
// breaks. [ErrChangesForgotten] says that it has to begin anew, without a position.
func (d Documents) Watch(ctx context.Context, prefix, after string) iter.Seq2[*Change, error] {
	return func(yield func(*Change, error) bool) {
		w := &watch{documents: d, prefix: prefix, after: after}
		w.run(ctx, yield)
	}
}

type watch struct {
	documents     Documents
	prefix, after string
	// begun is true when the server has sent something.
	begun bool
}

func (w *watch) run(ctx context.Context, yield func(*Change, error) bool) {
	c := w.documents.client
	tries := c.newTries(ctx, 0)
	for {
		asked := c.servers.asked()
		w.begun = false
		err := w.read(ctx, asked, yield)
		if err == nil {
			return
		}
		if w.begun {
			tries = c.newTries(ctx, 0)
		}
		toAnother := c.servers.passOn(asked, err)
		delay, again := tries.next(err, repeatable, toAnother)
		if !again || err.cause != nil || sleep(ctx, delay) != nil {
			yield(nil, err)
			return
		}
	}
}

// read reads one stream to its end. No error: the caller has had enough.
func (w *watch) read(ctx context.Context, asked *server, yield func(*Change, error) bool) *Error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in := &sluicepb.WatchDocumentsRequest{
		Namespace: w.documents.client.options.namespace, Prefix: given(w.prefix), After: given(w.after),
	}
	stream, err := sluicepb.NewDocumentsClient(asked.conn).Watch(ctx, in)
	if err != nil {
		return toError(ctx, err)
	}
	for {
		event, err := stream.Recv()
		if err != nil {
			return endOfStream(ctx, err)
		}
		w.begun = true
		w.after = orElse(event.Position, w.after)
		if (event.Key != "" || event.Current) && !yield(changeOf(event), nil) {
			return nil
		}
	}
}

// endOfStream is the error with which a stream has ended, which has no end of its own.
func endOfStream(ctx context.Context, err error) *Error {
	if errors.Is(err, io.EOF) {
		return &Error{Code: CodeUnreachable, Message: "the server has ended the stream"}
	}
	return toError(ctx, err)
}

func changeOf(event *sluicepb.WatchDocumentsResponse) *Change {
	made := &Change{
		Position: event.Position, Key: event.Key, ETag: event.Etag, ChangedAt: timeOf(event.ChangedAtMs),
		Gone: event.Gone, Current: event.Current,
	}
	if event.Document != nil {
		made.Document = documentOf(event.Document)
	}
	return made
}
