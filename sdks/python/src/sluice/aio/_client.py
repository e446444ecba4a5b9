"""The client for asyncio."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from .._config import Config, PathLike, make_config
from .._proto.services import Stubs
from .._values import Duration
from ._attachments import Attachments
from ._core import Core
from ._documents import Documents
from ._locks import LockContext, Locks, LockTerms
from ._receiving import Receiving
from ._schedules import Schedules
from ._sending import Sending
from ._transactions import Transacting


class Client(Sending, Receiving, Transacting):
    """A client of one server, or of the nodes of a cluster, for one event loop.

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
        self._begin(config)

    @classmethod
    def of(cls, config: Config) -> Client:
        """A client with a configuration that was made before."""
        made = cls.__new__(cls)
        made._begin(config)
        return made

    def _begin(self, config: Config) -> None:
        self._core = Core(config)
        self.documents = Documents(self._core)
        self.attachments = Attachments(self._core)
        self.schedules = Schedules(self._core)
        self.locks = Locks(self._core)
        #: All services with the messages of their contract: ``client.stubs.queues.List(request)``.
        self.stubs = Stubs(self._core)

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
        """Holds a lock, or several, for the time of an ``async with``; renewed behind the scenes.

        ``ttl``: after a crash the lock is free after so long. ``wait``: the longest wait, for ever by
        default; then :class:`LockHeld`. ``shared``: with others that share it. ``holders``: with up to so
        many others.
        """
        return LockContext(self.locks, LockTerms.of(key, ttl, wait, shared, holders, owner))

    async def close(self) -> None:
        """Closes the connections."""
        await self._core.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
