// Otel carries the context of traces over in the headers of messages.
package main

import (
	"context"
	"log"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"

	"github.com/sluice/sluice-go"
)

// tracing fits a propagator of OpenTelemetry to Sluice.
type tracing struct{ propagation.TextMapPropagator }

func (t tracing) Inject(ctx context.Context, headers map[string]string) {
	t.TextMapPropagator.Inject(ctx, propagation.MapCarrier(headers))
}

func (t tracing) Extract(ctx context.Context, headers map[string]string) context.Context {
	return t.TextMapPropagator.Extract(ctx, propagation.MapCarrier(headers))
}

func main() {
	client, err := sluice.New(sluice.WithPropagator(tracing{otel.GetTextMapPropagator()}))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Send(context.Background(), "emails", []byte("hello")); err != nil {
		log.Fatal(err)
	}
}
