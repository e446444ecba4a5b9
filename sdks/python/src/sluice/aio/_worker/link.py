"""The session of a worker, which is begun again when it breaks, with the receipts of what is in hand."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import grpc.aio

from ..._proto import common_pb2, services
from ..._proto import session_pb2 as pb
from ..._status import from_item, from_rpc
from ...errors import AlreadySettled, LimitReached, Overloaded, SluiceError, Timeout, Unavailable, error_of
from .._core import Core
from .leases import Leases

LOG = logging.getLogger("sluice.worker")
EOF: Any = grpc.aio.EOF  # type: ignore[attr-defined]
CONSUMER = 1
PAUSE_MAX = 5.0
#: The server says something every 20 s.
SILENCE_MAX = 60.0
CLOSE_WITHIN = 2.0
GRACE_MAX_MS = 3_600_000
#: A lost lease is not what these mean: the handler has just settled the message, or does so.
NO_LOSS = {"already_settled", "in_doubt"}


class Broken(Exception):
    """The session has ended before the answer came."""


@dataclass
class Terms:
    """With what the consumer is attached."""

    queues: Sequence[str]
    credit: int
    name: str


class Link:
    """Keeps the session, and asks over it."""

    def __init__(
        self, core: Core, terms: Terms, leases: Leases, take: Callable[[Sequence[common_pb2.Delivered]], None]
    ) -> None:
        self._core, self._terms, self._leases, self._take = core, terms, leases, take
        self._call: Any = None
        self._number = 0
        self._writing = asyncio.Lock()
        self._pending: dict[int, asyncio.Future[pb.FrameResult]] = {}
        self._closing = False
        self.is_attached = False
        #: The server is about to stop: the session ends when nothing is in hand.
        self.is_draining = False

    async def run(self) -> None:
        """Runs until it is closed, or refused for good."""
        failures = 0
        loop = asyncio.get_running_loop()
        while not self._closing:
            server, began = self._core.current, loop.time()
            try:
                await self._session(server)
                error = error_of("connection_lost", "the server has ended the session")
            except SluiceError as caught:
                error = caught
            self._break()
            if self._closing:
                return
            if not _passes(error):
                raise error
            failures = 1 if loop.time() - began > PAUSE_MAX else failures + 1
            moved = self._core.pass_on(server, error)
            LOG.warning("session with %s: %s", self._core.config.addresses[server], error)
            await asyncio.sleep(0 if moved and failures <= 2 else _pause(failures))

    async def ask(self, items: int, **frame: Any) -> list[SluiceError | None]:
        """Sends a frame; the error of each of its items, or None."""
        if not self.is_attached:
            raise Broken
        answer = await self._send(self._call, **frame)
        # A session that breaks cancels the answer, and not who waits for it.
        await asyncio.wait([answer])
        if answer.cancelled():
            raise Broken
        result = answer.result()
        if result.HasField("error"):
            raise from_item(result.error)
        errors: list[SluiceError | None] = [None] * items
        for failure in result.failures:
            if not failure.already_settled:
                errors[failure.item] = from_item(failure.error)
        return [None if isinstance(error, AlreadySettled) else error for error in errors]

    async def stop(self) -> None:
        """No further messages."""
        self._terms.credit = 0
        none = pb.SetCredit(consumer=CONSUMER, credit=0)
        with suppress(Broken, SluiceError, asyncio.TimeoutError):
            await asyncio.wait_for(self.ask(0, credit=none), CLOSE_WITHIN)

    async def close(self) -> None:
        """Gives back at once what came too late, and ends the session."""
        self._closing = True
        with suppress(Broken, SluiceError, asyncio.TimeoutError):
            await asyncio.wait_for(self.ask(0, detach=pb.Detach(consumer=CONSUMER)), CLOSE_WITHIN)
        await self.end()

    async def end(self) -> None:
        """Ends the stream in order, if there is one."""
        if self._call is not None:
            with suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError, grpc.aio.UsageError):
                await self._call.done_writing()

    async def _session(self, server: int) -> None:
        call = self._core.duplex(server, services.SESSIONS_SESSION)
        self._call, self._number = call, 0
        attached: asyncio.Future[pb.FrameResult] | None = None
        try:
            with suppress(Broken):  # the reader hears why
                attached = await self._begin(call)
            while (frame := await asyncio.wait_for(call.read(), SILENCE_MAX)) is not EOF:
                self._heard(frame)
                if attached and attached.done() and attached.result().HasField("error"):
                    raise from_item(attached.result().error)
        except grpc.aio.AioRpcError as rpc:
            raise from_rpc(rpc) from None
        except asyncio.TimeoutError:
            raise error_of("connection_lost", "nothing came for a minute") from None
        finally:
            call.cancel()

    async def _begin(self, call: Any) -> asyncio.Future[pb.FrameResult]:
        await self._send(call, open=pb.Open(namespace=self._core.config.namespace))
        resumed = self._leases.receipts()
        attached = await self._send(call, attach=self._attach(resumed))
        attached.add_done_callback(lambda done: self._attached(done, resumed))
        return attached

    def _attach(self, resumed: list[str]) -> pb.Attach:
        lease_ms = round(self._leases.lease * 1000)
        return pb.Attach(
            consumer=CONSUMER,
            queues=self._terms.queues,
            credit=self._terms.credit,
            lease_ms=lease_ms,
            name=self._terms.name,
            grace_ms=min(lease_ms, GRACE_MAX_MS),
            resume=resumed,
        )

    def _attached(self, done: asyncio.Future[pb.FrameResult], resumed: list[str]) -> None:
        if done.cancelled() or done.result().HasField("error"):
            return
        self.is_attached = True
        lost = {resumed[one.item] for one in done.result().failures if one.error.code not in NO_LOSS}
        now = asyncio.get_running_loop().time()
        for receipt in resumed:
            if receipt not in lost:
                self._leases.extended(receipt, now)
        self._leases.lose(lost)

    async def _send(self, call: Any, **frame: Any) -> asyncio.Future[pb.FrameResult]:
        answer: asyncio.Future[pb.FrameResult] = asyncio.get_running_loop().create_future()
        async with self._writing:
            if call is not self._call:
                # The session that was meant broke while others wrote; the next one begins otherwise.
                raise Broken
            self._number += 1
            self._pending[self._number] = answer
            try:
                await call.write(pb.ClientFrame(number=self._number, **frame))
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError, grpc.aio.UsageError):
                self._pending.pop(self._number, None)
                raise Broken from None
        return answer

    def _heard(self, frame: pb.ServerFrame) -> None:
        kind = frame.WhichOneof("frame")
        if kind == "result":
            waiting = self._pending.pop(frame.result.number, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(frame.result)
        elif kind == "deliveries":
            self._take(frame.deliveries.messages)
        elif kind == "cancellations":
            self._leases.lose(frame.cancellations.receipts)
        elif kind == "draining":
            self.is_draining = True
        elif kind == "detached":
            raise error_of("connection_lost", "the consumer was detached")

    def _break(self) -> None:
        """Whoever waits for an answer has to find another way."""
        self.is_attached = self.is_draining = False
        pending, self._pending = self._pending, {}
        for waiting in pending.values():
            waiting.cancel()


def _passes(error: SluiceError) -> bool:
    """Whether a later session may get what this one was refused."""
    kinds = (Unavailable, Overloaded, LimitReached, Timeout)
    return isinstance(error, kinds) or error.code == "consumer_not_found"


def _pause(failures: int) -> float:
    return random.uniform(0.5, 1) * min(PAUSE_MAX, 0.05 * 2.0 ** min(failures, 10))
