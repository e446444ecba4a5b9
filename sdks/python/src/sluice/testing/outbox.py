"""A record of what is sent, in place of a server."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from .. import aio
from .._blocking.client import Client
from .._proto import common_pb2, messages_pb2, services
from .._rpc import A, Method, Q
from .._values import encode
from ..messages import HasContent


@dataclass(frozen=True)
class SentMessage(HasContent):
    """A message that a program has sent."""

    queue: str
    payload: bytes
    content_type: str
    headers: dict[str, str]
    #: The whole message, as the server would have got it.
    message: common_pb2.Message | messages_pb2.GroupMessage


class _Any:
    """Stands for whatever payload."""


ANY = _Any()


class Outbox:
    """What was sent since the record began."""

    def __init__(self) -> None:
        self.messages: list[SentMessage] = []
        self._ids = itertools.count(1)

    def sent(self, queue: str, payload: Any = ANY) -> list[SentMessage]:
        """The messages that were sent to a queue, or those of them with this payload."""
        return [one for one in self.messages if one.queue == queue and _matches(one, payload)]

    def assert_sent(self, queue: str, payload: Any = ANY, *, count: int | None = None) -> None:
        """Fails unless so many messages were sent to a queue; without a count, at least one."""
        found = len(self.sent(queue, payload))
        if found == count or (count is None and found):
            return
        wanted = "a message" if count is None else f"{count} messages"
        content = "" if isinstance(payload, _Any) else f" with {payload!r}"
        raise AssertionError(f"expected {wanted} to {queue}{content}, sent were {found} of {self._all()}")

    def assert_nothing_sent(self) -> None:
        """Fails if anything was sent."""
        if self.messages:
            raise AssertionError(f"expected no message, sent were {self._all()}")

    def _all(self) -> list[tuple[str, Any]]:
        return [(one.queue, one.value) for one in self.messages]

    def _record(self, queue: str, message: common_pb2.Message | messages_pb2.GroupMessage) -> str:
        headers = {header.name: header.value for header in message.headers}
        self.messages.append(SentMessage(queue, message.payload, message.content_type, headers, message))
        return f"recorded-{next(self._ids)}"

    def answer(self, method: Method[Any, Any], request: Any) -> Any:
        """The answer to a send; other calls have none."""
        if method is services.MESSAGES_SEND:
            ids = [self._record(request.queue, one) for one in request.messages]
            return messages_pb2.SendResponse(ids=ids)
        if method is services.MESSAGES_SEND_GROUP:
            ids = [self._record(one.queue, one) for one in request.messages.values]
            group = self._record(request.callback.queue, request.callback)
            return messages_pb2.SendGroupResponse(ids=ids, group=group)
        raise AssertionError(f"{method.path} needs a server: an outbox records sends only")


def _matches(one: SentMessage, payload: Any) -> bool:
    if isinstance(payload, _Any):
        return True
    if isinstance(payload, (bytes, str)):
        return one.payload == encode(payload)[0]
    return one.content_type.startswith("application/json") and bool(one.value == payload)


@contextmanager
def outbox(client: Client | aio.Client) -> Iterator[Outbox]:
    """Records what a client sends for the time of a ``with``, and sends nothing."""
    box = Outbox()
    core = client._core if isinstance(client, aio.Client) else client.portal.run(_core_of)
    made = core.unary

    async def unary(
        method: Method[Q, A], request: Q, *, timeout: float | None = None, safe: bool = False
    ) -> A:
        return cast(A, box.answer(method, request))

    core.unary = unary  # type: ignore[method-assign]
    try:
        yield box
    finally:
        core.unary = made  # type: ignore[method-assign]


async def _core_of(client: aio.Client) -> Any:
    return client._core
