"""Tasks."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sluice import App, Client, Job, Retry, Summary, Worker
from sluice.testing import Server
from sluice.work import WorkerOptions

UNTIL_EMPTY: WorkerOptions = {"until_empty": True, "concurrency": 4}


def test_tasks_run_in_threads_and_on_the_loop(sluice_client: Client, queue: str) -> None:
    app = App(sluice_client)
    done: list[object] = []

    @app.task(queue=queue, result_ttl=60)
    def add(a: int, b: int = 1) -> int:
        """Adds."""
        return a + b

    @app.task(queue=queue)
    async def greet(name: str) -> None:
        await asyncio.sleep(0)
        done.append(name)
        await add.send_async(5, b=5)

    @app.task
    def failing(attempts: int) -> None:
        done.append(attempts)
        if len(done) < 3:
            raise Retry(after=0.01)

    assert (add(1, 2), add.__doc__) == (3, "Adds.")
    sums = [add.send(n) for n in range(3)]
    greet.using(priority=9).send("ann")
    summary = app.run(**UNTIL_EMPTY)
    assert [one.result(timeout=5) for one in sums] == [1, 2, 3]
    assert (done, summary.acked, summary.nacked) == (["ann"], 5, 0)
    failing.send(2)
    summary = app.run(**UNTIL_EMPTY)
    assert (done, summary.acked, summary.nacked) == (["ann", 2, 2], 1, 1)


def test_texts_travel_as_json(sluice_client: Client, queue: str) -> None:
    app = App(sluice_client)

    @app.task(queue=queue, name="echo", result_ttl=60)
    def echo(text: str | None) -> str | None:
        return text

    sent = [echo.send("Zoë"), echo.send(None)]
    app.run(**UNTIL_EMPTY)
    assert [one.result(timeout=5) for one in sent] == ["Zoë", None]


def test_messages_of_others(sluice_client: Client, queue: str) -> None:
    app, got = App(sluice_client), []

    @app.task(queue=queue)
    def only(value: object) -> None:
        got.append(value)

    sluice_client.send(queue, {"from": "elsewhere"})
    sluice_client.send(queue, {"args": [], "kwargs": {}}, headers={"sluice-task": "unknown"})
    summary = app.run(**UNTIL_EMPTY)
    assert (got, summary.acked, summary.rejected) == ([{"from": "elsewhere"}], 1, 1)


def test_blocking_calls_are_refused_on_the_loop(sluice_client: Client, queue: str) -> None:
    app = App(sluice_client)
    errors: list[str] = []

    @app.task(queue=queue)
    async def blocks(job: int) -> None:
        try:
            sluice_client.send(queue, job)
        except RuntimeError as error:
            errors.append(str(error))

    blocks.send(1)
    app.run(**UNTIL_EMPTY)
    assert "wait for itself" in errors[0]


PROGRAM = """
import time, sluice
app = sluice.App()
@app.task(queue="{queue}")
def slow(n):
    print("begun", n, flush=True)
    time.sleep(1)
    print("done", n, flush=True)
print(app.run(concurrency=1), flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_stop_in_order(
    sluice_server: Server, sluice_client: Client, queue: str, number: signal.Signals, tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text(PROGRAM.format(queue=queue))
    sluice_server_env = {**os.environ, "SLUICE_SERVER": sluice_server.url}
    with Client(sluice_server.url) as client:
        client.send_many(queue, [1, 2, 3])
        program = [sys.executable, str(tmp_path / "program.py")]
        with subprocess.Popen(program, env=sluice_server_env, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "begun 1\n"
            process.send_signal(number)
            began = time.monotonic()
            assert process.wait(60) == 0
            assert time.monotonic() - began < 30
            assert process.stdout.read().startswith(
                "done 1\nSummary(acked=1, nacked=0, rejected=0, released=0"
            )
        assert [one.attempt for one in client.receive(queue, max=3)] == [1, 1]


def test_job_reports_from_a_thread(sluice_client: Client, queue: str) -> None:
    from .conftest import eventually, working

    sent = sluice_client.send(queue, "x", result_ttl=60)

    def handler(job: Job) -> None:
        job.report(40, "soon", checkpoint=b"c")
        eventually(lambda: sluice_client.look(sent).progress == (40, "soon"))

    with working(sluice_client, queue, handler, {}):
        assert sluice_client.result(sent, timeout=60).state == "done"


def test_worker_that_is_stopped_before_it_runs(sluice_client: Client, queue: str) -> None:
    early = Worker(sluice_client, queue, lambda job: None)
    early.stop()
    assert early.run() == Summary()
