"""Locks whose holder loses the server."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from sluice._proto import services
from sluice.aio import Client
from sluice.aio._core import Core
from sluice.testing import Server


class Proxy:
    """A connection to a server that can be cut, and made again."""

    def __init__(self, server: Server) -> None:
        self._host, port = server.url.removeprefix("http://").split(":")
        self._port, self._writers = int(port), list[asyncio.StreamWriter]()

    async def start(self, port: int = 0) -> int:
        self._listening = await asyncio.start_server(self._serve, "127.0.0.1", port)
        return int(self._listening.sockets[0].getsockname()[1])

    def cut(self) -> None:
        self._listening.close()
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(self._host, self._port)
        self._writers += [writer, back]
        await asyncio.gather(_pipe(reader, back), _pipe(there, writer))


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


def test_a_lost_lock_is_told_before_another_holds_it(sluice_server: Server, queue: str) -> None:
    async def work() -> None:
        proxy = Proxy(sluice_server)
        port = await proxy.start()
        async with Client(f"http://127.0.0.1:{port}") as cut, Client(sluice_server.url) as other:
            began = asyncio.get_running_loop().time()
            held = await cut.lock(queue, ttl=5).__aenter__()
            await asyncio.sleep(0.2)
            proxy.cut()
            waiting = asyncio.create_task(other.lock(queue, wait=30).__aenter__())
            await held.lost.wait_async()
            assert asyncio.get_running_loop().time() - began < 0.95 * 5
            assert not waiting.done()
            await (await waiting).release()

    asyncio.run(work())


def test_a_renewal_that_fails_is_tried_again_soon(sluice_server: Server, queue: str) -> None:
    async def work() -> None:
        proxy = Proxy(sluice_server)
        port = await proxy.start()
        async with Client(f"http://127.0.0.1:{port}") as client, client.lock(queue, ttl=6) as held:
            await asyncio.sleep(0.2)
            proxy.cut()
            # It is away when the renewal is due, and back before the time is over.
            await asyncio.sleep(3.5)
            await proxy.start(port)
            await asyncio.sleep(3.5)
            assert not held.lost.is_set()
        proxy.cut()

    asyncio.run(work())


def test_a_claim_is_withdrawn_whose_caller_is_cancelled(sluice_server: Server, queue: str) -> None:
    async def claims() -> None:
        async with Client(sluice_server.url) as client, Client(sluice_server.url) as other:
            held = await client.locks.acquire(queue, ttl=60)
            claim = asyncio.create_task(other.locks.acquire(queue, ttl=60, wait=60))
            await _waiters(client, queue, 1)
            claim.cancel()
            with pytest.raises(asyncio.CancelledError):
                await claim
            await _waiters(client, queue, 0)
            await client.locks.release(held.token)
            assert (await client.locks.show(queue)).holder_count == 0

    asyncio.run(claims())


def test_a_lock_is_free_that_was_granted_to_a_caller_who_has_gone(
    sluice_server: Server, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    once, answered = Core._once, asyncio.Event()

    async def late(self: Core, server: int, method: Any, *request: Any) -> Any:
        answer = await once(self, server, method, *request)
        if method is services.LOCKS_ACQUIRE and not answered.is_set():
            answered.set()
            await asyncio.sleep(60)
        return answer

    async def claims() -> None:
        async with Client(sluice_server.url) as client:
            claim = asyncio.create_task(client.locks.acquire(queue, ttl=60))
            await answered.wait()
            claim.cancel()
            with pytest.raises(asyncio.CancelledError):
                await claim
        # The client is closed when the claim is withdrawn.
        async with Client(sluice_server.url) as other:
            await other.locks.acquire(queue)

    monkeypatch.setattr(Core, "_once", late)
    asyncio.run(claims())


async def _waiters(client: Client, key: str, number: int) -> None:
    for _ in range(200):
        if (await client.locks.show(key)).waiter_count == number:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"there are not {number} waiters")
