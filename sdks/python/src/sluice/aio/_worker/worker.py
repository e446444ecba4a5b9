"""The worker: takes messages, runs a handler for each, and settles them."""

from __future__ import annotations

import asyncio
import inspect
import logging
import signal
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ... import _encode as encode
from ..._otel import span_of
from ..._proto import common_pb2
from ..._proto import session_pb2 as pb
from ..._settle import Settlement, extension
from ..._values import Duration, seconds_of
from ...errors import SluiceError
from ...messages import Message
from ...work import Dead, Job, Release, Retry, Summary, WorkerOptions
from .leases import Leases
from .link import NO_LOSS, Broken, Link, Terms
from .settler import Settler
from .transactional import TransactionalHandler, in_transaction

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .._client import Client

LOG = logging.getLogger("sluice.worker")
CREDIT_MAX = 10_000
TICK_MAX = 0.25
#: Time without a message after which a queue counts as empty.
EMPTY_AFTER = 0.5
#: A function of a job; what it returns is the result of the message.
Handler = Callable[[Job], Any]


class Worker:
    """Runs a handler for each message of some queues.

    A handler that returns acks its message, with what it returns as the result. :class:`Retry`,
    :class:`Dead` and :class:`Release` say otherwise; any other exception is a failed attempt, with its
    text. Asynchronous handlers run on the loop, others in a pool of threads. Leases are renewed behind the
    scenes for as long as handlers run.
    """

    def __init__(
        self,
        client: Client,
        queues: str | Sequence[str],
        handler: Handler,
        *,
        concurrency: int = 10,
        prefetch: int = 0,
        lease: Duration = 30,
        name: str = "",
        until_empty: bool = False,
    ) -> None:
        """``concurrency``: largest number of handlers at a time. ``prefetch``: messages held beyond them.

        ``lease``: after a crash of this process its messages come back after so long; at least a second.
        ``until_empty``: end when nothing has come for half a second and nothing is in hand.
        """
        self._client, self._handler = client, handler
        self._is_async = inspect.iscoroutinefunction(handler)
        self._concurrency, self._until_empty = max(1, concurrency), until_empty
        loop = asyncio.get_running_loop()
        self._leases = Leases(max(1.0, seconds_of(lease, "lease")), loop.time)
        names = [queues] if isinstance(queues, str) else list(queues)
        credit = min(self._concurrency + prefetch, CREDIT_MAX)
        self._link = Link(client._core, Terms(names, credit, name), self._leases, self._take)
        self._settler = Settler(client, self._link, credit, self._leases.lease)
        self._waiting: deque[Job] = deque()
        self._running: set[asyncio.Task[None]] = set()
        self._stopping, self._aborting = asyncio.Event(), asyncio.Event()
        self._pool = ThreadPoolExecutor(self._concurrency, "sluice-worker")

    @classmethod
    def transactional(
        cls,
        client: Client,
        queues: str | Sequence[str],
        handler: TransactionalHandler,
        *,
        transaction_ttl: Duration = 300,
        **options: Unpack[WorkerOptions],
    ) -> Worker:
        """A worker whose handlers get a transaction as well, which is theirs alone.

        When the handler returns, all that it has staged is committed together with the ack of its message;
        or, if the lease is lost, nothing of it. When it raises, nothing that it has staged happens, and the
        exception says what becomes of the message. After a conflict with others the handler runs again, on
        fresh reads, up to 20 times: what it does beside its transaction has to bear repeating.

        ``transaction_ttl``: longest time of a handler. The other options are those of a worker.
        """
        return cls(client, queues, in_transaction(client, handler, transaction_ttl), **options)

    def stop(self) -> None:
        """Takes no more messages, finishes what runs, gives back what has not begun.

        Called on the loop. A second call ends what runs and gives it back, too.
        """
        if self._stopping.is_set():
            self._aborting.set()
        self._stopping.set()

    async def run(self, *, handle_signals: bool = False) -> Summary:
        """Runs until it is told to stop, and tells what it has done.

        With ``handle_signals`` SIGTERM and SIGINT tell it so. A server that is away is tried again for ever;
        an error that does not pass is raised, after what runs has finished.
        """
        signals = _signals(self.stop) if handle_signals else []
        session = asyncio.create_task(self._link.run())
        helpers = [asyncio.create_task(self._settler.run()), asyncio.create_task(self._tick())]
        stopped = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({session, stopped}, return_when=asyncio.FIRST_COMPLETED)
            self._stopping.set()
            await self._finish()
            if session.done():
                session.result()
            return self._settler.summary
        finally:
            await _end([session, stopped, *helpers])
            self._pool.shutdown(wait=False)
            for number in signals:
                asyncio.get_running_loop().remove_signal_handler(number)

    async def _finish(self) -> None:
        await self._link.stop()
        while self._waiting:
            self._settle(Settlement.release(self._waiting.popleft().message.receipt))
        aborting = asyncio.create_task(self._abort())
        while self._running:
            await asyncio.wait(self._running)
        await _end([aborting])
        await self._settler.done()
        await self._link.close()

    async def _abort(self) -> None:
        """Ends what runs. Not before the server delivers no more: it would come back at once."""
        await self._aborting.wait()
        for task in list(self._running):
            task.cancel()

    def _take(self, messages: Sequence[common_pb2.Delivered]) -> None:
        for one in messages:
            job = Job(encode.delivered(one), self._client, self._pool)
            self._leases.add(job)
            if self._stopping.is_set():
                self._settle(Settlement.release(job.message.receipt))
            else:
                self._waiting.append(job)
        self._start()

    def _start(self) -> None:
        while self._waiting and len(self._running) < self._concurrency and not self._stopping.is_set():
            job = self._waiting.popleft()
            if job.lost.is_set():
                self._leases.remove(job.message.receipt)
                continue
            task = asyncio.create_task(self._work(job))
            self._leases.started(job, task)
            self._running.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._start()

    async def _work(self, job: Job) -> None:
        receipt = job.message.receipt
        try:
            settlement = await self._outcome(job)
        except asyncio.CancelledError as cancelled:
            if job.lost.is_set() or self._aborting.is_set():
                # Its lease is lost, or it is given back; a cancelled message wants to be settled, too.
                settlement = Settlement.release(receipt)
            else:
                # The worker has not cancelled it: something of the handler's own was.
                settlement = _failed(job.message, cancelled)
        if settlement is None:
            self._settler.ack(receipt)
            self._leases.remove(receipt)
        else:
            self._settle(settlement)

    async def _outcome(self, job: Job) -> Settlement | None:
        """How the message ends; None: by an ack without a result."""
        message = job.message
        try:
            with span_of(message.queue, message.id, message.headers):
                result = await self._call(job)
            return None if result is None else Settlement.ack(message.receipt, result)
        except Exception as error:
            return _failed(message, error)

    async def _call(self, job: Job) -> Any:
        if self._is_async:
            return await self._handler(job)
        result = await job.in_thread(lambda: self._handler(job))
        return await result if inspect.isawaitable(result) else result

    def _settle(self, settlement: Settlement) -> None:
        self._settler.add(settlement)
        self._leases.remove(settlement.item.receipt)

    @property
    def _is_idle(self) -> bool:
        return not (self._running or self._waiting or len(self._leases)) and self._settler.is_idle

    async def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        idle_since = loop.time()
        extending: asyncio.Task[None] | None = None
        while True:
            await asyncio.sleep(min(TICK_MAX, self._leases.lease / 10))
            self._leases.end_due()
            if extending is None or extending.done():
                extending = asyncio.create_task(self._extend(self._leases.take_due()))
            if not (self._is_idle and self._link.is_attached):
                idle_since = loop.time()
            elif self._link.is_draining:
                await self._link.end()
            elif self._until_empty and loop.time() - idle_since >= EMPTY_AFTER:
                self._stopping.set()

    async def _extend(self, receipts: list[str]) -> None:
        if not receipts:
            return
        since = asyncio.get_running_loop().time()
        with suppress(SluiceError, asyncio.TimeoutError):
            # A try that hangs must not outlast the leases: a later one may get through.
            errors = await asyncio.wait_for(self._ask_to_extend(receipts), self._leases.lease / 4)
            for receipt, error in zip(receipts, errors, strict=True):
                if error is None:
                    self._leases.extended(receipt, since)
                elif error.code not in NO_LOSS:
                    self._leases.lose([receipt])

    async def _ask_to_extend(self, receipts: list[str]) -> list[SluiceError | None]:
        lease = self._leases.lease
        frame = pb.ExtendMany(items=[extension(receipt, lease) for receipt in receipts])
        try:
            return await self._link.ask(len(receipts), extend=frame)
        except Broken:
            return await self._client.extend_many(receipts, lease)


def _failed(message: Message, error: BaseException) -> Settlement:
    """How a message ends whose handler has raised this."""
    receipt = message.receipt
    try:
        if isinstance(error, Retry):
            return Settlement.nack(receipt, str(error), _not_negative(error.after))
        if isinstance(error, Release):
            return Settlement.release(receipt, _not_negative(error.after))
        if isinstance(error, Dead):
            return Settlement.reject(receipt, str(error))
        LOG.error("message %s of %s, attempt %d", message.id, message.queue, message.attempt, exc_info=error)
        return Settlement.nack(receipt, f"{type(error).__name__}: {error}")
    except Exception as fault:
        # A delay that is no number, or a text that cannot be made.
        LOG.exception("message %s of %s: its error cannot be told", message.id, message.queue)
        kinds = type(error).__name__, type(fault).__name__
        return Settlement.nack(receipt, "{}, which cannot be told: {}".format(*kinds))


def _not_negative(after: Duration | None) -> float | None:
    return None if after is None else max(seconds_of(after, "after"), 0.0)


def _signals(stop: Callable[[], None]) -> list[signal.Signals]:
    numbers = [signal.SIGTERM, signal.SIGINT]
    for number in numbers:
        asyncio.get_running_loop().add_signal_handler(number, stop)
    return numbers


async def _end(tasks: Sequence[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
