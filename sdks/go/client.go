package sluice

import (
	"context"
	"crypto/rand"
	"os"
	"time"

	"google.golang.org/protobuf/proto"
)

// Client makes calls in one namespace of a server or cluster. It is safe for use by many goroutines.
type Client struct {
	options options
	servers *servers
}

// New makes a client. It connects at its first call. What no option sets comes from the environment variables
// SLUICE_SERVER, SLUICE_CONTEXT, SLUICE_NAMESPACE, SLUICE_CA, SLUICE_CERT, SLUICE_CERT_KEY, SLUICE_TOKEN_FILE
// and SLUICE_TOKEN, which mean what they mean to the command line, or from its context in use.
func New(opts ...Option) (*Client, error) {
	c := &Client{options: options{retryFor: defaultRetryFor, requestTimeout: defaultRequestTimeout}}
	for _, opt := range opts {
		opt(&c.options)
	}
	if err := c.options.fill(os.Getenv); err != nil {
		return nil, err
	}
	var err error
	c.servers, err = newServers(&c.options)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// MustNew is [New] for programs that cannot go on without a client: it panics where that returns an error, which
// it does for options and settings that cannot be right, and not where a server is away.
func MustNew(opts ...Option) *Client {
	client, err := New(opts...)
	if err != nil {
		panic(err)
	}
	return client
}

// Close closes the connections. Workers and locks have to end before.
func (c *Client) Close() error { return c.servers.close() }

// Namespace is the name of the client's namespace.
func (c *Client) Namespace() string { return orElse(c.options.namespace, "default") }

// Server is the address of the server that is asked at present.
func (c *Client) Server() string { return c.servers.asked().address }

// call makes a call, and repeats it where that may help. wait is the time that the call itself asks for.
func (c *Client) call(
	ctx context.Context, method string, in, out proto.Message, may safety, wait time.Duration,
) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	tries := c.newTries(ctx, wait)
	for {
		asked := c.servers.asked()
		e := c.try(ctx, asked, method, in, out, wait)
		if e == nil {
			return nil
		}
		toAnother := c.servers.passOn(asked, e)
		delay, again := tries.next(e, may, toAnother)
		if !again || e.cause != nil || (asked.refused.Load() && e.Code == CodeUnreachable) {
			return e
		}
		if cause := sleep(ctx, delay); cause != nil {
			e.cause = cause
			return e
		}
	}
}

// try makes a call once.
func (c *Client) try(
	ctx context.Context, asked *server, method string, in, out proto.Message, wait time.Duration,
) *Error {
	one, cancel := context.WithTimeout(ctx, c.options.requestTimeout+wait)
	defer cancel()
	if err := asked.conn.Invoke(one, method, in, out); err != nil {
		return toError(ctx, err)
	}
	return nil
}

// newKey makes an idempotency key or a request id.
func newKey() string { return rand.Text() }
