"""Servers for tests: processes of the binary."""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
import sysconfig
import tempfile
import urllib.error
import urllib.request
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from types import TracebackType
from typing import Any

from ..errors import error_of

START_WITHIN = 30
CALL_WITHIN = 60
#: What to do where there is no binary.
NO_BINARY = (
    "there is no sluice binary: set SLUICE_BIN to its path, put `sluice` on the PATH, "
    "or install the package sluice-server"
)


def find_binary() -> str | None:
    """The binary: ``SLUICE_BIN``, ``sluice`` on the ``PATH``, or that of the package ``sluice-server``."""
    beside = sysconfig.get_path("scripts")
    return os.environ.get("SLUICE_BIN") or shutil.which("sluice") or shutil.which("sluice", path=beside)


def _clean_env() -> dict[str, str]:
    """The environment without settings that are meant for other servers."""
    return {name: value for name, value in os.environ.items() if not name.startswith("SLUICE_")}


class _Process:
    """A process of the binary, which prints a line of JSON when it is ready."""

    def __init__(self, arguments: Sequence[str], binary: str | None) -> None:
        found = binary or find_binary()
        if found is None:
            raise FileNotFoundError(NO_BINARY)
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `stop`)
        # A server for tests ends when this process ends, and with it the pipe.
        self.process = subprocess.Popen(
            [found, *arguments, "--json"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=_clean_env(),
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.process.wait(START_WITHIN)
            raise RuntimeError(f"the server has not started: {self.log()}")
        #: What the process has said when it was ready.
        self.ready: dict[str, Any] = json.loads(line)

    def log(self) -> str:
        """What it has written to stderr."""
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    def stop(self) -> None:
        """Stops it in order."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(START_WITHIN)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        self._log.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class Server(_Process):
    """A server for tests: in memory, on a free port, and its time is moved by :meth:`advance`."""

    def __init__(self, *arguments: str, binary: str | None = None, listen: str = "127.0.0.1:0") -> None:
        """``arguments``: further ones of ``sluice serve``; with a ``--data-dir`` it is an ordinary server."""
        test = [] if any(one.startswith("--data-dir") for one in arguments) else ["--test"]
        super().__init__(["serve", *test, f"--listen={listen}", *arguments], binary)
        self.url: str = self.ready["url"]

    def advance(
        self,
        by: timedelta = timedelta(),
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        milliseconds: float = 0,
    ) -> datetime:
        """Moves the time of the server forward, and returns it.

        Whatever is due by then is done when this returns: delays, leases and times to live are over, and
        schedules have fired for each time in between.
        """
        units = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=milliseconds)
        by_ms = (by + units) // timedelta(milliseconds=1)
        if by_ms < 0:
            raise ValueError(f"the time moves forward only, not by {by + units}")
        return self._time({"advance_ms": by_ms})

    def now(self) -> datetime:
        """The time of the server, in UTC."""
        return self._time(None)

    def _time(self, body: dict[str, int] | None) -> datetime:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"{self.url}/v1/test/time", data, {"Content-Type": "application/json"}
        )
        direct = urllib.request.ProxyHandler({})
        opener = urllib.request.build_opener(direct, urllib.request.HTTPSHandler(context=self._tls()))
        try:
            with opener.open(request, timeout=CALL_WITHIN) as answer:
                now_ms: int = json.load(answer)["now_ms"]
        except urllib.error.HTTPError as refused:
            with refused:
                error = json.load(refused)["error"]
            raise error_of(error["code"], error["message"], error["details"]) from None
        return datetime.fromtimestamp(now_ms / 1000, timezone.utc)

    def _tls(self) -> ssl.SSLContext | None:
        """What to reach it with, if it has made its own certificates."""
        made = self.ready["credentials"]
        if made is None:
            return None
        context = ssl.create_default_context(cafile=made["ca"])
        context.load_cert_chain(made["cert"], made["key"])
        return context

    def __enter__(self) -> Server:
        return self


class Cluster:
    """Three nodes of one cluster, each a process of its own."""

    def __init__(self, folder: str, *, port: int = 0, binary: str | None = None) -> None:
        """``folder``: for data and certificates. ``port``: of the first node; 0: free ones."""
        found = binary or find_binary()
        if found is None:
            raise FileNotFoundError(NO_BINARY)
        make = [found, "cluster", "dev", f"--dir={folder}", f"--port={port}", "--no-start", "--json"]
        run = subprocess.run(make, env=_clean_env(), capture_output=True, text=True)
        if run.returncode:
            raise RuntimeError(f"there is no cluster: {run.stderr}")
        made = json.loads(run.stdout)
        self._binary = found
        self._arguments: list[list[str]] = [node["arguments"] for node in made["nodes"]]
        self._nodes: list[_Process | None] = [None] * len(self._arguments)
        #: Of each node.
        self.urls: list[str] = [node["url"] for node in made["nodes"]]
        #: Files to reach it with: ``ca``, ``cert``, ``key``.
        self.credentials: dict[str, str] = {name: made[name] for name in ("ca", "cert", "key")}
        for node in range(len(self._nodes)):
            self.start(node)

    def start(self, node: int) -> None:
        """Starts a node, counted from 0, that does not run."""
        self._nodes[node] = _Process(self._arguments[node], self._binary)

    def kill(self, node: int) -> None:
        """Ends a node at once, as a crash would."""
        process = self._nodes[node]
        if process is not None:
            process.process.kill()
            process.stop()
            self._nodes[node] = None

    def stop(self) -> None:
        """Ends all nodes; their data stay."""
        for node in range(len(self._nodes)):
            self.kill(node)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
