"""Transactions: in one call, or over several."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from contextlib import suppress
from types import TracebackType

from .. import _encode as encode
from .._fields import made
from .._proto import messages_pb2, services
from .._proto import transactions_pb2 as pb
from .._rpc import A, Method, Q
from .._values import Duration, millis, seconds_of
from ..errors import Overloaded, SluiceError, Timeout, Unavailable
from ..messages import Message
from ..operations import Committed, OperationMethods, Operations, StagedDocument
from ._core import Core, random_key
from ._receiving import queues_of

#: Errors of a server that does nothing at present, or of which nobody knows what it has done.
AWAY = (Unavailable, Overloaded, Timeout)


def _trace(operations: Iterable[pb.TransactionOperation]) -> None:
    for one in operations:
        if one.HasField("send"):
            encode.trace(one.send)


class Transaction(OperationMethods[Awaitable[None]]):
    """An open transaction: nobody sees what is staged until the commit. Each operation is awaited."""

    def __init__(self, core: Core, ttl: Duration) -> None:
        self._core, self._ttl = core, ttl
        self._id = ""
        #: What the commit has done.
        self.committed: Committed | None = None
        #: The server was away when it was asked about the transaction.
        self.was_away = False

    def _add(self, operation: pb.TransactionOperation) -> Awaitable[None]:
        return self._stage_one(operation)

    async def get(self, key: str) -> StagedDocument | None:
        """A document as the transaction sees it; None: there is none. Its commit checks what was read."""
        got = await self._stage([pb.TransactionOperation(get=pb.TransactionGet(key=key))])
        one = got.results[0]
        if not one.found:
            return None
        document = one.document
        return StagedDocument(
            payload=document.content,
            content_type=document.content_type,
            version=document.version if document.HasField("version") else None,
            etag=document.etag if document.HasField("etag") else None,
        )

    async def stage(self, operations: Operations) -> None:
        """Stages several operations in one call, all or none."""
        await self._stage(operations.made)

    async def receive(
        self, queues: str | Sequence[str] | dict[str, int], *, max: int = 1, wait: Duration = 0
    ) -> list[Message]:
        """Receives messages, which the commit acks. They go back when the transaction ends otherwise."""
        request = made(
            messages_pb2.ReceiveRequest,
            queues=queues_of(queues),
            max=max,
            wait_ms=millis(wait, "wait"),
            transaction=self._id,
        )
        # No repeat: the commit would ack messages that nobody has seen.
        got = await self._ask(services.MESSAGES_RECEIVE, request, timeout=seconds_of(wait, "wait"))
        return [encode.delivered(one) for one in got.messages]

    async def commit(self) -> Committed:
        """Does all that is staged, or nothing."""
        request = made(pb.CloseTransactionRequest, transaction=self._id)
        self.committed = Committed.of(await self._ask(services.TRANSACTIONS_CLOSE, request, safe=True))
        return self.committed

    async def rollback(self) -> None:
        """Ends the transaction; nothing of it is done."""
        request = made(pb.RollbackTransactionRequest, transaction=self._id)
        await self._core.unary(services.TRANSACTIONS_ROLLBACK, request)

    async def __aenter__(self) -> Transaction:
        request = made(pb.BeginTransactionRequest, ttl_ms=millis(self._ttl, "ttl"))
        self._id = (await self._ask(services.TRANSACTIONS_BEGIN, request, safe=True)).transaction
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            await self.commit()
            return
        # It ends by itself with its time; what the body has raised tells more.
        with suppress(SluiceError):
            await self.rollback()

    async def _stage_one(self, operation: pb.TransactionOperation) -> None:
        await self._stage([operation])

    async def _stage(self, operations: Sequence[pb.TransactionOperation]) -> pb.StageTransactionResponse:
        request = made(pb.StageTransactionRequest, transaction=self._id, operations=operations)
        _trace(request.operations)
        return await self._ask(services.TRANSACTIONS_STAGE, request)

    async def _ask(
        self, method: Method[Q, A], request: Q, *, timeout: float | None = None, safe: bool = False
    ) -> A:
        try:
            return await self._core.unary(method, request, timeout=timeout, safe=safe)
        except AWAY:
            self.was_away = True
            raise


class Transacting:
    """The calls about transactions."""

    _core: Core

    async def commit(self, operations: Operations, *, idempotency_key: str | None = None) -> Committed:
        """Does all operations, or none; an error has the number of its operation in its details.

        Without an ``idempotency_key`` the call gets one. The receipt of the message that is acked is a good
        one.
        """
        request = made(
            pb.CommitTransactionRequest,
            operations=operations.made,
            idempotency_key=idempotency_key or random_key(),
        )
        if idempotency_key is None:
            _trace(request.operations)
        return Committed.of(await self._core.unary(services.TRANSACTIONS_COMMIT, request, safe=True))

    def transaction(self, *, ttl: Duration = 30) -> Transaction:
        """A transaction over several calls, for an ``async with``: committed at its end, or rolled back.

        It is rolled back by itself after ``ttl``.
        """
        return Transaction(self._core, ttl)
