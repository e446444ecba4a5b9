package sluice

import "context"

// Propagator carries values of a context over in headers of messages, such as the context of a trace. It has
// the methods of OpenTelemetry's TextMapPropagator with a plain map as the carrier; the README shows the
// adapter.
type Propagator interface {
	// Inject writes the values of the context into the headers.
	Inject(ctx context.Context, headers map[string]string)
	// Extract returns a context with the values of the headers.
	Extract(ctx context.Context, headers map[string]string) context.Context
}

// inject returns the headers with those of the propagator behind them. A header that is there stays.
func (c *Client) inject(ctx context.Context, headers []Header) []Header {
	if c.options.propagator == nil {
		return headers
	}
	carrier := map[string]string{}
	c.options.propagator.Inject(ctx, carrier)
	for _, header := range headers {
		delete(carrier, header.Name)
	}
	headers = headers[:len(headers):len(headers)]
	for name, value := range carrier {
		headers = append(headers, Header{name, value})
	}
	return headers
}

// extract returns a context with what the headers of a message carry.
func (c *Client) extract(ctx context.Context, headers []Header) context.Context {
	if c.options.propagator == nil {
		return ctx
	}
	carrier := map[string]string{}
	for _, header := range headers {
		carrier[header.Name] = header.Value
	}
	return c.options.propagator.Extract(ctx, carrier)
}
