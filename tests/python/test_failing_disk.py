"""A disk that fails under a real process; strace lets its system calls fail."""

import pathlib
import signal
import subprocess

import pytest
from conftest import binary, strace_is_missing

# The exit codes of a server that failed, and of one that a full disk stops (docs/cli.md).
FAILED = 8
FULL = 6
STRACE = ["strace", "-f", "-qq", "-o", "/dev/null", "-e"]

pytestmark = pytest.mark.skipif(bool(strace_is_missing()), reason=strace_is_missing())


def is_traced(process: subprocess.Popen) -> bool:
    """Whether each of its threads is."""
    tasks = pathlib.Path(f"/proc/{process.pid}/task").iterdir()
    return all("TracerPid:\t0\n" not in (task / "status").read_text() for task in tasks)


def test_a_last_sync_that_fails_is_told_by_the_exit_code(server):
    server.stop()
    server.start("--durability", "os")
    server.call("POST", "/v1/queues/jobs/messages", {"payload": "not synced yet"})
    command = [*STRACE, "inject=fdatasync,fsync:error=EIO", "-p", str(server.process.pid)]
    strace = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        while not is_traced(server.process):
            assert strace.poll() is None, strace.stderr.read()
        assert server.stop() == FAILED
    finally:
        strace.send_signal(signal.SIGINT)
        strace.wait(10)


def test_a_start_without_room_says_so_and_changes_nothing(server, tmp_path):
    server.call("POST", "/v1/queues/jobs/messages", {"payload": "before"})
    server.stop()
    serve = [binary(), "serve", "--listen", "127.0.0.1:0", "--data-dir", "data"]
    command = [*STRACE, "inject=pwrite64,fallocate:error=ENOSPC", *serve]
    full = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path, env=server.env)
    assert full.returncode == FULL
    assert "No space left on device" in full.stderr
    server.start()
    assert server.call("GET", "/v1/queues/jobs")["counts"]["ready"] == 1
