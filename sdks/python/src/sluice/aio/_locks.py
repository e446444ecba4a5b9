"""Locks: acquired, renewed behind the scenes, released."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType

from .._fields import made
from .._proto import locks_pb2 as pb
from .._proto import services
from .._signal import Signal
from .._values import Duration, millis, seconds_of
from ..errors import LeaseLost, SluiceError, Unavailable
from ._core import AFTERWARDS_MAX, Core, random_key
from ._watch import follow

#: Longest wait that the server knows.
WAIT_MAX = 86_400.0
#: Seconds until a renewal that has failed is tried again, and the least for one try.
RENEW_PAUSE, RENEW_TRY_MIN = 0.25, 0.5
#: Seconds after which a call that waits has surely reached its server.
WAS_THERE = 1.0


@dataclass(frozen=True)
class LockTerms:
    """What is asked for."""

    keys: tuple[str, ...]
    ttl: float
    wait: float
    mode: str | None
    holders: int | None
    owner: str | None

    @staticmethod
    def of(
        key: str | Sequence[str],
        ttl: Duration,
        wait: Duration | None,
        shared: bool,
        holders: int | None,
        owner: str | None,
    ) -> LockTerms:
        """The terms, as a caller gives them."""
        keys = (key,) if isinstance(key, str) else tuple(key)
        mode = "shared" if shared else "counting" if holders is not None else None
        waits = WAIT_MAX if wait is None else min(seconds_of(wait, "wait"), WAIT_MAX)
        return LockTerms(keys, seconds_of(ttl, "ttl"), waits, mode, holders, owner)


class HeldLock:
    """A lock that is held, and renewed behind the scenes."""

    def __init__(self, locks: Locks, grant: pb.LockGrant, ttl: float, since: float) -> None:
        #: Proof of the grant, for conditions of writes.
        self.token = grant.token
        #: Number to give to other systems with each write: later grants have larger ones.
        self.fencing_token = int(grant.fencing_token)
        #: Given when the lock is lost: in good time, before the server gives it to another, as far as the
        #: clocks of both run alike.
        self.lost = Signal()
        self._locks, self._ttl = locks, ttl
        self._renewing = asyncio.create_task(self._keep(since))

    async def release(self) -> None:
        """Ends the grant. :class:`LeaseLost`: it had ended before."""
        self._renewing.cancel()
        with suppress(asyncio.CancelledError):
            await self._renewing
        if self.lost.is_set():
            raise LeaseLost("lease_lost", "the lock was lost before it was released")
        await self._locks.release(self.token)

    async def _keep(self, since: float) -> None:
        """Renews the lock at each third of its time, which began at ``since``."""
        loop = asyncio.get_running_loop()
        renewed: float | None = since
        while renewed is not None:
            await asyncio.sleep(renewed + self._ttl / 3 - loop.time())
            renewed = await self._renew(renewed)
        self.lost.set()

    async def _renew(self, since: float) -> float | None:
        """From when a lock that is held since then is held now; None: it is lost."""
        loop = asyncio.get_running_loop()
        # A part of the time is left for a holder that has to stop.
        give_up = since + self._ttl * 0.9
        while (asked := loop.time()) < give_up:
            # One try gets a part of the time only: a server that hangs must not use up all of it.
            patience = min(max(self._ttl / 6, RENEW_TRY_MIN), give_up - asked)
            try:
                await asyncio.wait_for(self._locks.renew(self.token), patience)
                return asked
            except LeaseLost:
                return None
            except (SluiceError, asyncio.TimeoutError):
                await asyncio.sleep(min(RENEW_PAUSE, max(give_up - loop.time(), 0)))
        return None


class LockContext:
    """Holds a lock for the time of an ``async with``."""

    def __init__(self, locks: Locks, terms: LockTerms) -> None:
        self._locks, self._terms = locks, terms
        self._held: HeldLock | None = None

    async def __aenter__(self) -> HeldLock:
        self._held = await self._locks.hold(self._terms)
        return self._held

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._held is not None
        try:
            await self._held.release()
        except SluiceError:
            # What the body has raised tells more.
            if error is None:
                raise


class Locks:
    """Locks without the comfort of ``client.lock``, and looks at them."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def acquire(
        self,
        key: str | Sequence[str],
        *,
        ttl: Duration = 30,
        wait: Duration | None = 0,
        shared: bool = False,
        holders: int | None = None,
        owner: str | None = None,
    ) -> pb.LockGrant:
        """Acquires locks, and leaves their renewal to the caller. :class:`LockHeld`: not free in time."""
        return await self._acquire(LockTerms.of(key, ttl, wait, shared, holders, owner))

    async def renew(self, token: str, ttl: Duration | None = None) -> pb.LockGrant:
        """Begins the time of a grant anew, or another time."""
        request = made(pb.RenewLockRequest, token=token, ttl_ms=None if ttl is None else millis(ttl, "ttl"))
        return await self._core.unary(services.LOCKS_RENEW, request, safe=True)

    async def release(self, token: str) -> None:
        """Ends a grant; one that was released before is no error."""
        await self._core.unary(services.LOCKS_RELEASE, made(pb.ReleaseLockRequest, token=token), safe=True)

    async def show(self, key: str) -> pb.Lock:
        """A lock with its holders and those that wait; one that is free has none."""
        return await self._core.unary(services.LOCKS_SHOW, made(pb.ShowLockRequest, key=key), safe=True)

    async def break_(self, key: str) -> int:
        """Takes a lock from all its holders; their number."""
        request = made(pb.BreakLockRequest, key=key)
        return (await self._core.unary(services.LOCKS_BREAK, request)).holders

    def watch(self, key: str) -> AsyncGenerator[pb.WatchLockResponse, None]:
        """A lock as it is, and again after each change; goes on after lost connections."""

        def begin() -> AsyncGenerator[pb.WatchLockResponse, None]:
            return self._core.stream(services.LOCKS_WATCH, made(pb.WatchLockRequest, key=key))

        return follow(begin, lambda state: bool(state.key))

    async def hold(self, terms: LockTerms) -> HeldLock:
        """Acquires locks, which are renewed until they are released."""
        loop = asyncio.get_running_loop()
        since = loop.time()
        grant = await self._acquire(terms)
        if loop.time() - since >= terms.ttl / 3:
            # Who has waited does not know when the grant began: a renewal tells.
            since = loop.time()
            try:
                grant = await self.renew(grant.token)
            except asyncio.CancelledError:
                self._core.do_afterwards(self._let_go(grant.token))
                raise
        return HeldLock(self, grant, terms.ttl, since)

    async def _acquire(self, terms: LockTerms) -> pb.LockGrant:
        loop = asyncio.get_running_loop()
        until, request_id = loop.time() + terms.wait, random_key()
        while True:
            began = loop.time()
            try:
                return await self._ask(terms, request_id, max(0.0, until - began))
            except asyncio.CancelledError:
                self._core.do_afterwards(self._withdraw(terms, request_id))
                raise
            except Unavailable:
                # The patience for repeats counts from the loss of a server that was there.
                if loop.time() - began < WAS_THERE or loop.time() >= until:
                    raise

    async def _withdraw(self, terms: LockTerms, request_id: str) -> None:
        """Takes a claim back whose caller has gone: it may wait, or have been granted without an answer."""
        with suppress(SluiceError, asyncio.TimeoutError):
            grant = await asyncio.wait_for(self._ask(terms, request_id, 0), AFTERWARDS_MAX)
            await self._let_go(grant.token)

    async def _let_go(self, token: str) -> None:
        """Ends a grant that nobody has; if that fails its time ends it."""
        with suppress(SluiceError, asyncio.TimeoutError):
            await asyncio.wait_for(self.release(token), AFTERWARDS_MAX)

    async def _ask(self, terms: LockTerms, request_id: str, wait: float) -> pb.LockGrant:
        request = made(
            pb.AcquireLockRequest,
            keys=terms.keys,
            owner=terms.owner,
            mode=terms.mode,
            holders=terms.holders,
            ttl_ms=millis(terms.ttl, "ttl"),
            wait_ms=millis(wait, "wait"),
            request_id=request_id,
        )
        got = await self._core.unary(services.LOCKS_ACQUIRE, request, timeout=wait, safe=True)
        return pb.LockGrant(token=got.token, fencing_token=got.fencing_token, expires_at_ms=got.expires_at_ms)
