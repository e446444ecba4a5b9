"""A server that stops, and the command line's worker."""

import subprocess
import time

import pytest
from conftest import binary, until


@pytest.fixture
def work(server):
    """Starts `sluice work jobs -- COMMAND`; ends what is left."""
    started = []

    def start(*command):
        environment = {**server.env, "SLUICE_SERVER": server.url}
        work = [binary(), "work", "jobs", "--", *command]
        started.append(subprocess.Popen(work, env=environment, stderr=subprocess.DEVNULL))
        until(lambda: server.call("GET", "/v1/consumers")["consumers"], "the worker is attached")

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_a_worker_without_work_does_not_hold_up_the_end(server, work):
    work("true")
    began = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - began < 10, "far less than the grace of 30 s"


def test_a_worker_settles_what_it_has_before_the_end(server, work):
    work("sleep", "2")
    server.call("POST", "/v1/queues/jobs/messages", {"payload": "x"})
    leased = lambda: server.call("GET", "/v1/queues/jobs")["counts"]["leased"] == 1  # noqa: E731
    until(leased, "the message is leased")
    began = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - began < 15
    server.start()
    assert server.call("GET", "/v1/queues/jobs")["totals"]["acked"] == 1
