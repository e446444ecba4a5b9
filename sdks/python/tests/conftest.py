"""What the tests share."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from sluice import Client, Worker
from sluice.aio import Handler
from sluice.work import Summary, WorkerOptions


@pytest.fixture(autouse=True, scope="session")
def no_contexts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nobody's contexts of the command line count."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        patch.delenv("SLUICE_CONTEXT", raising=False)
        yield


@pytest.fixture
def queue() -> str:
    """A queue that no other test uses."""
    return f"q-{secrets.token_hex(4)}"


def eventually(holds: Callable[[], bool], within: float = 60) -> None:
    """Waits until something holds."""
    until = time.monotonic() + within
    while not holds():
        assert time.monotonic() < until, "it has not come to hold in time"
        time.sleep(0.02)


class Working:
    """A worker in a thread."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.summary = Summary()
        self._told = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        self.summary = self.worker.run()

    def tell(self) -> None:
        """Tells it to stop. A second word would end what runs."""
        if not self._told:
            self._told = True
            self.worker.stop()

    def stop(self) -> None:
        self.tell()
        self._thread.join(60)
        assert not self._thread.is_alive()


@contextmanager
def working(client: Client, queue: str, handler: Handler, options: WorkerOptions) -> Iterator[Working]:
    """A worker for the time of a test."""
    made = Working(Worker(client, queue, handler, **options))
    try:
        yield made
    finally:
        made.stop()
