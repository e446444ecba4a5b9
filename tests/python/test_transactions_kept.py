"""Transactions: what is left of them after crashes, in backups, in a cluster and on a full disk."""

import json
import pathlib
import random
import ssl
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import unshare_is_missing, until
from documents import JSON, LOCKS, of, put
from test_cluster_join import begun, free_port, joined, machines  # noqa: F401
from test_small_disk import small  # noqa: F401
from transactions import (
    LONG_MS,
    TRANSACTIONS,
    Work,
    acquiring,
    adding,
    code,
    commit,
    deleting,
    everything,
    held,
    messages,
    number,
    payloads,
    putting,
    receive,
    releasing,
    send,
    sending,
    settling,
)


def test_each_message_has_its_effect_once_through_kills(server):
    server.stop()
    server.listen = f"127.0.0.1:{free_port()}"
    server.start()
    count, done = 150, threading.Event()
    for payload in range(count):
        send(server, str(payload), max_attempts=10_000)
    put(server, "n", '{"n":0}')

    def ask(call):
        """Repeats what was not answered."""
        while True:
            try:
                return call()
            except OSError:
                time.sleep(0.01)

    def work(_):
        while not done.is_set():
            job = ask(lambda: receive(server, lease_ms=2_000, wait_ms=100))
            if job is None:
                continue
            done_once = putting(f"done/{job['payload']}", if_absent=True)
            operations = [settling(job["receipt"]), adding("n"), done_once, sending(job["payload"])]
            body, key = json.dumps({"operations": operations}).encode(), {"Idempotency-Key": job["receipt"]}
            status, answer = 503, b""
            while status == 503:
                status, answer = ask(lambda: server.request("POST", TRANSACTIONS, body, {**JSON, **key}))
            assert status == 200 or json.loads(answer)["error"]["code"] == "lease_lost", answer

    with ThreadPoolExecutor(8) as threads:
        workers = [threads.submit(work, at) for at in range(8)]
        for _ in range(4):
            time.sleep(random.random())
            server.kill()
            server.start()
        until(lambda: messages(server, "jobs") == [], "all is done")
        done.set()
        for worker in workers:
            worker.result()
    assert number(server, "n") == count
    assert sorted(map(int, payloads(server))) == list(range(count))


def test_transactions_are_in_a_backup(server, tmp_path):
    operations = Work(server).operations()
    first = commit(server, *operations, key="r")
    before = everything(server)
    assert server.sluice("backup", "copy").returncode == 0
    commit(server, sending("after"))
    server.kill()
    restored = server.sluice("restore", "copy", "restored", "--key-source", "file:data.key")
    assert restored.returncode == 0, restored.stderr
    (tmp_path / "data").rename(tmp_path / "original")
    (tmp_path / "restored").rename(tmp_path / "data")
    server.start()
    assert everything(server) == before
    assert commit(server, *operations, key="r") == {**first, "duplicate": True}


def test_a_transaction_outlives_the_leader_of_a_cluster(machines):  # noqa: F811
    one = begun(machines)
    two, three = joined(machines, "two", one), joined(machines, "three", one)
    until(lambda: "voters=[1, 2, 3]" in (one.directory / "log").read_text(), "all nodes vote")
    tls = two.directory / "data-tls"
    context = ssl.create_default_context(cafile=tls / "ca.pem")
    context.load_cert_chain(tls / "admin.pem", tls / "admin.key")

    def ask(machine, operations, key) -> tuple[int, dict]:
        """Repeats what was not answered, or has no outcome."""
        body = json.dumps({"operations": operations}).encode()
        while True:
            headers = {**JSON, "Idempotency-Key": key}
            request = urllib.request.Request(machine.url + TRANSACTIONS, body, headers)
            try:
                with urllib.request.urlopen(request, timeout=20, context=context) as answer:
                    return answer.status, json.loads(answer.read())
            except urllib.error.HTTPError as failed:
                if failed.code < 500:
                    return failed.code, json.loads(failed.read())
            except OSError:
                pass
            time.sleep(0.01)

    def read(machine, method, path, body=None) -> dict:
        while True:
            status, answer = machine.request(method, path, body)
            if status == 200:
                return answer

    ask(one, [putting("n", '{"n":0}')], "first")
    receipt = read(two, "POST", "/v1/queues/jobs/receive", {"lease_ms": LONG_MS})["messages"][0]["receipt"]
    work = [settling(receipt), adding("n"), sending("x"), acquiring("l")]
    status, first = ask(two, work, "work")
    assert status == 200 and not first["duplicate"]
    with ThreadPoolExecutor(6) as threads:
        adds = [
            threads.submit(ask, (two, three)[at % 2], [adding("n"), sending(str(at))], f"add {at}")
            for at in range(60)
        ]
        until(lambda: sum(add.done() for add in adds) > 10, "some are done")
        one.kill()
        assert ask(three, work, "work") == (200, {**first, "duplicate": True})
        assert all(add.result()[0] == 200 for add in adds)
    assert ask(two, [sending("y")], "work")[1]["error"]["code"] == "idempotency_mismatch"
    assert json.loads(read(three, "GET", of("n"))["content"]) == {"n": 61}
    sent = read(two, "GET", "/v1/queues/mail/messages?payload=true")["messages"]
    assert sorted(one["payload"] for one in sent) == sorted(["x", *map(str, range(60))])
    assert read(three, "GET", f"{LOCKS}/l")["holder_count"] == 1


@pytest.mark.skipif(bool(unshare_is_missing()), reason=unshare_is_missing())
def test_on_a_full_disk_settling_goes_on(small):  # noqa: F811
    put(small, "k", '{"n":1}')
    token = held(small, "l")
    small.fill()
    receipts = [one["receipt"] for one in small.receive()]
    for grows in (sending("x"), putting("k", "x"), adding("k"), acquiring("free")):
        assert code(small, settling(receipts[0]), grows) == (507, "disk_full"), grows
    assert small.call("GET", "/v1/queues/jobs")["counts"]["leased"] == len(receipts)
    settled = [settling(receipts[0]), settling(receipts[1], "nack")]
    commit(small, *settled, deleting("k"), releasing(token), key="r")
    # As by themselves.
    small.call("POST", "/v1/nack", {"receipt": receipts[2], "error": "why"})
    small.call("POST", "/v1/ack", {"receipt": receipts[3], "result": "x"})
    commit(small, settling(receipts[4], "nack", error="why"))
    commit(small, settling(receipts[5], result="x"))


def test_a_small_request_of_patches_takes_little_memory(server):
    content = json.dumps({"a": "x" * (2 << 20)}).encode()
    for number in range(60):
        server.request("PUT", f"{of(f'd{number}')}/raw", content, JSON)

    def resident_mib(what="VmRSS") -> int:
        status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
        return int(status.split(f"{what}:")[1].split()[0]) >> 10

    before = resident_mib()
    assert code(server, *(adding(f"d{number}") for number in range(60))) == (413, "batch_too_large")
    assert resident_mib("VmHWM") - before < 100
    committed = commit(server, *(adding(f"d{number}") for number in range(5)))
    assert len(committed["results"]) == 5
