"""The trace that a message belongs to, in its header ``traceparent``. Without OpenTelemetry there is none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

try:
    from opentelemetry import context, trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    _PROPAGATOR: TraceContextTextMapPropagator | None = TraceContextTextMapPropagator()
except ImportError:  # the extra `otel` is not installed
    _PROPAGATOR = None


#: Without OpenTelemetry nothing has a trace.
IS_ON = _PROPAGATOR is not None
_NO_SPAN: AbstractContextManager[None] = nullcontext()


def inject(headers: Any) -> None:
    """Adds the headers of the present trace, unless the message has them."""
    if _PROPAGATOR is None or any(header.name == "traceparent" for header in headers):
        return
    carrier: dict[str, str] = {}
    _PROPAGATOR.inject(carrier)
    for name, value in carrier.items():
        headers.add(name=name, value=value)


def span_of(queue: str, message_id: str, headers: Mapping[str, str]) -> AbstractContextManager[None]:
    """A span of the work on a message, in the trace that its headers name."""
    return _NO_SPAN if _PROPAGATOR is None else _span(_PROPAGATOR, queue, message_id, headers)


@contextmanager
def _span(
    propagator: TraceContextTextMapPropagator, queue: str, message_id: str, headers: Mapping[str, str]
) -> Iterator[None]:
    parent = propagator.extract(dict(headers), context.Context())
    attributes = {
        "messaging.system": "sluice",
        "messaging.destination.name": queue,
        "messaging.message.id": message_id,
    }
    tracer = trace.get_tracer("sluice")
    kind = trace.SpanKind.CONSUMER
    with tracer.start_as_current_span(f"process {queue}", parent, kind=kind, attributes=attributes):
        yield
