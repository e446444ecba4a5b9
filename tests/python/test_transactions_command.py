"""Open transactions on the command line, and commands that work in one."""

import os
import pathlib
import socket
import subprocess
import threading
import time
import urllib.parse

import pytest
from conftest import binary
from documents import get, put
from test_transactions_open import begin
from transactions import messages, payloads, send

WORK = ["work", "jobs", "--transactional", "--until-empty"]
# Its work: count the message in a document, note its id in another, and send the next message.
COUNT = """
set -e
n=$(sluice doc get counter)
echo $((n + 1)) | sluice doc put counter
sluice doc put "done/$SLUICE_MESSAGE_ID" --if-absent - <<< yes
sluice send mail "$(cat)" > /dev/null
"""


def run(server, *arguments: str, script=None, **env):
    """Runs a verb with `sluice` on the PATH of its commands."""
    folder = str(pathlib.Path(binary()).parent)
    env = {**server.env, "SLUICE_SERVER": server.url, "PATH": f"{folder}:{os.environ['PATH']}", **env}
    command = [binary(), *arguments, *(["--", "bash", "-c", script] if script else [])]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=server.directory, env=env)


def test_verbs_stage_and_commit(server):
    put(server, "a", "1")
    begun = run(server, "txn", "begin", "--ttl", "1m")
    name = begun.stdout.strip()
    assert begun.returncode == 0 and len(name) == 32
    env = {"SLUICE_TRANSACTION": name}
    assert run(server, "doc", "get", "a", **env).stdout == "1"
    assert run(server, "doc", "put", "a", "--if-exists", "/dev/null", **env).stdout == "staged\n"
    assert run(server, "doc", "get", "a", **env).stdout == ""
    edit = run(server, "doc", "edit", "a", EDITOR="true", **env)
    assert edit.returncode == 2 and "not part of a transaction" in edit.stderr
    assert run(server, "doc", "delete", "a", **env).stdout == "staged\n"
    gone = run(server, "doc", "get", "a", **env)
    assert gone.returncode != 0 and "there is no document" in gone.stderr
    assert run(server, "send", "mail", "hello", **env).stdout == ""
    stage = run(server, "txn", "stage", "/dev/stdin", **env)
    assert stage.returncode == 2, stage
    (server.directory / "ops.json").write_text('{"operations":[{"get":{"key":"a"}},{"put":{"key":"b","content":"x"}}]}')
    staged = run(server, "txn", "stage", "ops.json", **env)
    assert (staged.stdout, staged.stderr) == ("", "operations[0].get: there is no such document\n"), staged
    assert get(server, "a")["content"] == "1" and messages(server, "mail") == []
    done = run(server, "txn", "commit", "--transaction", name)
    assert done.stdout.split()[:2] == ["done", "sent"] and "written version 1" in done.stdout, done
    again = run(server, "txn", "commit", "--transaction", name)
    assert again.stdout == done.stdout and "done before" in again.stderr
    assert payloads(server) == ["hello"] and get(server, "b")["content"] == "x"
    lost = run(server, "txn", "rollback", **env)
    assert lost.returncode == 4 and "is not open" in lost.stderr
    other = run(server, "txn", "begin").stdout.strip()
    assert run(server, "txn", "rollback", "--transaction", other).stdout == "rolled back\n"


def test_a_command_works_in_a_transaction(server):
    put(server, "counter", "0")
    ids = [send(server, f"m{number}") for number in range(8)]
    worked = run(server, *WORK, "--concurrency", "4", script=COUNT)
    assert worked.returncode == 0 and "8 messages acked" in worked.stderr, worked
    assert get(server, "counter")["content"].strip() == "8", "each counts once, although four count at a time"
    assert sorted(payloads(server)) == [f"m{number}" for number in range(8)]
    assert all(get(server, f"done/{name}")["content"] == "yes\n" for name in ids)
    assert messages(server, "jobs") == []


def test_a_command_that_fails_leaves_nothing(server):
    put(server, "counter", "0")
    send(server, "first fails", max_attempts=3, backoff={"kind": "none"})
    script = COUNT + '[ "$SLUICE_ATTEMPT" -ge 3 ]\n'
    worked = run(server, *WORK, "--verbose", script=script)
    assert worked.returncode == 0 and "1 message acked, 2 nacked" in worked.stderr, worked.stderr
    assert get(server, "counter")["content"].strip() == "1" and payloads(server) == ["first fails"]


def test_a_lost_lease_commits_nothing(server):
    put(server, "counter", "0")
    name = send(server, "slow", max_attempts=5)
    script = COUNT + f"""
    [ "$SLUICE_ATTEMPT" -ge 2 ] || {{
      sluice message cancel {name} > /dev/null
      sleep 0.2
    }}
    """
    worked = run(server, *WORK, script=script)
    assert worked.returncode == 0, worked
    assert get(server, "counter")["content"].strip() == "0" and payloads(server) == []
    assert get(server, "counter")["version"] == 1


class Outage:
    """A proxy that swallows the first answer to a request that has some bytes in it, and then is away for a while."""

    def __init__(self, url: str, wanted: bytes) -> None:
        self.target = urllib.parse.urlsplit(url)
        self.wanted = wanted
        self.back_at = None
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            client, _ = self.listener.accept()
            if self.back_at and time.monotonic() < self.back_at:
                client.close()
                continue
            server = socket.create_connection((self.target.hostname, self.target.port))
            threading.Thread(target=self.pass_on, args=(client, server), daemon=True).start()

    def pass_on(self, client: socket.socket, server: socket.socket) -> None:
        threading.Thread(target=self.answer, args=(server, client), daemon=True).start()
        while data := client.recv(65_536):
            swallow = self.back_at is None and self.wanted in data
            if swallow:
                self.back_at = time.monotonic() + 1.5
            server.sendall(data)
            if swallow:
                time.sleep(0.3)  # until it is done
                break
        for end in (client, server):
            end.close()

    def answer(self, server: socket.socket, client: socket.socket) -> None:
        try:
            while data := server.recv(65_536):
                if self.back_at is None or time.monotonic() > self.back_at:
                    client.sendall(data)
        except OSError:
            pass


@pytest.mark.parametrize("wanted", [b"/commit ", b'"receipt"'], ids=["commit", "ack"])
def test_a_lost_answer_neither_fails_nor_repeats_the_work(server, wanted):
    put(server, "counter", "0")
    send(server, "one", max_attempts=1)
    proxy = Outage(server.url, wanted)
    worked = run(server, *WORK, "--transport", "http", script=COUNT, SLUICE_SERVER=proxy.url)
    assert proxy.back_at is not None and worked.returncode == 0, worked
    assert "nacked" not in worked.stderr, worked
    assert get(server, "counter")["content"].strip() == "1" and payloads(server) == ["one"], worked
    assert messages(server, "jobs") == [], worked


def test_a_command_does_not_end_its_transaction(server):
    send(server, "job", max_attempts=1)
    worked = run(server, *WORK, script='sluice txn commit --transaction "$SLUICE_TRANSACTION"')
    assert "sluice work ends the transaction of this command" in worked.stderr and "1 nacked" in worked.stderr, worked
    send(server, "job", max_attempts=1)
    worked = run(server, *WORK, script="sluice txn rollback")
    assert "sluice work ends the transaction of this command" in worked.stderr and "1 nacked" in worked.stderr, worked


def test_a_command_that_ends_its_transaction_runs_three_times(server):
    send(server, "job", max_attempts=1)
    script = "echo >> runs; env -u SLUICE_WORK_TRANSACTION sluice txn rollback"
    worked = run(server, *WORK, script=script)
    assert "a command neither ends" in worked.stderr and "1 nacked" in worked.stderr, worked
    assert (server.directory / "runs").read_text() == "\n" * 3


def test_a_worker_that_is_stopped_does_not_run_a_command_again(server):
    put(server, "a", "0")
    send(server, "job", max_attempts=1)
    # Another is always faster, and the worker is told to stop.
    script = f"""
    echo >> runs; sluice doc get a
    env -u SLUICE_TRANSACTION sluice doc put a - <<< $RANDOM$RANDOM
    sluice doc put b x
    kill -TERM $PPID; sleep 0.3
    """
    worked = run(server, "work", "jobs", "--transactional", script=script)
    assert worked.returncode == 0 and "1 released" in worked.stderr, worked
    assert (server.directory / "runs").read_text() == "\n"
    [message] = messages(server, "jobs")
    assert message["state"] == "ready" and message.get("attempts", 0) == 0, message


def test_no_attempt_is_counted_where_no_transaction_can_be_begun(server):
    others = [begin(server, ttl_ms=600_000) for _ in range(10_000)]
    send(server, "job", max_attempts=1)
    worked = run(server, *WORK, "--retry-for", "1s", script="true")
    assert "cannot begin a transaction: " in worked.stderr and "1 released" in worked.stderr, worked
    [message] = messages(server, "jobs")
    assert message["state"] == "delayed" and message["attempts"] == 0, message
    others[0].rollback()
    server.call("POST", f"/v1/messages/{message['id']}/retry")
    assert "1 message acked" in run(server, *WORK, script="true").stderr
