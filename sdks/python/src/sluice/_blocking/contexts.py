"""What is entered and left: locks and transactions, for threads."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Sequence
from types import TracebackType
from typing import Any, TypeVar

from .. import aio
from .._proto import transactions_pb2 as pb
from .._signal import Signal
from .._values import Duration
from ..aio import _locks
from ..messages import Message
from ..operations import Committed, OperationMethods, Operations, StagedDocument
from .portal import Portal

R = TypeVar("R")
Trace = TracebackType | None


class HeldLock:
    """A lock that is held, and renewed behind the scenes."""

    def __init__(self, portal: Portal, held: aio.HeldLock) -> None:
        self._portal, self._held = portal, held
        #: Proof of the grant, for conditions of writes.
        self.token = held.token
        #: Number to give to other systems with each write: later grants have larger ones.
        self.fencing_token = held.fencing_token

    @property
    def lost(self) -> Signal:
        """Given when the lock is lost. What it protects may be somebody else's by then."""
        return self._held.lost


class LockContext:
    """Holds a lock for the time of a ``with``."""

    def __init__(self, portal: Portal, terms: _locks.LockTerms) -> None:
        self._portal, self._terms = portal, terms
        self._context: _locks.LockContext | None = None

    def __enter__(self) -> HeldLock:
        return HeldLock(self._portal, self._portal.run(self._enter))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Trace) -> None:
        context = self._context
        assert context is not None
        self._portal.run(lambda _: context.__aexit__(kind, error, trace))

    async def _enter(self, client: aio.Client) -> aio.HeldLock:
        self._context = _locks.LockContext(client.locks, self._terms)
        return await self._context.__aenter__()


class Transaction(OperationMethods[None]):
    """An open transaction: nobody sees what is staged until the commit."""

    def __init__(self, portal: Portal, ttl: Duration) -> None:
        self._portal, self._ttl = portal, ttl
        self._open: aio.Transaction | None = None

    @classmethod
    def of(cls, portal: Portal, opened: aio.Transaction) -> Transaction:
        """One that another opens and ends."""
        made = cls(portal, 0)
        made._open = opened
        return made

    @property
    def committed(self) -> Committed | None:
        """What the commit has done."""
        return self._aio.committed

    def get(self, key: str) -> StagedDocument | None:
        """A document as the transaction sees it; None: there is none. Its commit checks what was read."""
        return self._run(self._aio.get(key))

    def stage(self, operations: Operations) -> None:
        """Stages several operations in one call, all or none."""
        self._run(self._aio.stage(operations))

    def receive(
        self, queues: str | Sequence[str] | dict[str, int], *, max: int = 1, wait: Duration = 0
    ) -> list[Message]:
        """Receives messages, which the commit acks. They go back when the transaction ends otherwise."""
        return self._run(self._aio.receive(queues, max=max, wait=wait))

    def __enter__(self) -> Transaction:
        async def begin(client: aio.Client) -> aio.Transaction:
            return await client.transaction(ttl=self._ttl).__aenter__()

        self._open = self._portal.run(begin)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Trace) -> None:
        self._run(self._aio.__aexit__(kind, error, trace))

    @property
    def _aio(self) -> aio.Transaction:
        if self._open is None:
            raise RuntimeError("a transaction is used within its `with`")
        return self._open

    def _add(self, operation: pb.TransactionOperation) -> None:
        self._run(self._await(self._aio._add(operation)))

    async def _await(self, staged: Awaitable[None]) -> None:
        await staged

    def _run(self, call: Coroutine[Any, Any, R]) -> R:
        return self._portal.run(lambda _: call)
