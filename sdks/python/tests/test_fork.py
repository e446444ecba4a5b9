"""Forks: the client is made anew, or says that it cannot be."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from unittest.mock import Mock

import pytest

from sluice import Client, SluiceError

from .conftest import eventually

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


def in_child(work: Callable[[], str]) -> str:
    """What a child process says."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            said = work()
        except BaseException as error:
            said = repr(error)
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        said = file.read()
    assert os.waitpid(pid, 0)[1] == 0
    return said


def test_parent_and_child_go_on(sluice_client: Client, queue: str) -> None:
    sluice_client.send(queue, "before")
    assert in_child(lambda: sluice_client.send(queue, "child").id) != ""
    sluice_client.send(queue, "after")
    assert [one.value for one in sluice_client.receive(queue, max=9)] == ["before", "child", "after"]


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
