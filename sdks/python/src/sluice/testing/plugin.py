"""Fixtures of pytest."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from .._blocking.client import Client
from .._proto import namespaces_pb2
from .server import NO_BINARY, Server, find_binary


@pytest.fixture(scope="session")
def sluice_server_args() -> tuple[str, ...]:
    """Further arguments of ``sluice serve``: override this fixture to give some."""
    return ()


@pytest.fixture(scope="session")
def sluice_server(sluice_server_args: tuple[str, ...]) -> Iterator[Server]:
    """A server for all tests, in memory and on a free port, whose time ``advance`` moves.

    Where there is no binary the tests are skipped; with ``CI`` set in the environment they fail.
    """
    if find_binary() is None:
        end = pytest.fail if os.environ.get("CI") else pytest.skip
        end(NO_BINARY)
    with Server(*sluice_server_args) as server:
        yield server


@pytest.fixture
def sluice_client(sluice_server: Server) -> Iterator[Client]:
    """A client with a namespace of its own, so that tests do not see each other's messages."""
    with own_namespace(lambda name: Client(sluice_server.url, namespace=name)) as client:
        yield client


@contextmanager
def own_namespace(connect: Callable[[str], Client]) -> Iterator[Client]:
    """A client of a new namespace, which is deleted at the end; ``connect`` makes one of the named one."""
    name = f"test-{secrets.token_hex(4)}"
    with connect("") as admin:
        admin.stubs.namespaces.Put(namespaces_pb2.PutNamespaceRequest(namespace=name))
        try:
            with connect(name) as client:
                yield client
        finally:
            admin.stubs.namespaces.Delete(namespaces_pb2.DeleteNamespaceRequest(namespace=name, force=True))
