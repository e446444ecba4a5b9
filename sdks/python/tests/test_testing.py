"""What programs have for their tests."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

import sluice
from sluice import App, Client, To, aio
from sluice._proto import queues_pb2, testing_pb2
from sluice.testing import Server, outbox

NOWHERE = "127.0.0.1:1"


def test_outbox_records_sends() -> None:
    client = Client(NOWHERE)
    app = App(client)

    @app.task(queue="mail")
    def send_mail(to: str) -> None: ...

    with client, outbox(client) as box:
        box.assert_nothing_sent()
        client.send("q", {"n": 1}, headers={"h": "1"})
        client.send_many("q", [b"raw", "text"])
        client.group([To("a", 1), To("b", 2)], To("end", "done"))
        send_mail.send("ann")
        box.assert_sent("q", {"n": 1}, count=1)
        box.assert_sent("q", count=3)
        box.assert_sent("q", b"raw")
        box.assert_sent("q", "text")
        box.assert_sent("end", "done")
        box.assert_sent("mail", {"args": ["ann"], "kwargs": {}})
        assert box.sent("q")[0].headers == {"h": "1"}
        with pytest.raises(AssertionError, match="sent were"):
            box.assert_sent("q", {"n": 2})
        with pytest.raises(AssertionError, match="sent were"):
            box.assert_sent("q", count=1)
        with pytest.raises(AssertionError, match="records sends only"):
            client.receive("q")


def test_outbox_of_the_asyncio_client() -> None:
    async def main() -> None:
        async with aio.Client(NOWHERE) as client:
            with outbox(client) as box:
                await client.send("q", 1)
            box.assert_sent("q", 1, count=1)

    asyncio.run(main())


def test_clients_of_two_tests_do_not_see_each_other(sluice_client: Client) -> None:
    sluice_client.send("shared", 1)
    found = sluice_client.stubs.queues.List(queues_pb2.ListQueuesRequest())
    assert [queue.name for queue in found.queues] == ["shared"]


def test_a_day_passes_at_once(sluice_server: Server, sluice_client: Client) -> None:
    """A delayed message, a lease and a schedule."""
    sluice_client.send("later", "tomorrow", delay=24 * 3600)
    sluice_client.send("held", "once more")
    assert [message.attempt for message in sluice_client.receive("held")] == [1]
    sluice_client.schedules.put("hourly", "reports", "report", every=3600)
    before, began = sluice_server.now(), time.monotonic()
    after = sluice_server.advance(hours=24)
    assert time.monotonic() - began < 2
    assert timedelta(hours=24) <= after - before < timedelta(hours=25)
    assert [message.value for message in sluice_client.receive("later")] == ["tomorrow"]
    assert [message.attempt for message in sluice_client.receive("held")] == [2]
    assert len(sluice_client.receive("reports", max=100)) == 24


def test_the_time_moves_by_any_unit_and_forward_only() -> None:
    with Server() as server:
        first = server.advance(timedelta(days=1), hours=1, minutes=1, seconds=1, milliseconds=1)
        moved = first - server.advance()
        assert abs(moved) < timedelta(minutes=1)
        with Client(server.url) as client:
            time = client.stubs.testing.GetTime(testing_pb2.GetTestTimeRequest())
        assert time.ahead_ms == ((25 * 60 + 1) * 60 + 1) * 1000 + 1
        with pytest.raises(ValueError, match="forward only"):
            server.advance(seconds=-1)
        with pytest.raises(sluice.InvalidArgument, match="advance_ms"):
            server.advance(days=200 * 365)


def test_an_ordinary_server_moves_no_time(tmp_path: Path) -> None:
    with Server(f"--data-dir={tmp_path}/data") as server, pytest.raises(sluice.Conflict) as refused:
        server.advance(hours=1)
    assert refused.value.code == "no_test_server"


def test_a_server_ends_with_the_process_that_has_started_it() -> None:
    program = "import os, sluice.testing as t; print(t.Server().url, flush=True); os.kill(os.getpid(), 9)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    url = run.stdout.strip()
    assert url.startswith("http://"), run.stderr
    until = time.monotonic() + 30
    with Client(url, retry_for=0) as client:
        while True:
            try:
                client.send("q", 1)
            except sluice.Unavailable:
                break
            assert time.monotonic() < until


@pytest.mark.parametrize(("ci", "outcome"), [("", "1 skipped"), ("true", "1 error")])
def test_a_missing_binary_is_told_with_what_to_do(tmp_path: Path, ci: str, outcome: str) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(sluice_client): pass\n")
    env = {**os.environ, "CI": ci, "SLUICE_BIN": "", "PATH": "/nowhere"}
    command = [sys.executable, "-m", "pytest", "-rs", "-q", "-p", "no:cacheprovider", "test_it.py"]
    said = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=env).stdout
    assert outcome in said
    assert "set SLUICE_BIN to its path" in said
