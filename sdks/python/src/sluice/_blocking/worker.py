"""The worker for programs without an event loop."""

from __future__ import annotations

import inspect
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .. import aio
from .._values import Duration
from ..work import Job, Summary, WorkerOptions
from .client import Client
from .contexts import Transaction

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Worker:
    """Runs a handler for each message of some queues: see :class:`sluice.aio.Worker`.

    Handlers run in a pool of threads; asynchronous ones on the loop of the client.
    """

    def __init__(
        self,
        client: Client,
        queues: str | Sequence[str],
        handler: aio.Handler,
        *,
        concurrency: int = 10,
        prefetch: int = 0,
        lease: Duration = 30,
        name: str = "",
        until_empty: bool = False,
    ) -> None:
        """The options are those of :class:`sluice.aio.Worker`."""
        self._begin(
            client,
            lambda client: aio.Worker(
                client,
                queues,
                handler,
                concurrency=concurrency,
                prefetch=prefetch,
                lease=lease,
                name=name,
                until_empty=until_empty,
            ),
        )

    @classmethod
    def transactional(
        cls,
        client: Client,
        queues: str | Sequence[str],
        handler: Callable[[Job, Any], Any],
        *,
        transaction_ttl: Duration = 300,
        **options: Unpack[WorkerOptions],
    ) -> Worker:
        """A worker whose handlers get a transaction as well: see :meth:`sluice.aio.Worker.transactional`.

        The transaction is a :class:`sluice.Transaction`, or for an asynchronous handler that of
        :mod:`sluice.aio`.
        """
        portal = client.portal

        async def in_thread(job: Job, transaction: aio.Transaction) -> Any:
            return await job.in_thread(lambda: handler(job, Transaction.of(portal, transaction)))

        inner = handler if inspect.iscoroutinefunction(handler) else in_thread
        worker = cls.__new__(cls)
        worker._begin(
            client,
            lambda client: aio.Worker.transactional(
                client, queues, inner, transaction_ttl=transaction_ttl, **options
            ),
        )
        return worker

    def _begin(self, client: Client, make: Callable[[aio.Client], aio.Worker]) -> None:
        self._portal, self._make = client.portal, make
        self._worker: aio.Worker | None = None
        self._stopped_early = False

    def run(self) -> Summary:
        """Runs until it is told to stop, and tells what it has done.

        In the main thread SIGTERM and SIGINT tell it so: it takes no more messages, finishes what runs, and
        gives back what has not begun. A second signal gives back what runs, too.
        """
        with _signals(self.stop):
            return self._portal.run(self._run)

    def stop(self) -> None:
        """Tells it to stop; from any thread."""
        self._portal.call_soon(self._stop)

    async def _run(self, client: aio.Client) -> Summary:
        self._worker = self._make(client)
        if self._stopped_early:
            self._worker.stop()
        return await self._worker.run()

    def _stop(self) -> None:
        if self._worker is None:
            self._stopped_early = True
        else:
            self._worker.stop()


@contextmanager
def _signals(stop: Callable[[], None]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def told(number: int, frame: Any) -> None:
        stop()

    before = {number: signal.signal(number, told) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
