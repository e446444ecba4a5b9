"""Redis, RabbitMQ and Sluice for each test, and the scripts of examples/migrate, killed again and again."""

import os
import pathlib
import random
import socket
import subprocess
import sys
import time

import pytest

import sluice
from sluice.testing import Server

ROOT = pathlib.Path(__file__).resolve().parents[2]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def until(is_so, what: str, seconds: float = 60):
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.1)


@pytest.fixture
def server():
    with Server() as started:
        yield started


@pytest.fixture
def client(server):
    with sluice.Client(server.url) as made:
        yield made


@pytest.fixture
def redis_port(tmp_path):
    port = free_port()
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", str(tmp_path), "--save", ""]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    until(lambda: is_open(port), "Redis listens")
    yield port
    process.terminate()
    process.wait()


@pytest.fixture
def rabbitmq_url(tmp_path):
    """A broker of its own. Erlang does not run without a name server, which outlives it and belongs to nobody."""
    port, dist = free_port(), free_port()
    home = tmp_path / "rabbitmq"
    home.mkdir()
    script = next(pathlib.Path("/usr/lib/rabbitmq").glob("lib/rabbitmq_server-*/sbin/rabbitmq-server"))
    env = {
        "PATH": os.environ["PATH"], "HOME": str(home), "RABBITMQ_NODENAME": f"test{port}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1", "RABBITMQ_NODE_PORT": str(port), "RABBITMQ_DIST_PORT": str(dist),
        "RABBITMQ_MNESIA_BASE": str(home), "RABBITMQ_LOG_BASE": str(home), "RABBITMQ_CONFIG_FILE": str(home / "none"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "plugins"), "RABBITMQ_PID_FILE": str(home / "pid"),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
    }
    with open(tmp_path / "rabbitmq.log", "w") as log:
        process = subprocess.Popen(
            [script], env=env, cwd=home, stdout=log, stderr=log, start_new_session=True
        )
    until(lambda: is_open(port), "RabbitMQ listens")
    yield f"amqp://guest:guest@127.0.0.1:{port}/%2F"
    os.killpg(process.pid, 15)
    process.wait()


def is_open(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def migrate(server):
    """Runs a script of examples/migrate, which is killed at random times until it comes to its end."""

    def run(script: str, *arguments: str) -> int:
        command = [sys.executable, str(ROOT / "examples/migrate" / script), *arguments]
        env = {**os.environ, "SLUICE_SERVER": server.url}
        chance = random.Random(script)
        began = time.monotonic()
        subprocess.run([*command[:2], "--help"], env=env, check=True, stdout=subprocess.DEVNULL)
        beginning = time.monotonic() - began
        kills = 0
        while True:
            process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            try:
                # From the time that it needs to begin, to some batches more. Later runs get more time.
                seconds = beginning * chance.uniform(1, 1.8) + kills * 0.02
                said, _ = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                kills += 1
                continue
            assert process.returncode == 0, said
            print(f"killed {kills} times; {said}")
            return kills

    return run


def messages(client, queue: str) -> list[sluice.Message]:
    """All messages of a queue that are ready, in the order in which they are received."""
    found = []
    while batch := client.receive(queue, max=500):
        found += batch
    return found
