"""Traces go with messages."""

from __future__ import annotations

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from sluice import Client, Job, Worker


def test_trace_goes_from_the_sender_to_the_worker(sluice_client: Client, queue: str) -> None:
    trace.set_tracer_provider(TracerProvider())
    seen: list[int] = []

    def threaded(job: Job) -> None:
        seen.append(trace.get_current_span().get_span_context().trace_id)

    async def on_the_loop(job: Job) -> None:
        threaded(job)

    for handler in (threaded, on_the_loop):
        with trace.get_tracer("test").start_as_current_span("sender") as span:
            sluice_client.send(queue, "x")
        Worker(sluice_client, queue, handler, until_empty=True).run()
        assert seen.pop() == span.get_span_context().trace_id


def test_repeat_with_a_key_is_the_same_request(sluice_client: Client, queue: str) -> None:
    ids = set()
    for _ in range(2):
        with trace.get_tracer("test").start_as_current_span("sender"):
            ids.add(sluice_client.send(queue, "x", idempotency_key="mine").id)
    assert len(ids) == 1


def test_header_of_the_caller_stays(sluice_client: Client, queue: str) -> None:
    with trace.get_tracer("test").start_as_current_span("sender"):
        sluice_client.send(queue, "x", headers={"traceparent": "mine"})
    assert sluice_client.receive(queue)[0].headers["traceparent"] == "mine"
