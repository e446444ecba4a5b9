"""Schedules."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from .. import _encode as encode
from .._fields import made
from .._proto import schedules_pb2 as pb
from .._proto import services
from .._values import Duration, Payload, millis, time_of
from ..messages import Outgoing, SendOptions
from ._core import Core

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Schedules:
    """Messages that are sent at set times."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def put(
        self,
        name: str,
        queue: str,
        payload: Payload = b"",
        *,
        cron: str | None = None,
        every: Duration | None = None,
        time_zone: str | None = None,
        missed: str | None = None,
        **options: Unpack[SendOptions],
    ) -> pb.Schedule:
        """Creates or replaces a schedule, with ``cron`` or ``every``. May be declared at each start."""
        request = made(
            pb.PutScheduleRequest,
            schedule=name,
            queue=queue,
            cron=cron,
            every_ms=None if every is None else millis(every, "every"),
            time_zone=time_zone,
            missed=missed,
            message=encode.message(Outgoing(payload, **options)),
        )
        return await self._core.unary(services.SCHEDULES_PUT, request, safe=True)

    async def get(self, name: str) -> pb.Schedule:
        """A schedule with its message."""
        return await self._core.unary(
            services.SCHEDULES_GET, made(pb.GetScheduleRequest, schedule=name), safe=True
        )

    async def list(self) -> AsyncIterator[pb.Schedule]:
        """All schedules, by name."""
        request = pb.ListSchedulesRequest()
        while True:
            got = await self._core.unary(services.SCHEDULES_LIST, request, safe=True)
            for one in got.schedules:
                yield one
            if not got.next:
                return
            request.after = got.next

    async def next(self, name: str, count: int = 10) -> Sequence[datetime]:
        """The next times of a schedule."""
        request = made(pb.NextRequest, schedule=name, count=count)
        got = await self._core.unary(services.SCHEDULES_NEXT, request, safe=True)
        return [time_of(one) for one in got.next_at_ms]

    async def pause(self, name: str) -> pb.Schedule:
        """Lets times pass without a message, until it is resumed."""
        request = made(pb.ScheduleRequest, schedule=name)
        return await self._core.unary(services.SCHEDULES_PAUSE, request, safe=True)

    async def resume(self, name: str) -> pb.Schedule:
        """Goes on with the next time."""
        request = made(pb.ScheduleRequest, schedule=name)
        return await self._core.unary(services.SCHEDULES_RESUME, request, safe=True)

    async def trigger(self, name: str) -> str:
        """Sends the message now, and returns its id; the times are not changed."""
        return (
            await self._core.unary(services.SCHEDULES_TRIGGER, made(pb.ScheduleRequest, schedule=name))
        ).id

    async def delete(self, name: str) -> None:
        """Deletes a schedule; the messages that it has sent stay."""
        await self._core.unary(services.SCHEDULES_DELETE, made(pb.ScheduleRequest, schedule=name))
