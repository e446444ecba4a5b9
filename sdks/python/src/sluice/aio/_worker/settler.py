"""Settles in batches: what gathers while one is under way is the next one."""

from __future__ import annotations

import asyncio
import logging

from ..._proto import session_pb2 as pb
from ..._settle import Settlement
from ...errors import Overloaded, SluiceError, Timeout, Unavailable
from ...work import Summary
from .._receiving import Receiving
from .link import Broken, Link

LOG = logging.getLogger("sluice.worker")
BATCH_MAX = 1_000
PAUSE = 0.5
FIELDS = {"ack": "acked", "nack": "nacked", "release": "released", "reject": "rejected"}


class Settler:
    """Settles over the session, or by calls while there is none."""

    def __init__(self, client: Receiving, link: Link, patience: float) -> None:
        self._client, self._link, self._patience = client, link, patience
        self._queue: asyncio.Queue[Settlement] = asyncio.Queue()
        self._open = 0
        self.summary = Summary()

    @property
    def is_idle(self) -> bool:
        """Whether everything is settled."""
        return self._open == 0

    def add(self, settlement: Settlement) -> None:
        """Settles in a moment."""
        self._open += 1
        self._queue.put_nowait(settlement)

    async def done(self) -> None:
        """Waits until everything is settled."""
        await self._queue.join()

    async def run(self) -> None:
        """Runs until it is cancelled."""
        while True:
            batch = [await self._queue.get()]
            while len(batch) < BATCH_MAX and not self._queue.empty():
                batch.append(self._queue.get_nowait())
            try:
                await self._settle(batch)
            except Exception:
                LOG.exception("%d messages could not be settled", len(batch))
                self.summary.unsettled += len(batch)
            finally:
                self._open -= len(batch)
                for _ in batch:
                    self._queue.task_done()

    async def _settle(self, batch: list[Settlement]) -> None:
        loop = asyncio.get_running_loop()
        give_up = loop.time() + self._patience
        while True:
            try:
                errors = await self._try(batch)
                if not any(error and error.code == "in_doubt" for error in errors) or loop.time() >= give_up:
                    break
            except SluiceError as error:
                if loop.time() >= give_up or not isinstance(error, (Unavailable, Overloaded, Timeout)):
                    LOG.error("%d messages could not be settled: %s", len(batch), error)
                    self.summary.unsettled += len(batch)
                    return
            await asyncio.sleep(PAUSE)
        for settlement, failure in zip(batch, errors, strict=True):
            self._count(settlement, failure)

    async def _try(self, batch: list[Settlement]) -> list[SluiceError | None]:
        frame = pb.SettleMany(items=[one.item for one in batch])
        try:
            return await self._link.ask(len(batch), settle=frame)
        except Broken:
            # What the session has done all the same is settled already.
            return await self._client.settle(batch)

    def _count(self, settlement: Settlement, failure: SluiceError | None) -> None:
        outcome = settlement.item.outcome
        if failure is not None:
            LOG.warning("%s: %s", outcome, failure)
        field = "lost" if failure is not None else FIELDS[outcome]
        setattr(self.summary, field, getattr(self.summary, field) + 1)
