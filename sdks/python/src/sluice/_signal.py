"""A signal that is given once, for threads and for asyncio."""

from __future__ import annotations

import asyncio
import threading


class Signal:
    """Is given once, on the event loop; anybody may look at it or wait for it."""

    def __init__(self) -> None:
        self._threads = threading.Event()
        self._tasks = asyncio.Event()

    def set(self) -> None:
        """Gives the signal. Called on the event loop only."""
        self._threads.set()
        self._tasks.set()

    def is_set(self) -> bool:
        """Whether it was given."""
        return self._threads.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Waits in a thread; whether it was given."""
        return self._threads.wait(timeout)

    async def wait_async(self) -> None:
        """Waits on the event loop."""
        await self._tasks.wait()
