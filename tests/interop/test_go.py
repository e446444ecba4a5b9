"""Go's net/http: the checks are in go/main.go."""

import subprocess

import pytest

from conftest import HERE, need, run

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


def test_every_check_runs(client):
    assert sorted(run(client).decode().split()) == sorted(CHECKS)
