"""The SDK for asyncio, and what the conformance scenarios leave out."""

from __future__ import annotations

import asyncio
import io
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from sluice import Dead, InvalidArgument, LeaseLost, LockHeld, MessageDead, NotFound, Outgoing, Release
from sluice.aio import Client, Job, Worker
from sluice.testing import Server


def run(server: Server, work: Callable[[Client], Awaitable[None]]) -> None:
    async def main() -> None:
        async with Client(server.url) as client:
            await work(client)

    asyncio.run(main())


def test_sends_receives_and_settles(sluice_server: Server, queue: str) -> None:
    async def work(client: Client) -> None:
        await client.send(queue, {"n": 1})
        [message] = await client.receive(queue, wait=5)
        await client.extend(message, 60, percent=50, note="half", checkpoint=b"here")
        await client.nack(message, "again", delay=0)
        [message] = await client.receive({queue: 1}, wait=5)
        assert (message.attempt, message.checkpoint) == (2, b"here")
        await client.release(message)
        [message] = await client.receive([queue], wait=5, consumer="ann")
        await client.ack(message)
        # A repeat is a success, and so is an extension of what is settled.
        await client.ack(message)
        await client.extend(message)
        with pytest.raises(InvalidArgument):
            await client.extend("nonsense")

    run(sluice_server, work)


def test_worker_runs_until_the_queue_is_empty(sluice_server: Server, queue: str) -> None:
    released: list[int] = []

    async def handler(job: Job) -> int:
        if job.value == 3 and not released:
            released.append(job.message.attempt)
            raise Release(after=0.1)
        await job.report_async(50, "half")
        return int(job.value) * 2

    async def work(client: Client) -> None:
        sent = await client.send_many(queue, list(range(20)))
        kept = await client.send(queue, 21, result_ttl=60)
        summary = await Worker(client, queue, handler, until_empty=True, name="w").run()
        assert (summary.acked, summary.released, len(sent.ids)) == (21, 1, 20)
        assert (await client.result(kept)).value == 42

    run(sluice_server, work)


def test_worker_ends_with_what_does_not_pass(sluice_server: Server) -> None:
    async def work(client: Client) -> None:
        with pytest.raises(Exception, match="invalid_name"):
            await Worker(client, "no such name!", lambda job: None).run()

    run(sluice_server, work)


def test_cancelled_message_cancels_its_handler(sluice_server: Server, queue: str) -> None:
    from sluice._proto import messages_pb2

    begun: asyncio.Queue[Job] = asyncio.Queue()
    ended: list[bool] = []

    async def handler(job: Job) -> None:
        begun.put_nowait(job)
        try:
            await asyncio.sleep(30)
        finally:
            ended.append(job.lost.is_set())

    async def work(client: Client) -> None:
        sent = await client.send(queue, "x")
        worker = Worker(client, queue, handler)
        running = asyncio.create_task(worker.run())
        job = await begun.get()
        await client.stubs.messages.Cancel(messages_pb2.ChangeRequest(id=sent.id))
        await asyncio.wait_for(job.lost.wait_async(), 60)
        worker.stop()
        await running
        assert ended == [True]

    run(sluice_server, work)


def test_second_stop_gives_back_what_runs(sluice_server: Server, queue: str) -> None:
    begun: asyncio.Queue[Job] = asyncio.Queue()

    async def handler(job: Job) -> None:
        begun.put_nowait(job)
        await asyncio.sleep(30)

    async def work(client: Client) -> None:
        await client.send(queue, "x")
        worker = Worker(client, queue, handler)
        running = asyncio.create_task(worker.run())
        await begun.get()
        worker.stop()
        worker.stop()
        summary = await asyncio.wait_for(running, 60)
        assert summary.released == 1
        assert (await client.receive(queue))[0].attempt == 1

    run(sluice_server, work)


def test_locks_and_transactions(sluice_server: Server, queue: str) -> None:
    key = queue

    async def work(client: Client) -> None:
        async with client.lock([key, key + "-2"], owner="ann") as held:
            await client.documents.put(key, "guarded", token=held.token)
            with pytest.raises(LockHeld):
                async with client.lock(key, wait=0.05):
                    pass
        async with client.lock(key, shared=True), client.lock(key, shared=True):
            assert (await client.locks.show(key)).holder_count == 2
        with pytest.raises(LeaseLost):
            await client.documents.put(key, "late", token=held.token)
        async with client.transaction() as tx:
            await tx.put("staged", {"a": 1})
            await tx.increment("staged", "/a", 2)
            found = await tx.get("staged")
            assert found is not None
            assert (found.payload, found.value, found.version) == (b'{"a":3}', {"a": 3}, None)
        assert tx.committed is not None
        assert len(tx.committed.results) == 1

    run(sluice_server, work)


def test_lock_is_watched(sluice_server: Server, queue: str) -> None:
    async def work(client: Client) -> None:
        states = client.locks.watch(queue)
        assert (await states.__anext__()).holder_count == 0
        async with client.lock(queue):
            assert (await states.__anext__()).holder_count == 1
        assert (await states.__anext__()).holder_count == 0

    run(sluice_server, work)


def test_attachments(sluice_server: Server, queue: str) -> None:
    data = random.Random(7).randbytes(3_000_000)

    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(data), 100_000):
            yield data[at : at + 100_000]

    async def work(client: Client) -> None:
        files, key = client.attachments, queue
        await client.documents.put(key, {})
        await files.upload(key, "a", data, content_type="image/png", if_absent=True)
        await files.upload(key, "b", io.BytesIO(data))
        await files.upload(key, "c", pieces())
        assert [(one.name, one.bytes) async for one in files.list(key)] == [(n, len(data)) for n in "abc"]
        for name in "abc":
            assert b"".join([one async for one in files.download(key, name)]) == data
        assert b"".join([one async for one in files.download(key, "a", offset=2_500_000)]) == data[2_500_000:]
        await files.delete(key, "a")
        with pytest.raises(NotFound):
            await files.download(key, "a").__anext__()

    run(sluice_server, work)


def test_worker_keeps_its_messages_through_a_restart(tmp_path: os.PathLike[str], queue: str) -> None:
    begun: asyncio.Queue[int] = asyncio.Queue()
    go = asyncio.Event()

    async def handler(job: Job) -> None:
        begun.put_nowait(job.message.attempt)
        await go.wait()

    async def work() -> None:
        server = Server(f"--data-dir={tmp_path}/data")
        listen = server.url.removeprefix("http://")
        async with Client(server.url) as client:
            await client.send(queue, "x")
            worker = Worker(client, queue, handler, lease=10)
            running = asyncio.create_task(worker.run())
            assert await begun.get() == 1
            server.process.kill()
            server.stop()
            with Server(f"--data-dir={tmp_path}/data", listen=listen):
                await asyncio.sleep(2)
                assert await client.receive(queue) == []
                go.set()
                await asyncio.sleep(0.5)
                worker.stop()
                summary = await running
        assert (summary.acked, begun.qsize()) == (1, 0)

    asyncio.run(work())


def test_worker_goes_on_when_the_server_is_stopped_in_order(tmp_path: os.PathLike[str], queue: str) -> None:
    handled: list[int] = []

    async def handler(job: Job) -> None:
        handled.append(job.value)
        await asyncio.sleep(0.3)

    async def work() -> None:
        server = Server(f"--data-dir={tmp_path}/data")
        listen = server.url.removeprefix("http://")
        async with Client(server.url) as client:
            await client.send_many(queue, list(range(12)))
            running = asyncio.create_task(
                Worker(client, queue, handler, concurrency=2, until_empty=True, lease=10).run()
            )
            while len(handled) < 4:
                await asyncio.sleep(0.05)
            await asyncio.to_thread(server.stop)
            with Server(f"--data-dir={tmp_path}/data", listen=listen):
                summary = await asyncio.wait_for(running, 90)
        # Nothing was done twice: what ran when the server stopped was settled before it ended.
        assert (sorted(handled), summary.acked) == (list(range(12)), 12)

    asyncio.run(work())


def test_a_batch_of_all_kinds_has_the_outcome_of_each(queue: str) -> None:
    with Server() as server:
        run(server, lambda client: _all_kinds(server, client, queue))


async def _all_kinds(server: Server, client: Client, queue: str) -> None:
    sent = await client.send_many(queue, [Outgoing(n, result_ttl=7200) for n in range(40)])
    ready: list[int] = []
    go_on = asyncio.Event()

    async def handler(job: Job) -> dict[str, int] | None:
        if job.value % 4 != 2:
            await client.extend(job.message, 7200)
        if job.message.attempt == 1:
            ready.append(job.value)
            await go_on.wait()
        if job.value % 4 == 3:
            raise Dead("no")
        return {"n": job.value} if job.value % 4 == 1 else None

    working = asyncio.create_task(Worker(client, queue, handler, concurrency=40, until_empty=True).run())
    while len(ready) < 40:
        await asyncio.sleep(0.01)
    # The leases of every fourth message end meanwhile: these come again.
    await asyncio.to_thread(server.advance, minutes=10)
    go_on.set()
    summary = await working
    assert (summary.acked, summary.rejected, summary.nacked, summary.lost) == (30, 10, 0, 10)
    for n, message in enumerate(sent.ids):
        if n % 4 == 3:
            with pytest.raises(MessageDead, match="rejected"):
                await client.result(message, timeout=5)
        else:
            assert (await client.result(message, timeout=5)).value == ({"n": n} if n % 4 == 1 else b"")
