"""The calls that are repeated after answers that were lost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from sluice import Operations
from sluice.aio import Client
from sluice.aio._core import Core

TABLE = json.loads(Path(__file__, "../../../conformance/repeats.json").resolve().read_text())


class Asked(Exception):
    """A call that was not made."""


CALLS: list[Callable[[Client], Awaitable[Any]]] = [
    lambda client: client.send("q", "x"),
    lambda client: client.send_many("q", ["x"]),
    lambda client: client.result("m"),
    lambda client: client.receive("q"),
    lambda client: client.ack("r"),
    lambda client: client.nack("r"),
    lambda client: client.release("r"),
    lambda client: client.reject("r"),
    lambda client: client.extend("r", 60),
    lambda client: client.commit(Operations()),
    lambda client: client.transaction().__aenter__(),
    lambda client: client.transaction().get("k"),
    lambda client: client.transaction().commit(),
    lambda client: client.transaction().rollback(),
    lambda client: client.locks.acquire("k"),
    lambda client: client.locks.renew("t"),
    lambda client: client.locks.release("t"),
    lambda client: client.locks.show("k"),
    lambda client: client.locks.break_("k"),
    lambda client: client.documents.put("k", "x"),
    lambda client: client.documents.patch("k", {}),
    lambda client: client.documents.get("k"),
    lambda client: client.documents.history("k"),
    lambda client: client.documents.delete("k"),
    lambda client: client.documents.list().__anext__(),
    lambda client: client.documents.query().__anext__(),
    lambda client: client.attachments.list("k").__anext__(),
    lambda client: client.attachments.delete("k", "n"),
    lambda client: client.schedules.put("s", "q", every=60),
    lambda client: client.schedules.get("s"),
    lambda client: client.schedules.list().__anext__(),
    lambda client: client.schedules.next("s"),
    lambda client: client.schedules.pause("s"),
    lambda client: client.schedules.resume("s"),
    lambda client: client.schedules.trigger("s"),
    lambda client: client.schedules.delete("s"),
]


async def _asked(call: Callable[[Client], Awaitable[Any]]) -> tuple[str, bool]:
    """The name of a call, and whether it may be repeated."""
    asked: list[tuple[str, bool]] = []

    async def unary(core: Core, method: Any, request: Any, *, timeout: float = 0, safe: bool = False) -> None:
        asked.append((method.path.removeprefix("/sluice.v1."), safe))
        raise Asked

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Core, "unary", unary)
        async with Client("127.0.0.1:1") as client:
            with pytest.raises(Asked):
                await call(client)
    return asked[0]


def test_the_calls_that_are_repeated_are_those_of_the_table() -> None:
    async def work() -> None:
        for call in CALLS:
            name, is_safe = await _asked(call)
            assert is_safe == (name not in TABLE["once"]), name

    asyncio.run(work())


def test_what_adds_each_time_is_not_repeated() -> None:
    async def work() -> None:
        assert await _asked(lambda client: client.extend("r", add_cost=1)) == ("Messages/Extend", False)
        in_transaction = await _asked(lambda client: client.transaction().receive("q"))
        assert in_transaction == ("Messages/Receive", False)

    asyncio.run(work())
