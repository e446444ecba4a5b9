"""Connections and calls: several servers, of which one is asked after another, and repeats."""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Coroutine
from typing import Any

import grpc
import grpc.aio

from .._config import Config
from .._rpc import A, Method, Q
from .._status import from_rpc
from ..errors import SluiceError

#: Longest time in seconds for what is done after a caller has gone.
AFTERWARDS_MAX = 5.0
FIRST_DELAY, DELAY_MAX = 0.025, 5.0
#: Nodes agree on a leader within about a second: a longer delay would add to that.
LEADER_DELAY_MAX = 0.1
#: Refusals before anything was done, whatever the call.
NOTHING_DONE = {
    "overloaded", "shutting_down", "not_leader", "no_leader", "in_doubt", "rate_limited", "unreachable",
}  # fmt: skip
#: What a call that does no harm twice is repeated after, too.
MAYBE_DONE = {"outcome_unknown", "connection_lost", "timeout", "internal"}
#: After these another node may do better.
ASK_ANOTHER = {
    "not_leader", "no_leader", "shutting_down", "outcome_unknown",
    "unreachable", "connection_lost", "timeout",
}  # fmt: skip
OPTIONS = [
    ("grpc.max_receive_message_length", 256 << 20),
    ("grpc.max_send_message_length", -1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
]


def random_key() -> str:
    """A key that nobody else has."""
    return secrets.token_hex(16)


class Core:
    """Makes the calls of a client."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._channels: dict[int, grpc.aio.Channel] = {}
        self._current = 0
        self._afterwards: set[asyncio.Task[None]] = set()

    @property
    def metadata(self) -> list[tuple[str, str]]:
        """What goes with each call."""
        token = self.config.token
        return [("authorization", f"Bearer {token}")] if token else []

    @property
    def current(self) -> int:
        """Number of the server that is asked."""
        return self._current

    def channel(self, server: int) -> grpc.aio.Channel:
        """The connection to a server."""
        if server not in self._channels:
            address, config = self.config.addresses[server], self.config
            if config.tls:
                made = grpc.aio.secure_channel(address, config.credentials(), options=OPTIONS)
            else:
                made = grpc.aio.insecure_channel(address, options=OPTIONS)
            self._channels[server] = made
        return self._channels[server]

    def pass_on(self, server: int, error: SluiceError) -> bool:
        """Takes another server for later calls if that may help; whether another one is asked now."""
        addresses = self.config.addresses
        if len(addresses) == 1 or error.code not in ASK_ANOTHER:
            return False
        named = error.details.get("address")
        following = addresses.index(named) if named in addresses else (server + 1) % len(addresses)
        # Another call may have passed on already.
        if self._current == server:
            self._current = following
        return self._current != server

    async def unary(
        self, method: Method[Q, A], request: Q, *, timeout: float | None = None, safe: bool = False
    ) -> A:
        """One request, one answer, repeated as far as that does no harm.

        ``timeout`` bounds one try, beyond ``request_timeout``; it is for calls that wait.
        """
        self._into_namespace(request)
        tries = Tries(self, safe)
        while True:
            server = self._current
            try:
                return await self._once(server, method, request, timeout or 0.0)
            except grpc.aio.AioRpcError as rpc:
                error = from_rpc(rpc)
            delay = tries.next_delay(error, self.pass_on(server, error))
            if delay is None:
                raise error
            await asyncio.sleep(delay)

    async def _once(self, server: int, method: Method[Q, A], request: Q, wait: float) -> A:
        call: Any = self.channel(server).unary_unary(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.answer.FromString,
        )
        answer: A = await call(request, timeout=self.config.request_timeout + wait, metadata=self.metadata)
        return answer

    async def stream(self, method: Method[Q, A], request: Q) -> AsyncGenerator[A, None]:
        """One request, a stream of answers, which ends with an error when the connection breaks."""
        self._into_namespace(request)
        server = self._current
        call: Any = self.channel(server).unary_stream(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.answer.FromString,
        )
        stream = call(request, metadata=self.metadata)
        try:
            async for answer in stream:
                yield answer
        except grpc.aio.AioRpcError as rpc:
            error = from_rpc(rpc)
            self.pass_on(server, error)
            raise error from None
        finally:
            stream.cancel()

    async def upload(self, method: Method[Q, A], requests: AsyncIterable[Q]) -> A:
        """A stream of requests, one answer; not repeated. What the requests raise is raised."""
        server = self._current
        call: Any = self.channel(server).stream_unary(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.answer.FromString,
        )
        failures: list[Exception] = []
        try:
            sent = _noting(self._each_into_namespace(requests), failures)
            answer: A = await call(sent, metadata=self.metadata)
        except (grpc.aio.AioRpcError, asyncio.CancelledError) as ended:
            # gRPC cancels a call whose requests fail, and does not say why.
            if failures:
                raise failures[0] from None
            if not isinstance(ended, grpc.aio.AioRpcError):
                raise
            error = from_rpc(ended)
            self.pass_on(server, error)
            raise error from None
        return answer

    def duplex(self, server: int, method: Method[Q, A]) -> Any:
        """A stream in both directions."""
        call: Any = self.channel(server).stream_stream(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.answer.FromString,
        )
        return call(metadata=self.metadata)

    def do_afterwards(self, work: Coroutine[Any, Any, None]) -> None:
        """Does what a caller leaves behind who has gone; before the connections are closed, for a while."""
        task = asyncio.create_task(work)
        self._afterwards.add(task)
        task.add_done_callback(self._afterwards.discard)

    async def close(self) -> None:
        """Closes all connections."""
        if self._afterwards:
            await asyncio.wait(self._afterwards, timeout=AFTERWARDS_MAX)
        channels, self._channels = list(self._channels.values()), {}
        for channel in channels:
            await channel.close(None)

    def _into_namespace(self, request: Any) -> None:
        if not getattr(request, "namespace", True):
            request.namespace = self.config.namespace

    async def _each_into_namespace(self, requests: AsyncIterable[Q]) -> AsyncIterator[Q]:
        first = True
        async for request in requests:
            if first:
                self._into_namespace(request)
            first = False
            yield request


async def _noting(requests: AsyncIterable[Q], failures: list[Exception]) -> AsyncIterator[Q]:
    """The requests; notes what they raise."""
    try:
        async for request in requests:
            yield request
    except Exception as error:
        failures.append(error)
        raise


class Tries:
    """The tries of one call."""

    def __init__(self, core: Core, safe: bool) -> None:
        self._safe = safe
        self._config = core.config
        self._others = len(core.config.addresses) - 1
        self._began = time.monotonic()
        self._passed_on = 0
        self._delays = 0

    def next_delay(self, error: SluiceError, to_another: bool) -> float | None:
        """Seconds until the next try; None: the error is final.

        Each other server is asked once without a delay, however long the others have taken.
        """
        if error.code not in NOTHING_DONE and not (self._safe and error.code in MAYBE_DONE):
            return None
        patience = self._config.retry_for
        if error.code == "unreachable" and not self._others:
            patience = min(patience, self._config.connect_retry_for)
        if to_another and self._passed_on < self._others:
            self._passed_on += 1
            in_time = self._delays == 0 or time.monotonic() - self._began <= patience
            return 0.0 if patience > 0 and in_time else None
        self._passed_on = 0
        self._delays += 1
        delay = self._delay(error, to_another)
        return delay if time.monotonic() - self._began + delay <= patience else None

    def _delay(self, error: SluiceError, to_another: bool) -> float:
        most = LEADER_DELAY_MAX if to_another else DELAY_MAX
        asked = 0.0 if to_another else error.retry_after or 0.0
        grown = min(FIRST_DELAY * 2.0 ** min(self._delays - 1, 16), most)
        jitter = random.uniform(0, grown / 2)
        return asked + jitter if asked else grown / 2 + jitter
