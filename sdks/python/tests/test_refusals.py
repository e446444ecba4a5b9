"""Ends of handlers that the server does not take, or that cannot be told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import sluice
from sluice import Release, Retry
from sluice._proto import messages_pb2
from sluice.aio import Client, Job, Worker
from sluice.testing import Server


async def _worked(client: Client, queue: str, handler: Callable[[Job], Any], messages: int) -> sluice.Summary:
    """Runs handlers on so many messages, which all end at once, in one batch or a few."""
    await client.send_many(queue, list(range(messages)))
    begun, all_begun = 0, asyncio.Event()

    async def gathered(job: Job) -> Any:
        nonlocal begun
        begun += 1
        if begun >= messages:
            all_begun.set()
        await all_begun.wait()
        return handler(job)

    worker = Worker(client, queue, gathered, concurrency=messages)
    running = asyncio.create_task(worker.run())
    while (await _counts(client, queue)).leased or begun < messages:
        await asyncio.sleep(0.05)
    worker.stop()
    return await running


async def _counts(client: Client, queue: str) -> Any:
    from sluice._proto import queues_pb2

    return (await client.stubs.queues.Get(queues_pb2.GetQueueRequest(queue=queue))).counts


async def _error_of(client: Client, queue: str) -> str:
    """The last error of the only message of a queue."""
    listed = await client.stubs.messages.List(messages_pb2.ListMessagesRequest(queue=queue))
    [message] = listed.messages
    shown = await client.stubs.messages.Get(messages_pb2.GetMessageRequest(id=message.id))
    return str(shown.history[-1].error)


def _too_large(job: Job) -> bytes:
    return bytes(300_000) if job.value == 5 else b"ok"


def _far_too_large(job: Job) -> bytes:
    return bytes(40_000_000) if job.value == 5 else b"ok"


def _too_late(job: Job) -> None:
    if job.value == 5:
        raise Retry("the disk is full", after=timedelta(days=4000))


def _too_late_release(job: Job) -> None:
    if job.value == 5:
        raise Release(after=timedelta(days=4000))


@pytest.mark.parametrize(
    ("handler", "says"),
    [
        (_too_large, ["the ack was refused", "262144"]),
        (_far_too_large, ["the ack was refused", "40000000 bytes"]),
        (_too_late, ["the nack was refused", "delay_ms", "the handler said: the disk is full"]),
        (_too_late_release, ["the release was refused", "delay_ms"]),
    ],
)
def test_a_refused_settlement_becomes_a_nack(
    sluice_server: Server, queue: str, handler: Callable[[Job], Any], says: list[str]
) -> None:
    async def work() -> None:
        async with Client(sluice_server.url) as client:
            summary = await asyncio.wait_for(_worked(client, queue, handler, 12), 30)
            assert (summary.acked, summary.nacked, summary.unsettled) == (11, 1, 0)
            error = await _error_of(client, queue)
            assert all(one in error for one in says), error

    asyncio.run(work())


def test_results_that_are_too_large_together_are_settled_in_parts(sluice_server: Server, queue: str) -> None:
    async def work() -> None:
        async with Client(sluice_server.url) as client:
            summary = await asyncio.wait_for(_worked(client, queue, lambda job: bytes(200_000), 400), 60)
            assert (summary.acked, summary.nacked, summary.unsettled) == (400, 0, 0)

    asyncio.run(work())


class Untold(Exception):
    """An error whose text cannot be made."""

    def __str__(self) -> str:
        raise KeyError("text")


@pytest.mark.parametrize(
    ("raised", "says"),
    [
        (Retry("not yet", after=timedelta(seconds=-3)), "not yet"),
        (Retry("not yet", after=-3), "not yet"),
        (Retry("not yet", after=float("nan")), "Retry, which cannot be told: InvalidArgument"),
        (Retry("not yet", after=float("inf")), "Retry, which cannot be told: InvalidArgument"),
        (Retry("not yet", after=1e15), "the nack was refused"),
        (Retry("not yet", after=1e30), "Retry, which cannot be told: InvalidArgument"),
        (Retry("not yet", after="soon"), "Retry, which cannot be told: InvalidArgument"),  # type: ignore[arg-type]
        (ValueError("half a letter: \ud800"), "ValueError: half a letter: ?"),
        (Untold(), "Untold, which cannot be told: KeyError"),
        (asyncio.CancelledError("not by the worker"), "CancelledError: not by the worker"),
    ],
)
def test_whatever_a_handler_raises_settles_its_message(
    sluice_server: Server, queue: str, raised: BaseException, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    # Half a letter in the log is more than the runner can write.
    caplog.set_level(logging.CRITICAL, "sluice.worker")

    async def work() -> None:
        def handler(job: Job) -> None:
            raise raised

        async with Client(sluice_server.url) as client:
            await client.stubs.queues.Put(_one_attempt(queue))
            await client.send(queue, "x")
            summary = await Worker(client, queue, _asynchronous(handler), until_empty=True).run()
            assert summary.nacked == 1, summary
            assert says in await _error_of(client, queue)

    asyncio.run(work())


def _asynchronous(handler: Callable[[Job], Any]) -> Callable[[Job], Any]:
    async def run(job: Job) -> Any:
        return handler(job)

    return run


def _one_attempt(queue: str) -> Any:
    from sluice._proto import queues_pb2

    return queues_pb2.SetQueueRequest(queue=queue, max_attempts=1)
