"""Uploads whose source or server fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

import sluice
from sluice import SluiceError
from sluice.aio import Client
from sluice.testing import Server


async def _broken() -> AsyncIterator[bytes]:
    yield bytes(100_000)
    raise OSError("the disk is broken")


def test_an_upload_raises_what_its_source_raises(sluice_server: Server, queue: str) -> None:
    async def work() -> None:
        async with Client(sluice_server.url) as client:
            await client.documents.put(queue, {})
            with pytest.raises(OSError, match="the disk is broken"):
                await client.attachments.upload(queue, "a", _broken())
            assert [one async for one in client.attachments.list(queue)] == []

    asyncio.run(work())


def test_a_blocking_upload_raises_what_its_source_raises(sluice_client: sluice.Client, queue: str) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"a"
        raise OSError("the disk is broken")

    sluice_client.documents.put(queue, {})
    with pytest.raises(OSError, match="the disk is broken"):
        sluice_client.attachments.upload(queue, "a", pieces())


def test_an_upload_that_fails_asks_another_server_next(sluice_server: Server, queue: str) -> None:
    async def work() -> None:
        async with Client(sluice_server.url) as client:
            await client.documents.put(queue, {})
        async with Client(["http://127.0.0.1:1", sluice_server.url], connect_retry_for=1) as client:
            with pytest.raises(SluiceError) as away:
                await client.attachments.upload(queue, "a", b"abc")
            assert away.value.code == "unreachable"
            await client.attachments.upload(queue, "a", b"abc")

    asyncio.run(work())
