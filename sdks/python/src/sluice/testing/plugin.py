"""Fixtures of pytest."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from .._blocking.client import Client
from .._proto import namespaces_pb2
from .server import Server, find_binary


@pytest.fixture(scope="session")
def sluice_server_args() -> tuple[str, ...]:
    """Further arguments of ``sluice serve``: override this fixture to give some."""
    return ()


@pytest.fixture(scope="session")
def sluice_server(sluice_server_args: tuple[str, ...]) -> Iterator[Server]:
    """A server in memory, on a free port, for all tests; they are skipped where there is no binary."""
    if find_binary() is None:
        pytest.skip("there is no server: set SLUICE_BIN, or put `sluice` on the PATH")
    with Server(*sluice_server_args) as server:
        yield server


@pytest.fixture
def sluice_client(sluice_server: Server) -> Iterator[Client]:
    """A client with a namespace of its own, so that tests do not see each other's messages."""
    name = f"test-{secrets.token_hex(4)}"
    with Client(sluice_server.url) as admin:
        admin.stubs.namespaces.Put(namespaces_pb2.PutNamespaceRequest(namespace=name))
        try:
            with Client(sluice_server.url, namespace=name) as client:
                yield client
        finally:
            admin.stubs.namespaces.Delete(namespaces_pb2.DeleteNamespaceRequest(namespace=name, force=True))
