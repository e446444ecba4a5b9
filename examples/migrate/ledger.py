"""Moves messages into Sluice in batches, so that a crash at any time neither loses nor doubles one."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import sluice

# Messages that are sent in one transaction, which has 1,000 operations and 16 MiB at most. One more message
# may go beyond the bytes, which `limits.payload` bounds.
BATCH, BATCH_BYTES = 200, 4 << 20


@dataclass
class Taken:
    """A message of the old system, which still has it."""

    #: Tells it from all others of its queue.
    id: str
    payload: bytes
    options: dict[str, Any] = field(default_factory=dict)
    #: False: the old system says that nobody has been given it before.
    again: bool = True


def is_full(batch: list[Taken]) -> bool:
    """Whether no further message fits into the batch."""
    return len(batch) >= BATCH or sum(len(taken.payload) for taken in batch) >= BATCH_BYTES


class Ledger:
    """The document of a migration: the ids of the batch that was sent last.

    A batch is sent, and its ids are written, in one transaction. Only then the old system lets go of it, and only then
    the ids are removed, before the next batch is taken. A run that follows a crash finds in the document which of the
    messages that are still there it has sent already. Two runs at once are refused by the version of the document.
    """

    def __init__(self, client: sluice.Client, queue: str, source: str) -> None:
        self._client, self._queue = client, queue
        self._key = f"migrate/{source}"
        self.moved = 0
        try:
            found = client.documents.get(self._key)
            self._version, self._sent = found.version, Counter(found.value["sent"])
        except sluice.NotFound:
            self._version, self._sent = 0, Counter()

    def was_sent(self, id: str) -> bool:
        """Whether an earlier run has sent the message; of several with one id as many as it has sent."""
        if not self._sent[id]:
            return False
        self._sent[id] -= 1
        return True

    def all_seen(self) -> None:
        """The old system gives nothing any more that it has given to an earlier run."""
        self._sent.clear()

    def send(self, batch: list[Taken], done: list[str]) -> None:
        """Sends a batch. ``done``: those that were sent already, and that the old system still has."""
        if not batch:
            return
        operations = sluice.Operations()
        for taken in batch:
            operations.send(self._queue, taken.payload, **taken.options)
        condition = {"if_version": self._version} if self._version else {"if_absent": True}
        sent = [*self._sent.elements(), *done, *(taken.id for taken in batch)]
        operations.put(self._key, {"sent": sent}, **condition)
        self._client.commit(operations)
        self._version += 1
        self.moved += len(batch)

    def forget(self) -> None:
        """Forgets the batch, of which the old system has nothing left, before it gives others with the same ids."""
        self._client.documents.put(self._key, {"sent": list(self._sent.elements())}, if_version=self._version)
        self._version += 1

    def end(self) -> None:
        """Removes the document, when the old system has nothing left of what was sent."""
        if self._version:
            self._client.documents.delete(self._key, if_version=self._version)
            self._version = 0


def move(ledger: Ledger, take: Callable[[], list[Taken]], let_go: Callable[[list[Taken]], None]) -> int:
    """Moves all that ``take`` gives, until it gives nothing. Returns how many were sent by this run."""
    while batch := take():
        done, new = [], []
        for taken in batch:
            if not taken.again:
                # What was given before comes first.
                ledger.all_seen()
            if taken.again and ledger.was_sent(taken.id):
                done.append(taken.id)
            else:
                new.append(taken)
        ledger.send(new, done)
        let_go(batch)
        ledger.forget()
    ledger.end()
    return ledger.moved
