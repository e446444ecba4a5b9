"""The client for threads."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from .. import aio
from .._config import PathLike, make_config
from .._proto.blocking import Stubs
from .._values import Duration
from ..aio._locks import LockTerms
from .contexts import LockContext, Transaction
from .parts import Attachments, Documents, Locks, Schedules
from .portal import Blocking, Portal, blocking


class Client(Blocking[aio.Client]):
    """A client of one server, or of the nodes of a cluster, for any number of threads.

    Calls are repeated as far as that does no harm, on the next server where several are given. What is not
    given comes from the environment, as for the command line: ``SLUICE_SERVER``, ``SLUICE_CONTEXT``,
    ``SLUICE_NAMESPACE``, ``SLUICE_CA``, ``SLUICE_CERT``, ``SLUICE_CERT_KEY``, ``SLUICE_TOKEN_FILE``,
    ``SLUICE_TOKEN``; else from the context that ``sluice context use`` has chosen.
    """

    def __init__(
        self,
        servers: str | Sequence[str] | None = None,
        *,
        context: str | None = None,
        namespace: str | None = None,
        token: str | None = None,
        token_file: PathLike | None = None,
        ca: PathLike | None = None,
        cert: PathLike | None = None,
        key: PathLike | None = None,
        request_timeout: float = 30.0,
        retry_for: float = 30.0,
        connect_retry_for: float = 10.0,
    ) -> None:
        """``servers``: ``http://HOST:PORT`` or ``https://...``, several separated by commas or in a list.

        ``context``: in their place, the name of a context of the command line. ``ca``, ``cert``, ``key``:
        PEM files. Times are in seconds.
        """
        config = make_config(
            servers,
            context=context,
            namespace=namespace,
            token=token,
            token_file=token_file,
            ca=ca,
            cert=cert,
            key=key,
            request_timeout=request_timeout,
            retry_for=retry_for,
            connect_retry_for=connect_retry_for,
        )
        portal = Portal(config)
        super().__init__(portal, lambda client: client)
        self.documents = Documents(portal, lambda client: client.documents)
        self.attachments = Attachments(portal, lambda client: client.attachments)
        self.schedules = Schedules(portal, lambda client: client.schedules)
        self.locks = Locks(portal, lambda client: client.locks)
        #: All services with the messages of their contract: ``client.stubs.queues.List(request)``.
        self.stubs = Stubs(portal)

    send = blocking(aio.Client.send)
    send_many = blocking(aio.Client.send_many)
    chain = blocking(aio.Client.chain)
    group = blocking(aio.Client.group)
    group_status = blocking(aio.Client.group_status)
    flow = blocking(aio.Client.flow)
    look = blocking(aio.Client.look)
    result = blocking(aio.Client.result)
    request = blocking(aio.Client.request)
    receive = blocking(aio.Client.receive)
    ack = blocking(aio.Client.ack)
    nack = blocking(aio.Client.nack)
    release = blocking(aio.Client.release)
    reject = blocking(aio.Client.reject)
    settle = blocking(aio.Client.settle)
    extend = blocking(aio.Client.extend)
    commit = blocking(aio.Client.commit)

    @property
    def portal(self) -> Portal:
        """The way to the asyncio client and its loop."""
        return self._portal

    def lock(
        self,
        key: str | Sequence[str],
        *,
        ttl: Duration = 30,
        wait: Duration | None = None,
        shared: bool = False,
        holders: int | None = None,
        owner: str | None = None,
    ) -> LockContext:
        """Holds a lock, or several, for the time of a ``with``; renewed behind the scenes.

        ``ttl``: after a crash the lock is free after so long. ``wait``: the longest wait, for ever by
        default; then :class:`LockHeld`. ``shared``: with others that share it. ``holders``: with up to so
        many others.
        """
        return LockContext(self._portal, LockTerms.of(key, ttl, wait, shared, holders, owner))

    def transaction(self, *, ttl: Duration = 30) -> Transaction:
        """A transaction over several calls, for a ``with``: committed at its end, or rolled back.

        It is rolled back by itself after ``ttl``.
        """
        return Transaction(self._portal, ttl)

    def close(self) -> None:
        """Ends the background thread and closes the connections."""
        self._portal.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
