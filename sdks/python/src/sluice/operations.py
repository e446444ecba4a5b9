"""Operations of transactions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from . import _encode as encode
from ._fields import made
from ._proto import documents_pb2, locks_pb2
from ._proto import transactions_pb2 as pb
from ._settle import Settlement
from ._values import Duration, Payload, millis, to_json
from ._values import encode as encode_payload
from .documents import Conditions, PutConditions, Written
from .messages import HasContent, Message, SendOptions, To

if TYPE_CHECKING:
    from typing_extensions import Unpack

R = TypeVar("R")


def _receipt(message: Message | str) -> str:
    return message if isinstance(message, str) else message.receipt


class OperationMethods(Generic[R]):
    """The operations that a transaction may have. What each returns depends on where it is added."""

    def _add(self, operation: pb.TransactionOperation) -> R:
        raise NotImplementedError

    def send(self, queue: str, payload: Payload = b"", **options: Unpack[SendOptions]) -> R:
        """Sends a message."""
        return self._add(pb.TransactionOperation(send=encode.group_message(To(queue, payload, **options))))

    def ack(self, message: Message | str, result: Payload | None = None) -> R:
        """Acks a delivery."""
        return self.settle(Settlement.ack(_receipt(message), result))

    def settle(self, settlement: Settlement) -> R:
        """Settles a delivery in any way."""
        return self._add(pb.TransactionOperation(settle=settlement.item))

    def put(
        self,
        key: str,
        content: Payload,
        *,
        content_type: str | None = None,
        attributes: Mapping[str, str] | None = None,
        ttl: Duration | None = None,
        history: int | None = None,
        **conditions: Unpack[PutConditions],
    ) -> R:
        """Writes a document."""
        data, kind = encode_payload(content, "content")
        put = made(
            pb.TransactionPut,
            key=key,
            content=data,
            content_type=content_type or kind or None,
            attributes=attributes,
            ttl_ms=None if ttl is None else millis(ttl, "ttl"),
            history=history,
            **conditions,
        )
        return self._add(pb.TransactionOperation(put=put))

    def patch(self, key: str, merge: Any, **conditions: Unpack[Conditions]) -> R:
        """Changes a part of a document by a merge patch."""
        patch = made(pb.TransactionPatch, key=key, merge_patch=to_json(merge, "merge"), **conditions)
        return self._add(pb.TransactionOperation(patch=patch))

    def json_patch(
        self, key: str, operations: Sequence[Mapping[str, Any]], **conditions: Unpack[Conditions]
    ) -> R:
        """Changes a part of a document by a JSON patch."""
        patch = made(
            pb.TransactionPatch, key=key, json_patch=to_json(list(operations), "operations"), **conditions
        )
        return self._add(pb.TransactionOperation(patch=patch))

    def increment(self, key: str, pointer: str, by: float = 1, **conditions: Unpack[Conditions]) -> R:
        """Adds to a number in a document."""
        increment = [made(documents_pb2.DocumentIncrement, pointer=pointer, by=str(by))]
        patch = made(pb.TransactionPatch, key=key, increment=increment, **conditions)
        return self._add(pb.TransactionOperation(patch=patch))

    def delete(self, key: str, **conditions: Unpack[Conditions]) -> R:
        """Deletes a document."""
        return self._add(pb.TransactionOperation(delete=made(pb.TransactionDelete, key=key, **conditions)))

    def check(self, key: str, **conditions: Unpack[PutConditions]) -> R:
        """A condition on a document that is not written."""
        return self._add(pb.TransactionOperation(check=made(pb.TransactionCheck, key=key, **conditions)))

    def acquire(self, key: str | Sequence[str], *, ttl: Duration = 30, owner: str | None = None) -> R:
        """Acquires locks, if they are free."""
        keys = (key,) if isinstance(key, str) else key
        acquire = made(pb.TransactionAcquire, keys=keys, ttl_ms=millis(ttl, "ttl"), owner=owner)
        return self._add(pb.TransactionOperation(acquire=acquire))

    def release(self, token: str) -> R:
        """Releases a lock."""
        return self._add(pb.TransactionOperation(release=made(pb.TransactionRelease, token=token)))


class Operations(OperationMethods["Operations"]):
    """Operations for one call: ``Operations().send("mail", "hi").put("orders/17", {...})``.

    Each is admitted by the state before the transaction, so none depends on another.
    """

    def __init__(self) -> None:
        self.made: list[pb.TransactionOperation] = []

    def _add(self, operation: pb.TransactionOperation) -> Operations:
        self.made.append(operation)
        return self


@dataclass(frozen=True)
class Outcome:
    """What came of an operation: nothing of one that settles, deletes, checks or releases."""

    #: Id of the message that was sent.
    id: str | None
    #: Version of the document that was written.
    written: Written | None
    #: Grant of the locks that were acquired.
    grant: locks_pb2.LockGrant | None

    @staticmethod
    def of(got: pb.TransactionResult) -> Outcome:
        """The outcome, as the server tells it."""
        return Outcome(
            id=got.id if got.HasField("id") else None,
            written=Written.of(got.written) if got.HasField("written") else None,
            grant=got.grant if got.HasField("grant") else None,
        )


@dataclass(frozen=True)
class Committed:
    """What a transaction has done."""

    #: One for each operation, in order.
    results: list[Outcome]
    #: The same transaction was committed before, by its idempotency key.
    duplicate: bool

    @staticmethod
    def of(got: pb.CommitTransactionResponse) -> Committed:
        """The outcomes, as the server tells them."""
        return Committed([Outcome.of(one) for one in got.results], got.duplicate)


@dataclass(frozen=True)
class StagedDocument(HasContent):
    """A document as an open transaction sees it; without a version if that has written it."""

    payload: bytes
    content_type: str
    version: int | None
    etag: str | None
