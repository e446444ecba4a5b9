"""Receiving and settling by hand, without a worker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .. import _encode as encode
from .._fields import made
from .._proto import common_pb2 as common
from .._proto import messages_pb2 as pb
from .._proto import services
from .._settle import Settlement, extension
from .._status import from_item
from .._values import Duration, Payload, millis, seconds_of
from ..errors import AlreadySettled, SluiceError
from ..messages import Message
from ._core import Core


def queues_of(queues: str | Sequence[str] | dict[str, int]) -> list[pb.WeightedQueue]:
    """The queues of a receive: one, several in their order, or several with weights."""
    if isinstance(queues, dict):
        return [pb.WeightedQueue(name=name, weight=weight) for name, weight in queues.items()]
    names = [queues] if isinstance(queues, str) else queues
    return [pb.WeightedQueue(name=name) for name in names]


def receipt_of(message: Message | str) -> str:
    """The receipt, given as such or by its message."""
    return message if isinstance(message, str) else message.receipt


class Receiving:
    """The calls that receive, settle and extend."""

    _core: Core

    async def receive(
        self,
        queues: str | Sequence[str] | dict[str, int],
        *,
        max: int = 1,
        wait: Duration = 0,
        lease: Duration | None = None,
        consumer: str | None = None,
    ) -> list[Message]:
        """Receives up to ``max`` messages, after a wait for the first one of up to a minute.

        Settle each with :meth:`ack`, :meth:`nack`, :meth:`release` or :meth:`reject` before its lease ends,
        or :meth:`extend` it.
        """
        request = made(
            pb.ReceiveRequest,
            queues=queues_of(queues),
            max=max,
            wait_ms=millis(wait, "wait"),
            lease_ms=None if lease is None else millis(lease, "lease"),
            consumer=consumer,
        )
        # What a lost answer has taken comes back when its leases end.
        answer = await self._core.unary(
            services.MESSAGES_RECEIVE, request, timeout=seconds_of(wait, "wait"), safe=True
        )
        return [encode.delivered(one) for one in answer.messages]

    async def ack(
        self, message: Message | str, result: Payload | None = None, *, add_cost: int | None = None
    ) -> None:
        """Done: the message is deleted, or kept with its result. Takes a message or its receipt."""
        await self._settle_one(Settlement.ack(receipt_of(message), result, add_cost=add_cost))

    async def nack(
        self,
        message: Message | str,
        error: str = "",
        *,
        delay: Duration | None = None,
        add_cost: int | None = None,
    ) -> None:
        """Failed: another attempt follows after the delay, or else the backoff."""
        await self._settle_one(Settlement.nack(receipt_of(message), error, delay, add_cost=add_cost))

    async def release(self, message: Message | str, *, delay: Duration | None = None) -> None:
        """Not now: the message is ready again, at once or after a delay; the attempt does not count."""
        await self._settle_one(Settlement.release(receipt_of(message), delay))

    async def reject(self, message: Message | str, error: str = "") -> None:
        """This will never work: the message is a dead letter at once."""
        await self._settle_one(Settlement.reject(receipt_of(message), error))

    async def settle(self, settlements: Iterable[Settlement]) -> list[SluiceError | None]:
        """Settles many deliveries in one call; the error of each, or None. Repeats are no errors."""
        request = made(pb.SettleRequest, items=[one.item for one in settlements])
        answer = await self._core.unary(services.MESSAGES_SETTLE, request, safe=True)
        return [None if isinstance(error, AlreadySettled) else error for error in _errors(answer)]

    async def extend(
        self,
        message: Message | str,
        lease: Duration | None = None,
        *,
        percent: int | None = None,
        note: str | None = None,
        checkpoint: bytes | None = None,
        add_cost: int | None = None,
    ) -> None:
        """Begins the lease anew, and reports progress, leaves a checkpoint for the next attempt, or adds to
        the cost of the message."""
        item = extension(receipt_of(message), lease, percent, note, checkpoint, add_cost)
        _raise(await self._extend([item]))

    async def extend_many(self, receipts: Sequence[str], lease: Duration) -> list[SluiceError | None]:
        """Begins many leases anew; the error of each, or None."""
        return await self._extend([extension(receipt, lease) for receipt in receipts])

    async def _extend(self, items: list[common.Extension]) -> list[SluiceError | None]:
        request = made(pb.ExtendRequest, items=items)
        # A repeat of a report adds its cost once more.
        safe = not any(item.add_cost for item in items)
        return _errors(await self._core.unary(services.MESSAGES_EXTEND, request, safe=safe))

    async def _settle_one(self, settlement: Settlement) -> None:
        _raise(await self.settle([settlement]))


def _errors(answer: pb.ResultsResponse) -> list[SluiceError | None]:
    return [None if one.ok else from_item(one.error) for one in answer.results]


def _raise(errors: list[SluiceError | None]) -> None:
    if errors[0] is not None:
        raise errors[0]
