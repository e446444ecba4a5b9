"""Go's net/http: the checks are in go/main.go."""

import socket
import subprocess
import time

import pytest

from conftest import HERE, need, run, serve

CHECKS = ["requests", "streamed_bodies", "trailers", "continued", "downloads", "small_windows", "resets",
          "early_answers", "broken_answers"]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    program = tmp_path_factory.mktemp("go") / "interop"
    built = subprocess.run([need("go"), "build", "-o", program, "."], cwd=HERE / "go", capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return program


@pytest.mark.parametrize("check", CHECKS)
def test_go(check, client, stack):
    run(client, check, stack.url, stack.ca)


def until_closed(port: int):
    """Waits until nobody listens there."""
    deadline = time.monotonic() + 30
    while socket.socket().connect_ex(("127.0.0.1", port)) == 0:
        assert time.monotonic() < deadline, "it still listens"
        time.sleep(0.01)


def test_a_server_that_ends_lets_its_client_finish(client, certificates, tmp_path):
    process, server = serve(tmp_path, certificates)
    command = [client, "ended_servers", server.url, server.ca]
    pipe = subprocess.PIPE
    waits = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True)
    try:
        assert waits.stdout.readline() == "begun\n"
        process.terminate()
        until_closed(server.port)
        told, _ = waits.communicate("go on\n", timeout=30)
        assert waits.returncode == 0, told
        assert process.wait(20) == 0
    finally:
        waits.kill()
        process.kill()


def test_every_check_runs(client):
    assert sorted(run(client).decode().split()) == sorted([*CHECKS, "ended_servers"])
