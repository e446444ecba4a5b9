"""The example worker against a real server."""

import pathlib
import signal
import subprocess
import sys

import conftest
import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"


@pytest.fixture
def worker(server):
    """Starts workers, with this code put before main(); ends what is left of them."""
    started = []

    def start(code="pass"):
        program = f"import sys, time\nsys.path.insert(0, {str(EXAMPLES)!r})\nimport worker\n{code}\nworker.main()\n"
        command = [sys.executable, "-c", program, "jobs", "--server", server.url]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def send(server, *payloads):
    server.call("POST", "/v1/queues/jobs/messages", {"messages": [{"payload": p} for p in payloads]})


def until(server, **expected):
    """Waits until the queue's counts and totals are these."""

    def is_so():
        queue = server.call("GET", "/v1/queues/jobs")
        seen = {**queue["counts"], **queue["totals"]}
        return all(seen[name] == count for name, count in expected.items())

    conftest.until(is_so, f"the queue has {expected}")


def test_it_acks_what_its_handler_has_done(server, worker):
    send(server, "one", "two")
    process = worker()
    assert process.stdout.readline().endswith("attempt 1: one\n")
    assert process.stdout.readline().endswith("attempt 1: two\n")
    until(server, acked=2, ready=0, leased=0)


def test_payloads_that_are_not_text_arrive_whole(server, worker):
    server.call("POST", "/v1/queues/jobs/messages", {"payload_base64": "/wD+"})
    process = worker("worker.handle = lambda payload, message: print(payload.hex(), flush=True)")
    assert process.stdout.readline() == "ff00fe\n"


def test_an_exception_nacks_and_reject_kills(server, worker):
    send(server, "fail", "reject")
    worker(
        "def handle(payload, message):\n"
        "    raise worker.Reject('never') if payload == b'reject' else ValueError('this time not')\n"
        "worker.handle = handle"
    )
    until(server, nacked=1, dead=1)
    dead = server.call("GET", "/v1/queues/jobs/dead")["messages"][0]
    assert dead["reason"] == "rejected" and dead["history"][-1]["error"] == "never"


def test_the_lease_is_extended_while_the_handler_runs(server, worker):
    send(server, "slow")
    worker("worker.LEASE_MS = 2000\nworker.handle = lambda payload, message: time.sleep(4.5)")
    until(server, acked=1, expired=0, delivered=1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_it_finish_the_message_at_hand(server, worker, number):
    send(server, "first", "second")
    process = worker("worker.handle = lambda payload, message: (print('begun', flush=True), time.sleep(1))")
    assert process.stdout.readline() == "begun\n"
    process.send_signal(number)
    assert process.wait(15) == 0
    until(server, acked=1, ready=1, leased=0)
