"""A whole disk of 64 MiB, as a file system of its own, that messages fill to the last byte."""

import json
import pathlib
import subprocess

import pytest
from conftest import ALONE, Server, binary, unshare_is_missing, until

MOUNT = "mkdir -p disk && mount -t tmpfs -o size=64m tmpfs disk"
PAYLOAD = "x" * 200_000

pytestmark = pytest.mark.skipif(bool(unshare_is_missing()), reason=unshare_is_missing())


class OnSmallDisk(Server):
    """A server whose data is on a disk of its own. The shell that has mounted it outlives the server, so that
    the disk is there when it starts again: each line that the shell reads is a command."""

    def __init__(self, directory: pathlib.Path):
        script = f'{MOUNT} && while read -r line; do eval "$line"; done'
        self.shell = subprocess.Popen(
            [*ALONE, "sh", "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=directory,
        )
        super().__init__(directory)

    def run(self, line: str) -> str:
        """What the shell prints for this, which is one line."""
        self.shell.stdin.write(line + "\n")
        self.shell.stdin.flush()
        return self.shell.stdout.readline()

    def start(self, *arguments: str):
        options = ["--listen 127.0.0.1:0", "--data-dir disk/data", "--reserve 8MiB", *arguments]
        serve = f"env -i HOME=$PWD {binary()} serve --json {' '.join(options)} & server=$!"
        self.url = json.loads(self.run(serve))["url"]

    def end(self, signal: str) -> int:
        """Sends this signal to the server, and waits for its end; the exit code."""
        return int(self.run(f"kill -{signal} $server; wait $server; echo $?"))

    def leave(self):
        self.end("TERM")
        self.shell.stdin.close()
        self.shell.wait(40)

    def send(self) -> str | None:
        """The id of one more message; `None`: there is no room for it."""
        body = json.dumps({"payload": PAYLOAD}).encode()
        headers = {"Content-Type": "application/json"}
        status, answer = self.request("POST", "/v1/queues/jobs/messages", body, headers)
        answer = json.loads(answer)
        if status == 201:
            return answer["id"]
        assert (status, answer["error"]["code"]) == (507, "disk_full"), answer
        return None

    def fill(self) -> list[str]:
        """Sends until there is no room; the ids."""
        ids = []
        while id := self.send():
            ids.append(id)
            assert len(ids) < 400, "64 MiB do not hold that many"
        return ids

    def receive(self) -> list[dict]:
        return self.call("POST", "/v1/queues/jobs/receive", {"max": 10, "lease_ms": 600_000})["messages"]

    def drain(self) -> list[str]:
        """Acks all there is; the ids."""
        ids = []
        while messages := self.receive():
            receipts = [message["receipt"] for message in messages]
            results = self.call("POST", "/v1/ack", {"receipts": receipts})["results"]
            assert all(result["ok"] for result in results), results
            ids += [message["id"] for message in messages]
        return ids


@pytest.fixture
def small(tmp_path):
    started = OnSmallDisk(tmp_path)
    yield started
    started.leave()


def test_a_disk_that_was_full_takes_as_much_again_once_it_was_drained(small):
    first = small.fill()
    assert sorted(small.drain()) == sorted(first)
    until(small.send, "there is room again")
    again = 1 + len(small.fill())
    assert again > len(first) * 3 // 4, f"{again} messages after {len(first)}"


def test_who_failed_can_say_so_and_queues_are_paused_on_a_full_disk(small):
    small.fill()
    failed, rejected, *_ = small.receive()
    small.call("POST", "/v1/nack", {"receipt": failed["receipt"], "error": "why " * 500})
    small.call("POST", "/v1/reject", {"receipt": rejected["receipt"], "error": "why " * 500})
    small.call("POST", "/v1/queues/jobs/pause")
    small.call("POST", "/v1/queues/jobs/resume")
    assert small.call("GET", "/v1/queues/jobs")["counts"]["dead"] == 1


@pytest.mark.parametrize("signal", ["TERM", "KILL"])
def test_a_server_starts_on_a_disk_without_a_free_byte(small, signal):
    sent = small.fill()
    small.end(signal)
    assert small.run("cat /dev/zero 2>&- >disk/ballast; stat -f -c %a disk") == "0\n"
    small.start()
    assert small.call("GET", "/v1/queues/jobs")["counts"]["ready"] == len(sent)
    assert sorted(small.drain()) == sorted(sent)
    small.run("rm disk/ballast; echo")
    until(small.send, "there is room again")
