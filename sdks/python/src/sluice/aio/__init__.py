"""The SDK for asyncio: :class:`Client` and :class:`Worker`."""

from ..work import Job
from ._client import Client
from ._locks import HeldLock
from ._transactions import Transaction
from ._worker.worker import Handler, Worker

__all__ = ["Client", "Handler", "HeldLock", "Job", "Transaction", "Worker"]
