"""Forks: the client is made anew, or says that it cannot be."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from unittest.mock import Mock

import pytest

from sluice import Client, SluiceError
from sluice.testing import Server

from .conftest import eventually

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


# In a process that has connections of this client alone: gRPC may crash in the child of one with others.
FORKS = """
import os, sys
from sluice import Client

client, queue = Client(sys.argv[1]), sys.argv[2]
client.send(queue, "before")
child = os.fork()
if child == 0:
    client.send(queue, "child")
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
client.send(queue, "after")
print(*[one.value for one in client.receive(queue, max=9)])
"""


def test_parent_and_child_go_on(sluice_server: Server, queue: str) -> None:
    command = [sys.executable, "-c", FORKS, sluice_server.url, queue]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stdout) == (0, "before child after\n"), ran.stderr


def test_client_with_calls_under_way_is_left_as_it_is(sluice_client: Client, queue: str) -> None:
    """Without a fork: gRPC itself may crash in a child that is forked at this moment."""
    got: list[str] = []
    waiting = threading.Thread(target=lambda: got.extend(m.id for m in sluice_client.receive(queue, wait=20)))
    waiting.start()
    portal = sluice_client.portal
    eventually(lambda: bool(portal._calls))
    assert not portal.before_fork()
    sent = sluice_client.send(queue, "parent goes on")
    waiting.join(20)
    assert got == [sent.id]


def test_what_was_left_is_of_no_use_in_a_child() -> None:
    client = Client("127.0.0.1:1")
    client.portal._running = Mock()
    client.portal.in_child()
    with pytest.raises(SluiceError, match="forked"):
        client.send("q", "child")


def test_closed_client_begins_anew(sluice_client: Client, queue: str) -> None:
    sluice_client.send(queue, 1)
    sluice_client.close()
    assert [one.value for one in sluice_client.receive(queue)] == [1]
    with pytest.raises(SluiceError):
        sluice_client.receive("no such name!")
