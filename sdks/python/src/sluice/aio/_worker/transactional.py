"""Handlers with a transaction: what they stage is committed together with the ack."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from ..._settle import Settlement
from ..._values import Duration
from ...errors import LockHeld, OutcomeUnknown, TransactionLost, VersionMismatch
from ...work import Dead, Job, Release, Retry
from .._transactions import Transaction

if TYPE_CHECKING:
    from .._client import Client

#: Tries of a handler: after a conflict it runs again, on fresh reads.
TRIES = 20
FIRST_PAUSE, PAUSE_MAX = 0.005, 0.4
CONFLICTS = (VersionMismatch, LockHeld, TransactionLost, OutcomeUnknown)
#: What a handler says itself about its message.
SAID = (Retry, Dead, Release)
#: A function of a job and its transaction; what it returns is the result of the message.
TransactionalHandler = Callable[[Job, Transaction], Awaitable[Any]]


def in_transaction(
    client: Client, handler: TransactionalHandler, ttl: Duration
) -> Callable[[Job], Awaitable[Any]]:
    """The handler of a worker, which runs this one in a transaction that acks the message.

    The ack that the worker makes besides finds the message settled by the same receipt, which is a success.
    While the server is away the message is given back, since it is not the cause; if the transaction was
    committed all the same, the release finds it settled.
    """

    async def once(job: Job, *, is_last: bool = False) -> Any:
        begun = client.transaction(ttl=ttl)
        try:
            async with begun as transaction:
                result = await handler(job, transaction)
                await transaction.settle(Settlement.ack(job.message.receipt, result))
        except Exception as error:
            runs_again = isinstance(error, CONFLICTS) and not is_last
            if begun.was_away and not runs_again and not isinstance(error, SAID):
                raise Release from error
            raise
        return result

    async def run(job: Job) -> Any:
        for tries in range(1, TRIES):
            try:
                return await once(job)
            except CONFLICTS:
                if job.lost.is_set():
                    raise
            grown = min(FIRST_PAUSE * 2.0 ** (tries - 1), PAUSE_MAX)
            await asyncio.sleep(random.uniform(0.5, 1) * grown)
        return await once(job, is_last=True)

    return run
