"""A signal that is given once, for threads and for asyncio."""

from __future__ import annotations

import asyncio
import threading

_MAKING = threading.Lock()


class Signal:
    """Is given once, on the event loop; anybody may look at it or wait for it.

    What wakes those who wait is made when the first one comes: nearly all signals are never waited for.
    """

    __slots__ = ("_given", "_tasks", "_threads")

    def __init__(self) -> None:
        self._given = False
        self._threads: threading.Event | None = None
        self._tasks: asyncio.Event | None = None

    def set(self) -> None:
        """Gives the signal. Called on the event loop only."""
        # Before the look at who waits: whoever comes meanwhile looks at it after that.
        self._given = True
        if self._threads is not None:
            self._threads.set()
        if self._tasks is not None:
            self._tasks.set()

    def is_set(self) -> bool:
        """Whether it was given."""
        return self._given

    def wait(self, timeout: float | None = None) -> bool:
        """Waits in a thread; whether it was given."""
        with _MAKING:
            if self._threads is None:
                self._threads = threading.Event()
        return self._given or self._threads.wait(timeout)

    async def wait_async(self) -> None:
        """Waits on the event loop."""
        if self._tasks is None:
            self._tasks = asyncio.Event()
        if not self._given:
            await self._tasks.wait()
