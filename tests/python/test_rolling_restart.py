"""Each node of a cluster is restarted in turn, while clients that retry each call once go on."""

import http.client
import itertools
import json
import signal
import ssl
import subprocess
import threading
import time

import pytest
from conftest import binary, until
from test_cluster_join import Machine, begun, joined, machines  # noqa: F401

SENDERS, WORKERS = 3, 3
CALL_WITHIN_S = 15
# The answer of a receive whose wait is over.
EMPTY = '{"messages": []}'
# Between two restarts, so that no call and its second try meet both.
PAUSE_S = 1


@pytest.fixture
def three(machines):  # noqa: F811
    one = begun(machines)
    nodes = [one, joined(machines, "two", one), joined(machines, "three", one)]
    until(lambda: all(is_healthy(node) for node in nodes), "the cluster is healthy")
    assert acked_by(Client(nodes, 0)) == ["a", "b", "c"]
    return nodes


def is_healthy(machine: Machine) -> bool:
    status, answer = machine.request("GET", "/v1/cluster/status")
    return status == 200 and answer["healthy"]


def restart_each(nodes: list[Machine]):
    """Stops and starts one node after the other, as `docs/cluster.md` tells it for an upgrade."""
    for node in nodes:
        assert node.stop() == 0
        node.start()
        until(lambda: is_healthy(node), "the cluster is healthy again")
        time.sleep(PAUSE_S)


class Client:
    """One call at a time, over a connection that stays, to the node that has answered last."""

    def __init__(self, nodes: list[Machine], at: int):
        tls = nodes[0].directory / "data-tls"
        self.context = ssl.create_default_context(cafile=tls / "ca.pem")
        self.context.load_cert_chain(tls / "admin.pem", tls / "admin.key")
        self.addresses = [node.listen for node in nodes]
        self.failed = []
        self.connect(at)

    def connect(self, at: int):
        self.at = at % len(self.addresses)
        options = {"timeout": CALL_WITHIN_S, "context": self.context}
        self.connection = http.client.HTTPSConnection(self.addresses[self.at], **options)

    def call(self, path: str, body: dict, headers=None):
        """The answer, after a second try at the next node if need be; None: that has failed, too."""
        failures = []
        for _ in range(2):
            began = time.monotonic()
            try:
                headers = {"Content-Type": "application/json", **(headers or {})}
                self.connection.request("POST", path, json.dumps(body), headers)
                response = self.connection.getresponse()
                text = response.read()
                if response.status < 300:
                    return json.loads(text)
                failure = text.decode()
            except (OSError, http.client.HTTPException) as error:
                failure = repr(error)
            failures.append(f"{failure} of {self.addresses[self.at]} after {time.monotonic() - began:.3f} s")
            self.connection.close()
            self.connect(self.at + 1)
        self.failed.append((path, *failures))
        return None


def sends_until(over: threading.Event, client: Client, name: int, sent: list[str]):
    for number in itertools.count():
        payload = f"{name}-{number}"
        sent.append(payload)
        client.call("/v1/queues/jobs/messages", {"payload": payload}, {"Idempotency-Key": payload})
        if over.wait(0.01):
            return


def acked_by(client: Client) -> list[str]:
    """Receives some messages and acks them; their payloads."""
    # A wait is cut off where a node stops, and its second try may be as well.
    received = client.call("/v1/queues/jobs/receive", {"max": 10, "wait_ms": 50, "lease_ms": 5_000})
    messages = received["messages"] if received else []
    if messages:
        client.call("/v1/ack", {"receipts": [message["receipt"] for message in messages]})
    return [message["payload"] for message in messages]


def works_until(over: threading.Event, client: Client, acked: list[str]):
    while not over.is_set():
        acked += acked_by(client)


def waits_until(over: threading.Event, client: Client, ends: list[str]):
    """Receives where nothing is sent, each for longer than a node takes to start again."""
    while not over.is_set():
        ends.append(json.dumps(client.call("/v1/queues/idle/receive", {"wait_ms": 8_000})))


class Load:
    """Threads that go on until they are told to end, each with a client and a list of its own."""

    def __init__(self, nodes: list[Machine], count: int, do):
        self.over = threading.Event()
        self.clients = [Client(nodes, number) for number in range(count)]
        self.lists = [[] for _ in range(count)]
        starts = enumerate(zip(self.clients, self.lists, strict=True))
        self.threads = [
            threading.Thread(target=do, args=(self.over, number, *start), daemon=True) for number, start in starts
        ]
        for thread in self.threads:
            thread.start()

    def end(self) -> list[str]:
        """What all of them have listed. No call has failed."""
        self.over.set()
        for thread in self.threads:
            thread.join()
        failed = [str(failed) for client in self.clients for failed in client.failed]
        assert not failed, "\n".join(failed)
        return sorted(itertools.chain(*self.lists))


def sending(nodes: list[Machine]) -> Load:
    return Load(nodes, SENDERS, lambda over, number, client, sent: sends_until(over, client, number, sent))


def working(nodes: list[Machine]) -> Load:
    return Load(nodes, WORKERS, lambda over, _, client, acked: works_until(over, client, acked))


def waiting(nodes: list[Machine], count: int) -> Load:
    return Load(nodes, count, lambda over, _, client, ends: waits_until(over, client, ends))


def until_empty(nodes: list[Machine]):
    def is_empty():
        status, answer = nodes[0].request("GET", "/v1/queues/jobs")
        return status == 200 and not any(answer["counts"].values())

    until(is_empty, "all messages are acked")


def test_a_client_that_retries_once_sees_no_call_fail(three):
    senders, workers, waiters = sending(three), working(three), waiting(three, 6)
    restart_each(three)
    sent = senders.end()
    assert set(waiters.end()) == {EMPTY}
    until_empty(three)
    # What an answer that was lost has delivered comes again.
    assert sorted(set(workers.end())) == sent


def test_a_receive_that_waits_ends_empty_where_a_node_stops(three):
    for node in three:
        # A second try would find nobody.
        waiters = waiting([node], 3)
        time.sleep(1)
        waiters.over.set()
        assert node.stop() == 0
        assert waiters.end() == [EMPTY] * 3
        node.start()
        until(lambda: is_healthy(three[0]), "the cluster is healthy again")


def test_a_worker_goes_on_and_does_each_message_once(three, tmp_path):
    done = tmp_path / "done"
    tls = three[0].directory / "data-tls"
    urls = ",".join(node.url for node in three)
    credentials = ["--ca", tls / "ca.pem", "--cert", tls / "admin.pem", "--cert-key", tls / "admin.key"]
    work = [binary(), "work", "jobs", "--transport", "session", "--concurrency", "8", "--server", urls]
    command = ["sh", "-c", f"read -r n; sleep 0.05; echo $n >> {done}"]
    worker = subprocess.Popen([*work, *credentials, "--", *command])
    try:
        senders = sending(three)
        restart_each(three)
        sent = senders.end()
        until_empty(three)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(30) == 0
    finally:
        worker.kill()
    assert sorted(done.read_text().split()) == sent
