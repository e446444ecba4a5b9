"""The way from threads to the asyncio client, whose loop runs in a thread of its own.

Loop and connections are made at the first call, and anew after a fork. gRPC does not survive a fork with
calls under way, so everything is closed before one; where that cannot be, because calls are under way, the
client refuses to work in the child.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import os
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast

from .._config import Config
from ..aio import Client
from ..errors import error_of

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")
P = ParamSpec("P")


class _Running:
    """A loop in its thread, with a client."""

    def __init__(self, config: Config) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name="sluice", daemon=True)
        self.thread.start()
        self.client = asyncio.run_coroutine_threadsafe(self._make(config), self.loop).result()

    async def _make(self, config: Config) -> Client:
        return Client.of(config)

    def close(self) -> None:
        """Closes connections, thread and loop."""
        asyncio.run_coroutine_threadsafe(self._end(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()

    async def _end(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self.client.close()


class Portal:
    """Runs calls of the asyncio client from any thread."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._running: _Running | None = None
        self._calls = 0
        self._is_broken = False
        _PORTALS.add(self)

    def run(self, make: Callable[[Client], Coroutine[Any, Any, R]]) -> R:
        """Runs a call on the loop, and waits for it."""
        with self._using() as running:
            if threading.current_thread() is running.thread:
                raise RuntimeError("this would wait for itself: use the asyncio client here, as `job.client`")
            future = asyncio.run_coroutine_threadsafe(make(running.client), running.loop)
            try:
                return future.result()
            except BaseException:
                future.cancel()
                raise

    async def run_async(self, make: Callable[[Client], Coroutine[Any, Any, R]]) -> R:
        """The same for callers on whatever event loop."""
        with self._using() as running:
            future = asyncio.run_coroutine_threadsafe(make(running.client), running.loop)
            return await asyncio.wrap_future(future)

    def call_soon(self, call: Callable[[], object]) -> None:
        """Calls something on the loop."""
        with self._using() as running:
            running.loop.call_soon_threadsafe(call)

    def close(self) -> None:
        """Ends the thread and closes the connections. A later call makes them anew."""
        with self._lock:
            running, self._running = self._running, None
        if running is not None:
            running.close()

    def before_fork(self) -> bool:
        """Closes everything if no call is under way; whether there was something to close."""
        with self._lock:
            running = self._running
            if running is None or self._calls or asyncio.all_tasks(running.loop):
                return False
            self._running = None
        running.close()
        return True

    def in_child(self) -> None:
        """What was not closed is of no use in the child."""
        self._lock, self._calls = threading.Lock(), 0
        self._is_broken = self._running is not None
        # gRPC would wait for its threads, which are not here, if its channels were freed.
        _ABANDONED.append(self._running)
        self._running = None

    @contextmanager
    def _using(self) -> Iterator[_Running]:
        with self._lock:
            if self._is_broken:
                text = "the process was forked while calls were under way: fork before them, or use spawn"
                raise error_of("forked", text)
            if self._running is None:
                self._running = _Running(self._config)
            running = self._running
            self._calls += 1
        try:
            yield running
        finally:
            with self._lock:
                self._calls -= 1


_PORTALS: weakref.WeakSet[Portal] = weakref.WeakSet()
_ABANDONED: list[_Running | None] = []


def _before_fork() -> None:
    closed = [portal.before_fork() for portal in list(_PORTALS)]
    if any(closed):
        # gRPC ends its threads when nothing refers to its channels any more.
        gc.collect()


def _in_child() -> None:
    for portal in list(_PORTALS):
        portal.in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_in_child)


class Blocking(Generic[T_co]):
    """A part of the asyncio client, for threads."""

    def __init__(self, portal: Portal, pick: Callable[[Client], T_co]) -> None:
        self._portal, self._pick = portal, pick


def blocking(
    call: Callable[Concatenate[T, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[Blocking[T], P], R]:
    """The method of an asyncio class, as one that waits for its end."""

    @functools.wraps(call)
    def waits(self: Blocking[T], *args: P.args, **kwargs: P.kwargs) -> R:
        return self._portal.run(lambda client: call(self._pick(client), *args, **kwargs))

    return cast(Callable[Concatenate[Blocking[T], P], R], waits)


def blocking_iter(
    call: Callable[Concatenate[T, P], AsyncIterator[R]],
) -> Callable[Concatenate[Blocking[T], P], Iterator[R]]:
    """The asynchronous iterator of an asyncio class, as one that waits for each item."""

    @functools.wraps(call)
    def iterates(self: Blocking[T], *args: P.args, **kwargs: P.kwargs) -> Iterator[R]:
        return _iterate(self._portal, lambda client: call(self._pick(client), *args, **kwargs))

    return cast(Callable[Concatenate[Blocking[T], P], Iterator[R]], iterates)


def _iterate(portal: Portal, make: Callable[[Client], AsyncIterator[R]]) -> Iterator[R]:
    async def begin(client: Client) -> AsyncIterator[R]:
        return make(client)

    async def next_of(_: Client) -> R:
        return await items.__anext__()

    async def end(_: Client) -> None:
        if hasattr(items, "aclose"):
            await items.aclose()

    items = portal.run(begin)
    try:
        while True:
            try:
                one = portal.run(next_of)
            except StopAsyncIteration:
                return
            yield one
    finally:
        portal.run(end)
