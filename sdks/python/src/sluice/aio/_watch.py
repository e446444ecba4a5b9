"""Streams that go on after a lost connection."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TypeVar

from ..errors import Overloaded, SluiceError, Timeout, Unavailable

T = TypeVar("T")
PAUSE_MAX = 2.0


async def follow(
    begin: Callable[[], AsyncGenerator[T, None]], is_news: Callable[[T], bool]
) -> AsyncGenerator[T, None]:
    """What the streams tell that are begun one after another; errors that pass begin the next one."""
    failures = 0
    while True:
        try:
            async with aclosing(begin()) as stream:
                async for one in stream:
                    failures = 0
                    if is_news(one):
                        yield one
        except SluiceError as error:
            if not isinstance(error, (Unavailable, Overloaded, Timeout)):
                raise
        failures += 1
        await asyncio.sleep(random.uniform(0.5, 1) * min(PAUSE_MAX, 0.05 * 2.0**failures))
