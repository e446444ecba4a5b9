"""Sending: one message, many, chains, groups, requests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from .. import _encode as encode
from .._fields import made
from .._proto import messages_pb2 as pb
from .._proto import services
from .._values import Duration, Payload, millis, seconds_of
from ..errors import MessageDead, Timeout
from ..messages import Outgoing, Result, SendOptions, Sent, SentGroup, SentMany, Step, To
from ._core import Core, random_key

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: Longest wait of one call.
WAIT_MAX = 60.0


class Sending:
    """The calls that send, and those that wait for results."""

    _core: Core

    async def send(
        self,
        queue: str,
        payload: Payload = b"",
        *,
        idempotency_key: str | None = None,
        **options: Unpack[SendOptions],
    ) -> Sent:
        """Sends a message; the queue is created by its first one.

        Bytes are sent as they are, a text as UTF-8, anything else as JSON. Without an ``idempotency_key``
        the send gets one, so that its repeats after lost answers send nothing twice. The options are those
        of :class:`SendOptions`.
        """
        sent = await self.send_many(queue, [Outgoing(payload, **options)], idempotency_key=idempotency_key)
        return Sent(sent.ids[0], sent.duplicate or 0 in sent.duplicates)

    async def send_many(
        self,
        queue: str,
        messages: Iterable[Payload | Outgoing],
        *,
        idempotency_key: str | None = None,
    ) -> SentMany:
        """Sends up to 10,000 messages, all or none; :class:`Outgoing` gives one options of its own."""
        request = made(pb.SendRequest, queue=queue, idempotency_key=idempotency_key or random_key())
        request.messages.extend(encode.message(encode.outgoing_of(one)) for one in messages)
        if idempotency_key is None:
            # A repeat by the caller has to be the same request, whatever trace it belongs to.
            for one in request.messages:
                encode.trace(one)
        answer = await self._core.unary(services.MESSAGES_SEND, request, safe=True)
        return SentMany(list(answer.ids), answer.duplicate, list(answer.duplicates))

    async def chain(
        self,
        first: To,
        *steps: Step,
        on_failure: Step | None = None,
        idempotency_key: str | None = None,
    ) -> Sent:
        """Sends a message that carries its next steps: each ack sends the next one, with its result."""
        options: SendOptions = {**first.options, "chain": steps}
        if on_failure is not None:
            options["on_failure"] = on_failure
        return await self.send(first.queue, first.payload, idempotency_key=idempotency_key, **options)

    async def group(
        self, messages: Sequence[To], callback: To, *, idempotency_key: str | None = None
    ) -> SentGroup:
        """Sends messages to any queues, and a callback that is delivered when all of them have ended."""
        request = made(
            pb.SendGroupRequest,
            messages=pb.GroupMessageList(values=[encode.group_message(one) for one in messages]),
            callback=encode.group_message(callback),
            idempotency_key=idempotency_key or random_key(),
        )
        if idempotency_key is None:
            for one in [*request.messages.values, request.callback]:
                encode.trace(one)
        answer = await self._core.unary(services.MESSAGES_SEND_GROUP, request, safe=True)
        return SentGroup(answer.group, list(answer.ids), answer.duplicate)

    async def group_status(self, group: str | SentGroup) -> pb.Group:
        """The progress of a group, until its callback is gone."""
        request = made(pb.GetGroupRequest, group=group if isinstance(group, str) else group.id)
        return await self._core.unary(services.MESSAGES_GET_GROUP, request, safe=True)

    async def flow(self, message: str | Sent) -> pb.Flow:
        """The messages that a message waits for, and those that wait for it."""
        request = made(pb.GetFlowRequest, id=encode.id_of(message))
        return await self._core.unary(services.MESSAGES_GET_FLOW, request, safe=True)

    async def look(self, message: str | Sent, *, wait: Duration = 0) -> Result:
        """What became of a message, after a wait of up to a minute for its end."""
        seconds = min(seconds_of(wait, "wait"), WAIT_MAX)
        request = made(pb.AwaitResultRequest, id=encode.id_of(message), wait_ms=millis(seconds, "wait"))
        answer = await self._core.unary(services.MESSAGES_AWAIT_RESULT, request, timeout=seconds, safe=True)
        return encode.result(answer)

    async def result(self, message: str | Sent, *, timeout: Duration | None = None) -> Result:
        """Waits for the end of a message and returns the result of its ack.

        The result is kept for the message's ``result_ttl``. :class:`MessageDead`: it is a dead letter.
        :class:`Timeout`: it has not ended in time.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + (float("inf") if timeout is None else seconds_of(timeout, "timeout"))
        while True:
            found = await self.look(message, wait=max(0.0, min(WAIT_MAX, until - loop.time())))
            if found.state == "done":
                return found
            if found.state == "dead":
                raise MessageDead("message_dead", f"message {encode.id_of(message)} is dead: {found.reason}")
            if loop.time() >= until:
                raise Timeout("timeout", f"message {encode.id_of(message)} has not ended in time")

    async def request(
        self,
        queue: str,
        payload: Payload = b"",
        *,
        timeout: Duration = 30,
        **options: Unpack[SendOptions],
    ) -> Result:
        """Sends a request, and waits for the result that a worker returns for it."""
        options.setdefault("result_ttl", seconds_of(timeout, "timeout") + WAIT_MAX)
        sent = await self.send(queue, payload, **options)
        return await self.result(sent, timeout=timeout)
