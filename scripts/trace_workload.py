"""Runs a server under strace, with clients, and writes down what they did, for trace_durability.py.

    python3 scripts/trace_workload.py SLUICE OUT_DIR [--clients N] [--rounds N] [--bulk MIB]

OUT_DIR gets `trace.txt`, `requests.json` and the data directory `data`. The server is killed in the middle, and started
again, so that recovery is traced as well. `--bulk` sends and drains that much, so that segments end, snapshots are
taken and files are removed.
"""

import argparse
import http.client
import json
import os
import pathlib
import signal
import struct
import subprocess
import threading
import time
import urllib.parse

CALLS = (
    "openat,pwrite64,pwritev,write,writev,sendto,sendmsg,read,readv,recvfrom,recvmsg,fdatasync,fsync,"
    "rename,renameat,renameat2,mkdir,mkdirat,unlink,unlinkat"
)
# Enough for a batch of small messages, and for a manifest; of a large message its head is enough.
STRING_BYTES = 8192
ALPHABET = "0123456789abcdefghijklmnopqrstuv"


def receipt_in_log(receipt: str) -> bytes:
    """A receipt (base32hex of namespace, sequence, token, tag, big endian) as records hold it (little endian)."""
    number = 0
    for character in receipt:
        number = number * 32 + ALPHABET.index(character)
    # 45 characters have 225 bits: the last one is padding.
    return struct.pack("<IQQQ", *struct.unpack(">IQQQ", (number >> 1).to_bytes(28, "big")))


class Server:
    """A server under strace, which appends to one trace."""

    def __init__(self, sluice: str, directory: pathlib.Path):
        self.directory = directory
        env = {name: value for name, value in os.environ.items() if not name.startswith("SLUICE_")}
        strace = ["strace", "-f", "-ttt", "-yy", "-s", str(STRING_BYTES), "-A", "-o", directory / "trace.txt"]
        # What a reply stands for is looked for in the writes, where it must be readable.
        serve = [sluice, "serve", "--json", "--listen", "127.0.0.1:0", "--durability", "always", "--no-encryption"]
        self.strace = subprocess.Popen(
            [*strace, "-e", "trace=" + CALLS, *serve, "--data-dir", directory / "data"],
            stdout=subprocess.PIPE,
            text=True,
            env={**env, "HOME": str(directory)},
            cwd=directory,
        )
        line = self.strace.stdout.readline()
        if not line:
            raise SystemExit("the server did not start under strace")
        ready = json.loads(line)
        self.pid, self.address = ready["pid"], urllib.parse.urlsplit(ready["url"]).netloc
        self.manifest = directory / "data" / "shard-000" / "manifest"
        self.first_manifest = self.manifest.read_bytes()

    def await_segment(self):
        """The next segment is made beside the requests: how many it takes until it is there is up to the machine."""
        deadline = time.monotonic() + 60
        while self.manifest.read_bytes() == self.first_manifest:
            if time.monotonic() > deadline:
                raise SystemExit("no manifest named another segment within a minute")
            time.sleep(0.05)

    def end(self, how: signal.Signals):
        os.kill(self.pid, how)
        self.strace.wait(timeout=60)


class Client:
    """One connection, one queue of its own, one request after the other."""

    def __init__(self, server: Server, name: str, requests: list[dict]):
        self.http = http.client.HTTPConnection(server.address, timeout=60)
        self.name, self.requests, self.count = name, requests, 0

    def call(self, what: str, path: str, body, needles) -> dict:
        """A request that leaves a record; `needles` (or a function of the answer) tell it from others."""
        self.count += 1
        request_id = f"{self.name}-{self.count}"
        headers = {"X-Request-Id": request_id, "Content-Type": "application/json"}
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        if isinstance(body, bytes):
            headers["Content-Type"] = "application/octet-stream"
        self.http.request("POST", path, data, headers)
        answer = self.http.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise SystemExit(f"{what} of {self.name}: {answer.status} {text!r}")
        self.requests.append({"id": request_id, "what": what, "needles": [needle.hex() for needle in needles]})
        return json.loads(text)

    def send(self):
        payload = f"needle {self.name} {self.count};"
        self.call("send", f"/v1/queues/{self.name}/messages", {"payload": payload}, [payload.encode()])

    def send_large(self, payload_bytes: int):
        mark = f"needle {self.name} {self.count};".encode()
        path = f"/v1/queues/{self.name}/messages/raw"
        self.call("send", path, mark.ljust(payload_bytes, b"x"), [mark])

    def receive(self) -> str:
        path = f"/v1/queues/{self.name}/receive"
        # The queue is this client's alone, and so is the write between its request and its reply that names
        # it.
        messages = self.call("receive", path, {}, [self.name.encode()])["messages"]
        if len(messages) != 1:
            raise SystemExit(f"{self.name} has sent a message and received {len(messages)}")
        return messages[0]["receipt"]

    def settle(self, what: str, receipt: str, **fields):
        self.call(what, f"/v1/{what}", {"receipt": receipt, **fields}, [receipt_in_log(receipt)])

    def every_settlement(self):
        for _ in range(2):
            self.send()
        receipt = self.receive()
        self.settle("extend", receipt, lease_ms=60_000)
        self.settle("nack", receipt, error="not yet", delay_ms=3_600_000)
        self.settle("release", self.receive())
        self.settle("reject", self.receive(), error="never")

    def round_trip(self):
        self.send()
        self.settle("ack", self.receive())


def run(server: Server, life: str, args, requests: list[dict]):
    lone = Client(server, f"lone-{life}", requests)
    lone.every_settlement()
    for _ in range(args.rounds):
        lone.round_trip()

    def crowd(number: int):
        client = Client(server, f"crowd-{life}-{number}", requests)
        for _ in range(args.rounds):
            client.round_trip()

    threads = [threading.Thread(target=crowd, args=[number]) for number in range(args.clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    bulk = Client(server, f"bulk-{life}", requests)
    for _ in range(args.bulk):
        bulk.send_large(1 << 20)
    for _ in range(args.bulk):
        bulk.settle("ack", bulk.receive())
    server.await_segment()
    for _ in range(args.rounds):
        lone.round_trip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sluice")
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--bulk", type=int, default=80, help="MiB")
    args = parser.parse_args()
    directory = args.directory.resolve()
    requests = []
    for life, end in [("first", signal.SIGKILL), ("second", signal.SIGTERM)]:
        server = Server(args.sluice, directory)
        try:
            run(server, life, args, requests)
        finally:
            server.end(end)
    (directory / "requests.json").write_text(json.dumps(requests))


if __name__ == "__main__":
    main()
