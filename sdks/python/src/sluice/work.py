"""What a handler of messages gets, and how it says what became of one."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from ._signal import Signal
from ._values import Duration
from .messages import Message

if TYPE_CHECKING:
    from .aio._client import Client

T = TypeVar("T")


class WorkerOptions(TypedDict, total=False):
    """The options of a worker."""

    concurrency: int
    prefetch: int
    lease: Duration
    name: str
    until_empty: bool


class Retry(Exception):
    """Raised by a handler: another attempt follows, after the time given or else the backoff."""

    def __init__(self, error: str = "", *, after: Duration | None = None) -> None:
        super().__init__(error)
        self.after = after


class Dead(Exception):
    """Raised by a handler: this will never work. The message is a dead letter at once."""


#: Another name of :class:`Dead`.
Reject = Dead


class Release(Exception):
    """Raised by a handler: not now. The message is ready again, and the attempt does not count."""

    def __init__(self, *, after: Duration | None = None) -> None:
        super().__init__()
        self.after = after


class Job:
    """A message that a handler works on."""

    def __init__(self, message: Message, client: Client, executor: Executor) -> None:
        self.message = message
        #: The asyncio client, on whose loop asynchronous handlers run.
        self.client = client
        #: Given when the lease is lost or the message was cancelled: the work is of no use then. An
        #: asynchronous handler is cancelled as well.
        self.lost = Signal()
        #: The work is done in a thread, which cannot be cancelled.
        self.is_threaded = False
        self._executor = executor
        self._loop = asyncio.get_running_loop()

    @property
    def value(self) -> Any:
        """The payload by its media type: the value of JSON, a text, or bytes."""
        return self.message.value

    async def report_async(
        self,
        percent: int | None = None,
        note: str | None = None,
        *,
        checkpoint: bytes | None = None,
        add_cost: int | None = None,
    ) -> None:
        """Reports progress, leaves a checkpoint for the next attempt, and adds to the cost of the message."""
        await self.client.extend(
            self.message, percent=percent, note=note, checkpoint=checkpoint, add_cost=add_cost
        )

    def report(
        self,
        percent: int | None = None,
        note: str | None = None,
        *,
        checkpoint: bytes | None = None,
        add_cost: int | None = None,
    ) -> None:
        """The same for handlers that run in a thread."""
        reporting = self.report_async(percent, note, checkpoint=checkpoint, add_cost=add_cost)
        asyncio.run_coroutine_threadsafe(reporting, self._loop).result()

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Runs a function in the thread pool of the worker."""
        self.is_threaded = True
        context = contextvars.copy_context()
        return await self._loop.run_in_executor(self._executor, context.run, work)


@dataclass
class Summary:
    """What a worker has done."""

    acked: int = 0
    nacked: int = 0
    rejected: int = 0
    released: int = 0
    #: Messages whose lease was over, or that were gone, when they were to be settled.
    lost: int = 0
    #: Messages that could not be settled because no server answered. They come back.
    unsettled: int = 0
