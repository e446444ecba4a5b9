"""Settles in batches, without waiting for one to fill.

What gathers while one is under way is the next one. When that is a share of the credit it goes along, so that
the server fetches the next messages while handlers still work on others. The server takes a batch or refuses
all of it: one that it refuses is settled by halves, down to what it does not take.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from ..._proto import session_pb2 as pb
from ..._settle import Settlement
from ...errors import InvalidArgument, Overloaded, SluiceError, Timeout, TooLarge, Unavailable
from ...work import Summary
from .._receiving import Receiving
from .link import Broken, Link

LOG = logging.getLogger("sluice.worker")
BATCH_MAX = 1_000
#: Most bytes of results and of texts of errors in one request, less than the server takes by default.
BATCH_BYTES_MAX = 4 << 20
#: A share of the credit that is worth a request, and the number of requests that may be under way.
BATCH_LEAST, REQUESTS_MAX = 16, 4
PAUSE = 0.5
#: Errors of a request that is refused for what is in it.
REFUSED = (InvalidArgument, TooLarge)
FIELDS = {"ack": "acked", "nack": "nacked", "release": "released", "reject": "rejected"}


@dataclass
class Batch:
    """What is settled together: acks without results are only receipts, and come behind the others."""

    others: list[Settlement]
    acks: list[str]
    #: It stands for a settlement that was refused: nothing is left to try after it.
    is_last_resort: bool = False

    def __len__(self) -> int:
        return len(self.others) + len(self.acks)

    def outcome(self, place: int) -> str:
        """How the delivery at this place is settled."""
        return self.others[place].item.outcome if place < len(self.others) else "ack"

    def halves(self) -> tuple[Batch, Batch]:
        """Both halves of a batch of two or more."""
        middle = len(self) // 2
        acks = max(middle - len(self.others), 0)
        return (
            Batch(self.others[:middle], self.acks[:acks]),
            Batch(self.others[middle:], self.acks[acks:]),
        )

    def instead(self, refusal: SluiceError) -> Batch:
        """A nack with the reason, for the only settlement of the batch, which was refused."""
        one = self.others[0] if self.others else Settlement.ack(self.acks[0])
        return Batch([_nack_instead(one, str(refusal))], [], is_last_resort=True)


class Settler:
    """Settles over the session, or by calls while there is none."""

    def __init__(self, client: Receiving, link: Link, credit: int, patience: float) -> None:
        self._client, self._link, self._patience = client, link, patience
        self._batch_max = min(max(credit // REQUESTS_MAX, BATCH_LEAST), BATCH_MAX)
        self._waiting = Batch([], [])
        self._requests: set[asyncio.Task[None]] = set()
        self._open = 0
        #: There may be a request to make; everything is settled.
        self._some, self._idle = asyncio.Event(), asyncio.Event()
        self._idle.set()
        self.summary = Summary()

    @property
    def is_idle(self) -> bool:
        """Whether everything is settled."""
        return self._open == 0

    def add(self, settlement: Settlement) -> None:
        """Settles in a moment."""
        if (size := _size(settlement)) > BATCH_BYTES_MAX:
            # A frame of any size might end the session.
            settlement = _nack_instead(settlement, f"its {size} bytes are more than {BATCH_BYTES_MAX}")
        self._waiting.others.append(settlement)
        self._added()

    def ack(self, receipt: str) -> None:
        """Acks in a moment, without a result."""
        self._waiting.acks.append(receipt)
        self._added()

    def _added(self) -> None:
        self._open += 1
        self._some.set()
        self._idle.clear()

    async def done(self) -> None:
        """Waits until everything is settled."""
        await self._idle.wait()

    async def run(self) -> None:
        """Runs until it is cancelled."""
        try:
            while True:
                await self._some.wait()
                self._some.clear()
                while self._may_begin():
                    request = asyncio.create_task(self._request(self._next_batch()))
                    self._requests.add(request)
                    request.add_done_callback(self._ended)
        finally:
            for request in self._requests:
                request.cancel()

    def _may_begin(self) -> bool:
        waiting, requests = len(self._waiting), len(self._requests)
        return waiting > 0 and (not requests or (requests < REQUESTS_MAX and waiting >= self._batch_max))

    def _ended(self, request: asyncio.Task[None]) -> None:
        self._requests.discard(request)
        self._some.set()

    def _next_batch(self) -> Batch:
        others, acks, most = self._waiting.others, self._waiting.acks, self._batch_max
        fitting = _fitting(others[:most])
        batch = Batch(others[:fitting], acks[: most - fitting])
        self._waiting = Batch(others[len(batch.others) :], acks[len(batch.acks) :])
        return batch

    async def _request(self, batch: Batch) -> None:
        try:
            await self._settle(batch)
        except Exception:
            LOG.exception("%d messages could not be settled", len(batch))
            self.summary.unsettled += len(batch)
        finally:
            self._open -= len(batch)
            if not self._open:
                self._idle.set()

    async def _settle(self, batch: Batch) -> None:
        try:
            errors = await self._answer(batch)
        except SluiceError as error:
            await self._refused(batch, error)
        else:
            self._count(batch, errors)

    async def _answer(self, batch: Batch) -> list[SluiceError | None]:
        """The errors of the items, tried for as long as the leases may live."""
        loop = asyncio.get_running_loop()
        give_up = loop.time() + self._patience
        while True:
            try:
                errors = await self._try(batch)
                if not any(error and error.code == "in_doubt" for error in errors) or loop.time() >= give_up:
                    return errors
            except (Unavailable, Overloaded, Timeout):
                if loop.time() >= give_up:
                    raise
            await asyncio.sleep(PAUSE)

    async def _refused(self, batch: Batch, error: SluiceError) -> None:
        if not isinstance(error, REFUSED) or batch.is_last_resort:
            LOG.error("%d messages could not be settled: %s", len(batch), error)
            self.summary.unsettled += len(batch)
        elif len(batch) > 1:
            for half in batch.halves():
                await self._settle(half)
        else:
            await self._settle(batch.instead(error))

    async def _try(self, batch: Batch) -> list[SluiceError | None]:
        frame = pb.SettleMany(items=[one.item for one in batch.others], acks=batch.acks)
        try:
            return await self._link.ask(len(batch), settle=frame)
        except Broken:
            # What the session has done all the same is settled already.
            return await self._client.settle([*batch.others, *map(Settlement.ack, batch.acks)])

    def _count(self, batch: Batch, errors: list[SluiceError | None]) -> None:
        for place, failure in enumerate(errors):
            if failure is not None:
                LOG.warning("%s: %s", batch.outcome(place), failure)
                self.summary.lost += 1
            elif place < len(batch.others):
                field = FIELDS[batch.outcome(place)]
                setattr(self.summary, field, getattr(self.summary, field) + 1)
            else:
                self.summary.acked += 1


def _fitting(settlements: list[Settlement]) -> int:
    """How many of them one request takes: at least one."""
    size = 0
    for place, one in enumerate(settlements):
        size += _size(one)
        if size > BATCH_BYTES_MAX and place:
            return place
    return len(settlements)


def _size(settlement: Settlement) -> int:
    return len(settlement.item.result) + len(settlement.item.error)


def _nack_instead(settlement: Settlement, why: str) -> Settlement:
    """A nack that tells why a settlement was not taken."""
    item = settlement.item
    said = f"; the handler said: {item.error}" if item.error else ""
    LOG.error("%s: %s; the message is nacked", item.outcome, why)
    return Settlement.nack(item.receipt, f"the {item.outcome} was refused: {why}{said}")
