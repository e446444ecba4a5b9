"""The files in deploy/, as far as they can be tried without a cluster and without containers."""

import json
import os
import re
import signal
import subprocess
import sys
import tomllib

import pytest
from conftest import ROOT, binary, until
from test_cluster_join import free_port, machines  # noqa: F401

DEPLOY = ROOT / "deploy"
SAMPLE = DEPLOY / "sluice.toml"


def shown(*arguments: str) -> list[dict]:
    """The settings as `sluice config` shows them."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("SLUICE_")}
    command = [binary(), "config", "--json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd="/")
    assert done.returncode == 0, done.stderr
    assert "not a setting" not in done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_sample_configuration_is_that_of_the_reference():
    written = subprocess.run([ROOT / "scripts/sample-config"], capture_output=True, text=True, check=True).stdout
    assert written == SAMPLE.read_text(), "run: scripts/sample-config > deploy/sluice.toml"


def test_every_setting_is_in_the_sample_with_its_default(tmp_path):
    sample = re.sub(r"^#([a-z_]+ = )", r"\1", SAMPLE.read_text(), flags=re.M)
    every = tomllib.loads(sample)
    named = {name for name, value in every.items() if not isinstance(value, dict)}
    named |= {f"{part}.{name}" for part, values in every.items() if isinstance(values, dict) for name in values}
    (tmp_path / "all.toml").write_text(sample)
    defaults = {row["setting"]: row["value"] for row in shown()}
    with_all = {row["setting"]: row["value"] for row in shown("--config", str(tmp_path / "all.toml"))}
    assert named == set(defaults)
    changed = {name for name, value in with_all.items() if value != defaults[name]}
    assert changed == {"data_dir", "log.format"}


def test_a_server_starts_with_the_sample(server):
    server.stop()
    server.start("--config", str(SAMPLE))
    server.call("POST", "/v1/queues/jobs/messages", {"payload": "x"})


def test_the_unit_leaves_time_for_the_grace():
    unit = (DEPLOY / "sluice.service").read_text()
    grace = next(row["value"] for row in shown() if row["setting"] == "grace")
    assert grace == "30s"
    assert int(re.search(r"^TimeoutStopSec=(\d+)$", unit, flags=re.M)[1]) > 30
    assert "/etc/sluice/sluice.toml" in unit


@pytest.fixture
def compose(tmp_path):
    """Runs tests/python/compose.py for a file of deploy/; ends what it has started."""
    ports = {name: free_port() for name in ("sluice", "found", "one", "two", "three")}
    ports["found"] = ports["one"]
    (tmp_path / "ports.json").write_text(json.dumps(ports))
    command = [sys.executable, str(ROOT / "tests/python/compose.py"), str(tmp_path)]
    env = {**os.environ, "SLUICE_BIN": binary()}

    def run(*arguments: str) -> str:
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, env=env, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run.command = " ".join(command)
    run.env = env
    yield run
    for pid in tmp_path.glob("*.pid"):
        os.kill(int(pid.read_text()), signal.SIGKILL)


def test_one_server_by_compose(compose):
    file = str(DEPLOY / "compose.yaml")
    compose("-f", file, "up", "--detach", "--wait", "sluice")
    execute = ("-f", file, "exec", "-T", "sluice", "sluice")
    token = compose(*execute, "token", "create", "app", "--scope", "default=rw").strip()
    assert token.startswith("sluice_")
    compose(*execute, "send", "emails", "hello")
    assert "hello" in compose(*execute, "receive", "emails", "--ack")


def test_a_cluster_by_compose(compose):
    found = [str(DEPLOY / "found-cluster")]
    env = {**compose.env, "COMPOSE": compose.command}
    for time in ("the first time", "again"):
        done = subprocess.run(found, capture_output=True, text=True, env=env, timeout=180)
        assert done.returncode == 0, (time, done.stdout + done.stderr)
    file = str(DEPLOY / "compose-cluster.yaml")

    def is_healthy():
        status = compose("-f", file, "exec", "-T", "one", "sluice", "cluster", "status")
        return "outlives the loss of 1 node" in status

    until(is_healthy, "three nodes have all data")


def test_pods_share_a_root_key_and_need_their_token_once(machines, tmp_path):  # noqa: F811
    """As the chart sets them: a key from a Secret that only can be read, a file of the token that may be gone."""
    key = tmp_path / "root.key"
    made = subprocess.run([binary(), "key", "new"], capture_output=True, text=True, check=True)
    key.write_text(made.stdout)
    key.chmod(0o440)
    token = tmp_path / "token"
    one, two = machines("one"), machines("two")
    for machine in (one, two):
        machine.settings = ("--tls", "auto", "--key-source", f"file:{key}", "--cluster-address", machine.listen)
    place = ("--data-dir", "data", "--listen", one.listen)
    for _ in range(2):
        assert one.run("cluster", "init", *place, *one.settings).returncode == 0
    one.start()
    token.write_text(one.token() + "\n")
    joins = ("--join", one.url, "--join-token-file", str(token))
    two.start(*joins)
    until(lambda: set(one.members()) == {1, 2}, "two has joined")
    token.unlink()
    # Both are told to join at each start.
    for machine in (two, one):
        assert machine.stop() == 0
        machine.start(*joins)
    until(lambda: one.send("hello"), "a leader takes the message")
    until(lambda: two.payloads() == ["hello"], "the other node has it")


def test_a_caller_gets_the_ca_of_a_pod(machines):  # noqa: F811
    one = machines("one")
    one.start("--tls", "auto")
    ca = one.directory / "data-tls" / "ca.pem"
    assert one.run("doc", "put", "sluice/ca.pem", str(ca)).returncode == 0
    assert one.run("doc", "get", "sluice/ca.pem").stdout == ca.read_text()
