"""Sluice: queues, locks and documents.

:class:`Client` and :class:`App` are for programs with threads, :mod:`sluice.aio` for asyncio.
"""

from ._blocking.client import Client
from ._blocking.contexts import HeldLock, Transaction
from ._blocking.worker import Worker
from ._settle import Settlement
from ._values import Json
from .app import App, Task, TaskHandle
from .documents import Change, Document, Written
from .errors import (
    AlreadySettled,
    Cancelled,
    Conflict,
    Forbidden,
    InvalidArgument,
    LeaseLost,
    LimitReached,
    LockHeld,
    MessageDead,
    NotFound,
    OutcomeUnknown,
    Overloaded,
    ServerFailed,
    SluiceError,
    Timeout,
    TooLarge,
    TransactionLost,
    Unauthenticated,
    Unavailable,
    VersionMismatch,
)
from .messages import RESULT, Backoff, Message, Outgoing, Result, Sent, SentGroup, SentMany, Step, To, Unique
from .operations import Committed, Operations, Outcome, StagedDocument
from .work import Dead, Job, Reject, Release, Retry, Summary

__version__ = "0.1.0"

__all__ = [
    "RESULT",
    "AlreadySettled",
    "App",
    "Backoff",
    "Cancelled",
    "Change",
    "Client",
    "Committed",
    "Conflict",
    "Dead",
    "Document",
    "Forbidden",
    "HeldLock",
    "InvalidArgument",
    "Job",
    "Json",
    "LeaseLost",
    "LimitReached",
    "LockHeld",
    "Message",
    "MessageDead",
    "NotFound",
    "Operations",
    "Outcome",
    "OutcomeUnknown",
    "Outgoing",
    "Overloaded",
    "Reject",
    "Release",
    "Result",
    "Retry",
    "Sent",
    "SentGroup",
    "SentMany",
    "ServerFailed",
    "Settlement",
    "SluiceError",
    "StagedDocument",
    "Step",
    "Summary",
    "Task",
    "TaskHandle",
    "Timeout",
    "To",
    "TooLarge",
    "Transaction",
    "TransactionLost",
    "Unauthenticated",
    "Unavailable",
    "Unique",
    "VersionMismatch",
    "Worker",
    "Written",
]
