"""A server of its own for each test, and a few words to talk to it."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

sys.path.insert(0, str(ROOT / "tests"))
from skips import pytest_runtest_makereport  # noqa: E402, F401


def binary() -> str:
    """SLUICE_BIN, else what cargo builds."""
    if "SLUICE_BIN" in os.environ:
        return os.environ["SLUICE_BIN"]
    subprocess.run(["cargo", "build", "--quiet", "--package", "sluice"], cwd=ROOT, check=True)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return str(target / "debug" / "sluice")


def until(is_so, what="it comes to that"):
    """Waits until it is so. `what`: the state in words, or a function that tells what was seen last."""
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline, f"waited in vain until {what() if callable(what) else what}"
        time.sleep(0.01)


def strace_is_missing() -> str:
    """Why nothing can be traced here; empty: it can."""
    if not shutil.which("strace"):
        return "strace is not installed"
    tried = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, text=True)
    return f"strace may not trace here: {tried.stderr.strip()}" if tried.returncode else ""


# Mounts need no right on this machine, in a namespace of mounts.
ALONE = ["unshare", "--map-root-user", "--mount", "--propagation", "private"]


def unshare_is_missing() -> str:
    """Why nothing can be mounted here; empty: it can."""
    if not shutil.which("unshare"):
        return "unshare is not installed"
    script = "mount -t tmpfs tmpfs /mnt"
    tried = subprocess.run([*ALONE, "sh", "-c", script], capture_output=True, text=True)
    return f"nothing may be mounted here: {tried.stderr.strip()}" if tried.returncode else ""


FAKETIME = next(pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
needs_faketime = pytest.mark.skipif(FAKETIME is None, reason="libfaketime is not installed")


def wrong_clock(offset: str) -> dict[str, str]:
    """Environment of a process whose wall clock is wrong by an offset like `+2d`; its monotonic one is right."""
    return {
        "LD_PRELOAD": str(FAKETIME),
        "FAKETIME": offset,
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }


class Process:
    """A server's process with a directory of its own, to be stopped, killed and started again."""

    def __init__(self, directory: pathlib.Path, listen: str):
        self.directory = directory
        self.listen = listen
        # The settings of whoever runs the tests are not those of the server under test.
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("SLUICE_")}
        self.env["HOME"] = str(directory)
        # Command that runs the server as its arguments say.
        self.runner = []

    def spawn(self, *arguments: str, log=None) -> str:
        """The first line of its output; empty: it has ended without one."""
        serve = [binary(), "serve", "--json", "--listen", self.listen, "--data-dir", "data", *arguments]
        command = [*self.runner, *serve]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env=self.env, cwd=self.directory
        )
        return self.process.stdout.readline()

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        self.process.terminate()
        return self.process.wait(40)

    def kill(self):
        """kill -9"""
        self.process.kill()
        self.process.wait()


class Server(Process):
    """A running server."""

    def __init__(self, directory: pathlib.Path):
        super().__init__(directory, "127.0.0.1:0")
        self.start()

    def start(self, *arguments: str):
        self.url = json.loads(self.spawn(*arguments))["url"]

    def request(self, method, path, body=None, headers=None) -> tuple[int, bytes]:
        """Status and body of the answer, whatever it is."""
        request = urllib.request.Request(self.url + path, body, headers or {}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=70) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def call(self, method, path, body=None, headers=None) -> dict:
        """JSON in and out; an error's answer fails the test."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", **(headers or {})}
        status, answer = self.request(method, path, data, headers)
        assert status < 300, answer
        return json.loads(answer)

    def sluice(self, *arguments: str) -> subprocess.CompletedProcess:
        """Runs the command line against this server."""
        env = {**self.env, "SLUICE_SERVER": self.url}
        command = [binary(), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=self.directory, env=env)


@pytest.fixture
def server(tmp_path):
    started = Server(tmp_path)
    yield started
    if started.process.poll() is None:
        assert started.stop() == 0
