"""What a call is, without how it is made."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from google.protobuf.message import Message

Q = TypeVar("Q", bound=Message)
A = TypeVar("A", bound=Message)


@dataclass(frozen=True)
class Method(Generic[Q, A]):
    """A method of a service: its path, the type of its request and that of its answer."""

    path: str
    request: type[Q]
    answer: type[A]


class Rpc(Protocol):
    """Makes calls."""

    async def unary(
        self, method: Method[Q, A], request: Q, *, timeout: float | None = None, safe: bool = False
    ) -> A:
        """One request, one answer. ``safe``: a repeat after a lost answer does no harm."""
        ...

    def stream(self, method: Method[Q, A], request: Q) -> AsyncGenerator[A, None]:
        """One request, a stream of answers."""
        ...

    async def upload(self, method: Method[Q, A], requests: AsyncIterable[Q]) -> A:
        """A stream of requests, one answer."""
        ...


class Service:
    """A service of the server, whose methods take and return the messages of its contract."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc
