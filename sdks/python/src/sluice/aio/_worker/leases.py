"""The leases of held messages: when each is extended, and when it ends by this process's clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ...work import Job


@dataclass
class Lease:
    """The lease of a message that the worker holds."""

    job: Job
    extend_at: float
    #: By the server's clock it may end earlier, never later.
    ends_at: float
    task: asyncio.Task[None] | None = None


class Leases:
    """The leases by receipt."""

    def __init__(self, lease: float, now: Callable[[], float]) -> None:
        self.lease, self._now = lease, now
        self._held: dict[str, Lease] = {}

    def __len__(self) -> int:
        return len(self._held)

    def add(self, job: Job) -> None:
        """Notes a lease that has just been given."""
        now = self._now()
        self._held[job.message.receipt] = Lease(job, now + self.lease / 2, now + self.lease)

    def started(self, job: Job, task: asyncio.Task[None]) -> None:
        """Notes the task that works on a message."""
        self._held[job.message.receipt].task = task

    def remove(self, receipt: str) -> None:
        """Forgets a lease: its message is settled now."""
        self._held.pop(receipt, None)

    def receipts(self) -> list[str]:
        """Those with which a session can be resumed."""
        return [receipt for receipt, lease in self._held.items() if not lease.job.lost.is_set()]

    def lose(self, receipts: Iterable[str]) -> None:
        """Tells the handlers that their work is of no use."""
        for receipt in receipts:
            lease = self._held.get(receipt)
            if lease is None or lease.job.lost.is_set():
                continue
            lease.job.lost.set()
            if lease.task is not None and not lease.job.is_threaded:
                lease.task.cancel()

    def take_due(self) -> list[str]:
        """Receipts at half time; each is due again after a quarter of the lease, should this one fail."""
        now = self._now()
        due = [receipt for receipt in self.receipts() if self._held[receipt].extend_at <= now]
        for receipt in due:
            self._held[receipt].extend_at = now + self.lease / 4
        return due

    def extended(self, receipt: str, since: float) -> None:
        """Notes that an extension which was sent at ``since`` has succeeded."""
        lease = self._held.get(receipt)
        if lease is not None:
            lease.extend_at, lease.ends_at = since + self.lease / 2, since + self.lease

    def end_due(self) -> None:
        """Nobody can say any more whether another worker has these messages by now."""
        now = self._now()
        self.lose([receipt for receipt in self.receipts() if self._held[receipt].ends_at <= now])
