"""Workers whose handlers have a transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import sluice
from sluice import Client, Dead, Job, Outgoing, Transaction, Worker, aio
from sluice._proto import services
from sluice.aio._core import Core
from sluice.errors import error_of
from sluice.proto import messages_pb2

from .conftest import eventually
from .test_conformance import dead_letters, is_empty


def run(client: Client, queue: str, handler: Callable[..., Any], **options: Any) -> sluice.Summary:
    return Worker.transactional(client, queue, handler, until_empty=True, **options).run()


def test_what_is_staged_comes_with_the_ack(sluice_client: Client, queue: str) -> None:
    client = sluice_client
    client.documents.put("o/1", {"state": "new"})

    def pay(job: Job, tx: Transaction) -> str:
        order = tx.get(job.value)
        assert order is not None
        tx.put(job.value, {"state": "paid"})
        tx.send(queue + "-mail", "thank you")
        assert client.documents.get("o/1").value == {"state": "new"}
        return "done"

    sent = client.send(queue, "o/1", result_ttl=60)
    assert run(client, queue, pay).acked == 1
    assert client.documents.get("o/1").value == {"state": "paid"}
    assert [one.value for one in client.receive(queue + "-mail", max=5)] == ["thank you"]
    assert client.result(sent, timeout=5).text == "done"


def test_nothing_that_is_staged_happens_when_the_handler_raises(sluice_client: Client, queue: str) -> None:
    client = sluice_client

    def handler(job: Job, tx: Transaction) -> None:
        tx.put("never", "x")
        tx.send(queue + "-never", "x")
        if job.value == "dead":
            raise Dead("never")
        raise ValueError("no good")

    client.send(queue, "dead")
    client.send(queue, "failing", max_attempts=2, backoff=0.01)
    summary = run(client, queue, handler)
    assert (summary.acked, summary.nacked, summary.rejected) == (0, 2, 1)
    errors = {one.payload: one.history[-1].error for one in dead_letters(client, queue)}
    assert errors == {b"dead": "never", b"failing": "ValueError: no good"}
    assert client.documents.find("never") is None
    assert client.receive(queue + "-never") == []


def test_a_conflict_runs_the_handler_again(sluice_client: Client, queue: str) -> None:
    client, runs = sluice_client, []
    client.documents.put("n", 5)

    async def handler(job: Job, tx: aio.Transaction) -> None:
        document = await tx.get("n")
        assert document is not None
        runs.append(document.payload)
        if len(runs) == 1:
            await job.client.documents.put("n", 6)  # another is faster
        await tx.put("n", document.value + 1)

    client.send(queue, "x")
    assert run(client, queue, handler).acked == 1
    assert (runs, client.documents.get("n").value) == ([b"5", b"6"], 7)


def test_a_conflict_that_stays_is_a_failed_attempt(sluice_client: Client, queue: str) -> None:
    client, runs = sluice_client, []

    async def handler(job: Job, tx: aio.Transaction) -> None:
        runs.append(job.message.attempt)
        await tx.check("missing", if_exists=True)

    client.send(queue, "x", max_attempts=1)
    assert run(client, queue, handler).nacked == 1
    assert runs == [1] * 20
    assert "version_mismatch" in dead_letters(client, queue)[0].history[0].error


@pytest.mark.parametrize("code", ["unreachable", "shutting_down", "overloaded", "connection_lost"])
@pytest.mark.parametrize(
    "method", [services.TRANSACTIONS_BEGIN, services.TRANSACTIONS_STAGE, services.TRANSACTIONS_CLOSE]
)
def test_a_message_is_given_back_while_the_server_is_away(
    sluice_client: Client, queue: str, monkeypatch: pytest.MonkeyPatch, method: Any, code: str
) -> None:
    unary, left, attempts = Core.unary, [20 if code == "connection_lost" else 1], []

    async def failing(self: Core, asked: Any, request: Any, **options: Any) -> Any:
        if asked is method and left[0] > 0:
            left[0] -= 1
            raise error_of(code, "away")
        return await unary(self, asked, request, **options)

    async def handler(job: Job, tx: aio.Transaction) -> None:
        attempts.append(job.message.attempt)
        try:
            await tx.put("away", "x")
        except sluice.SluiceError as error:
            if not isinstance(error, sluice.OutcomeUnknown):
                raise RuntimeError("an error of the handler's own") from error
            raise

    monkeypatch.setattr(Core, "unary", failing)
    sluice_client.send(queue, "x", max_attempts=1)
    summary = run(sluice_client, queue, handler)
    assert (summary.acked, summary.nacked, summary.released, left) == (1, 0, 1, [0])
    assert set(attempts) == {1}


@pytest.mark.parametrize("code", ["unreachable", "connection_lost"])
def test_another_server_that_is_away_is_an_error_of_the_handler(
    sluice_client: Client, queue: str, code: str
) -> None:
    async def handler(job: Job, tx: aio.Transaction) -> None:
        await tx.put("never", "x")
        raise error_of(code, "another server")

    sluice_client.send(queue, "x", max_attempts=1)
    assert run(sluice_client, queue, handler).nacked == 1


def test_nothing_happens_after_the_message_is_lost(sluice_client: Client, queue: str) -> None:
    client = sluice_client

    def handler(job: Job, tx: Transaction) -> None:
        tx.put("staged", "x")
        client.stubs.messages.Cancel(messages_pb2.ChangeRequest(id=job.message.id))

    client.send(queue, "x")
    summary = run(client, queue, handler)
    eventually(lambda: is_empty(client, queue))
    assert (summary.acked, client.documents.find("staged")) == (0, None)


def test_counts_are_right_under_contention(sluice_client: Client, queue: str) -> None:
    client = sluice_client
    client.documents.put("sum", 0)

    async def handler(job: Job, tx: aio.Transaction) -> None:
        document = await tx.get("sum")
        assert document is not None
        await tx.put("sum", document.value + job.value)

    client.send_many(queue, [Outgoing(n, backoff=0.01) for n in range(10)])
    assert run(client, queue, handler, concurrency=4).acked == 10
    assert client.documents.get("sum").value == sum(range(10))
