"""Servers, over TLS, for clients of others; and how those are run.

A client that is not installed is skipped, and says so; with CI set it fails.
"""

import contextlib
import json
import os
import pathlib
import shutil
import ssl
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent

sys.path.insert(0, str(ROOT / "tests"))
from skips import pytest_runtest_makereport  # noqa: E402, F401

# The body that the server gives: see crates/http2/tests/service.
PATTERN = bytes((at // 251 + at) & 255 for at in range(1 << 20))

# What an upload of that pattern is answered with, before its trailers.
UPLOADED = "{} bytes of the pattern, trailers: {}"

PIECES = b"".join(bytes([number]) * 8192 for number in range(64))


def built(variable: str, name: str, *cargo: str) -> str:
    """The program that the environment names, else what cargo builds."""
    if variable in os.environ:
        return os.environ[variable]
    subprocess.run(["cargo", "build", "--quiet", *cargo], cwd=ROOT, check=True)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return str(target / "debug" / name)


def sluice() -> str:
    return built("SLUICE_BIN", "sluice", "--package", "sluice")


@pytest.fixture(scope="session")
def certificates(tmp_path_factory) -> pathlib.Path:
    """A folder with ca.pem, server.pem and server.key, for localhost."""
    folder = tmp_path_factory.mktemp("tls")
    for verb in (["ca"], ["server", "localhost", "127.0.0.1"]):
        subprocess.run([sluice(), "cert", *verb, "--dir", str(folder)], check=True, capture_output=True)
    return folder


class Listening:
    """Where a server is to be reached: `url`, `port`, and `ca`, a file with who has signed its certificate."""

    def __init__(self, port: int, certificates: pathlib.Path):
        self.port, self.url, self.ca = port, f"https://localhost:{port}", str(certificates / "ca.pem")

    def context(self) -> ssl.SSLContext:
        """For clients that are Python's own."""
        made = ssl.create_default_context(cafile=self.ca)
        made.set_alpn_protocols(["h2"])
        return made


@contextlib.contextmanager
def ended(process: subprocess.Popen):
    """Runs to the end of the tests, and then is told to end."""
    yield process
    assert process.poll() is None, "the server has ended"
    process.terminate()
    process.wait(40)


@pytest.fixture(scope="session")
def stack(certificates):
    """The example server of crates/http2."""
    program = built("SLUICE_HTTP2_SERVE", "examples/serve", "--package", "sluice-http2", "--example", "serve")
    files = [str(certificates / "server.pem"), str(certificates / "server.key"), str(HERE / "chromium.html")]
    command = [program, "127.0.0.1:0", *files]
    with ended(subprocess.Popen(command, stdout=subprocess.PIPE, text=True)) as process:
        yield Listening(int(process.stdout.readline().rsplit(":", 1)[1]), certificates)


def begin_to_serve(folder: pathlib.Path, *options: str) -> tuple[subprocess.Popen, int]:
    """`sluice serve`, in memory, and its port."""
    command = [sluice(), "serve", "--json", "--memory", "--listen=127.0.0.1:0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder, env={"HOME": str(folder)})
    return process, int(json.loads(process.stdout.readline())["url"].rsplit(":", 1)[1])


def serve(folder: pathlib.Path, certificates: pathlib.Path) -> tuple[subprocess.Popen, Listening]:
    """The same, over TLS."""
    tls = [f"--tls-cert={certificates / 'server.pem'}", f"--tls-key={certificates / 'server.key'}"]
    process, port = begin_to_serve(folder, *tls)
    return process, Listening(port, certificates)


@pytest.fixture(scope="session")
def server(certificates, tmp_path_factory):
    """`sluice serve`, for all tests that leave it running."""
    process, listening = serve(tmp_path_factory.mktemp("serve"), certificates)
    with ended(process):
        yield listening


def need(name: str) -> str:
    """The path of a client; without it, the test is skipped."""
    return shutil.which(name) or pytest.skip(f"{name} is not installed")


def run(*command, stdin: bytes = b"", seconds: int = 60) -> bytes:
    """What a client prints, which has to succeed."""
    done = subprocess.run([str(part) for part in command], input=stdin, capture_output=True, timeout=seconds)
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:], done.stdout[-2000:])
    return done.stdout


def start(*command) -> subprocess.Popen:
    """A client that runs beside others; `finish` waits for it."""
    return subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def finish(process: subprocess.Popen, seconds: int = 60) -> bytes:
    try:
        told, _ = process.communicate(timeout=seconds)
    finally:
        process.kill()
    assert process.returncode == 0, (process.returncode, told[-2000:])
    return told
