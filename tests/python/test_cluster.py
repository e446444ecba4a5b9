"""Three servers of one cluster, of which one is killed."""

import contextlib
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from conftest import ROOT, binary, until

MESSAGES = 1_000
BATCH = 50


class Cluster:
    """`sluice cluster dev`, and words to talk to its nodes."""

    def __init__(self, directory, **settings):
        self.directory = directory
        self.settings = settings
        self.log = directory / "log"
        self.start()

    def start(self):
        env = {name: value for name, value in os.environ.items() if not name.startswith("SLUICE_")}
        env |= self.settings
        command = [binary(), "cluster", "dev", "--json", "--port", "0", "--dir", "cluster"]
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, env=env, cwd=self.directory
            )
        told = json.loads(self.process.stdout.readline())
        self.nodes = told["nodes"]
        self.told = told
        self.tls = ssl.create_default_context(cafile=told["ca"])
        self.tls.load_cert_chain(told["cert"], told["key"])

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(60)

    def request(self, node, method, path, body=None, token=None):
        """Status and JSON of the answer; None: there is none."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"} if data else {}
        headers |= {"authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(node["url"] + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20, context=self.tls) as answer:
                return answer.status, json.loads(answer.read() or "null")
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())
        except OSError:
            return None, None

    def leader(self):
        """The node that says that it leads; waits until there is one."""
        found = []

        def leads(node):
            status, answer = self.request(node, "GET", "/v1/status")
            return status == 200 and all(shard["leads"] for shard in answer["shards"])

        def look():
            found[:] = [node for node in self.nodes if leads(node)]
            return len(found) == 1

        until(look, "one node leads")
        return found[0]

    def until_all_answer(self):
        """Waits until every node answers calls of clients."""

        def answers(node):
            return self.request(node, "GET", "/v1/queues")[0] == 200

        until(lambda: all(answers(node) for node in self.nodes), "every node answers")

    def spread_leaders(self, shards):
        """Lets each shard be led by another node; otherwise nodes do that themselves later."""
        for shard in range(shards):
            body = {"node": self.nodes[shard]["node"], "shards": [shard]}
            status, answer = self.request(self.nodes[0], "POST", "/v1/cluster/transfer", body)
            assert status == 200, answer

    def kill(self, node):
        os.kill(node["pid"], signal.SIGKILL)
        self.nodes.remove(node)


@pytest.fixture
def cluster(tmp_path):
    cluster = Cluster(tmp_path)
    yield cluster
    assert cluster.stop() == 0


@pytest.fixture
def cluster_of_shards(tmp_path):
    """A cluster of three shards, each of which another node leads."""
    cluster = Cluster(tmp_path, SLUICE_SHARDS="3")
    cluster.until_all_answer()
    cluster.spread_leaders(3)
    yield cluster
    assert cluster.stop() == 0


def try_send(cluster, node, first):
    messages = [{"payload": str(number)} for number in range(first, first + BATCH)]
    return cluster.request(node, "POST", "/v1/queues/jobs/messages", {"messages": messages})


def send(cluster, leader, first):
    status, answer = try_send(cluster, leader, first)
    assert status == 201, answer


def is_sent(cluster, node, first):
    """False: nothing was done, for no node leads just now."""
    status, answer = try_send(cluster, node, first)
    assert status == 201 or answer["error"]["code"] in ("not_leader", "no_leader"), answer
    return status == 201


def receive_all(cluster, leader):
    """The numbers of all messages, each acknowledged."""
    numbers = []
    while True:
        status, answer = cluster.request(leader, "POST", "/v1/queues/jobs/receive", {"max": 100})
        assert status == 200, answer
        if not answer["messages"]:
            return numbers
        numbers += [int(message["payload"]) for message in answer["messages"]]
        receipts = [message["receipt"] for message in answer["messages"]]
        status, answer = cluster.request(leader, "POST", "/v1/ack", {"receipts": receipts})
        assert status == 200, answer


def test_what_a_leader_has_acknowledged_comes_from_the_next_exactly_once(cluster):
    leader = cluster.leader()
    for first in range(0, MESSAGES, BATCH):
        send(cluster, leader, first)
    cluster.kill(leader)
    began = time.monotonic()
    after = cluster.leader()
    # About a second without a leader, then an election; and machines that run tests are busy.
    assert time.monotonic() - began < 10
    assert sorted(receive_all(cluster, after)) == list(range(MESSAGES))
    send(cluster, after, MESSAGES)
    assert sorted(receive_all(cluster, after)) == list(range(MESSAGES, MESSAGES + BATCH))


def test_a_cluster_goes_on_with_its_data(cluster):
    send(cluster, cluster.leader(), 0)
    cluster.kill(cluster.nodes[-1])
    send(cluster, cluster.leader(), BATCH)
    assert cluster.stop() == 0
    cluster.start()
    # The node that was killed gets what it has missed: it does without one of the others.
    leader = cluster.leader()
    send(cluster, leader, 2 * BATCH)
    cluster.kill(next(node for node in cluster.nodes[:2] if node is not leader))
    send(cluster, leader, 3 * BATCH)
    assert sorted(receive_all(cluster, cluster.leader())) == list(range(4 * BATCH))


def test_the_next_leader_knows_the_namespaces_that_were_made_and_deleted(cluster):
    leader = cluster.leader()
    for name in ("kept", "gone"):
        status, answer = cluster.request(leader, "PUT", f"/v1/namespaces/{name}", {})
        assert status == 201, answer
    status, answer = cluster.request(leader, "DELETE", "/v1/namespaces/gone")
    assert status in (200, 204), answer
    cluster.kill(leader)
    after = cluster.leader()
    path = "/v1/namespaces/{}/queues/jobs/messages"
    status, answer = cluster.request(after, "POST", path.format("kept"), {"payload": "x"})
    assert status == 201, answer
    status, answer = cluster.request(after, "POST", path.format("gone"), {"payload": "x"})
    assert answer["error"]["code"] == "namespace_not_found", answer


def test_any_node_answers_any_call(cluster):
    cluster.until_all_answer()
    for at, node in enumerate(cluster.nodes):
        send(cluster, node, at * BATCH)
    expected = list(range(len(cluster.nodes) * BATCH))
    half = len(expected) // 2
    status, answer = cluster.request(cluster.nodes[0], "POST", "/v1/queues/jobs/receive", {"max": half})
    assert status == 200, answer
    receipts = [message["receipt"] for message in answer["messages"]]
    status, acked = cluster.request(cluster.nodes[1], "POST", "/v1/ack", {"receipts": receipts})
    assert status == 200, acked
    numbers = [int(message["payload"]) for message in answer["messages"]]
    assert sorted(numbers + receive_all(cluster, cluster.nodes[2])) == expected


def test_the_nodes_that_are_left_answer_any_call(cluster):
    cluster.until_all_answer()
    cluster.kill(cluster.leader())
    cluster.until_all_answer()
    for at, node in enumerate(cluster.nodes):
        send(cluster, node, at * BATCH)
    expected = list(range(len(cluster.nodes) * BATCH))
    assert sorted(receive_all(cluster, cluster.nodes[0])) == expected


def test_who_asks_any_node_is_known_to_the_leader(cluster):
    cluster.until_all_answer()
    for at, node in enumerate(cluster.nodes):
        status, answer = cluster.request(node, "PUT", f"/v1/queues/q{at}", {})
        assert status == 201, answer
        status, answer = cluster.request(node, "GET", "/v1/whoami")
        assert (status, answer["name"]) == (200, "admin")
    status, audit = cluster.request(cluster.nodes[0], "GET", "/v1/admin/audit")
    assert status == 200, audit
    made = [(entry["who"], entry["operation"]) for entry in audit["entries"]]
    assert made == [("admin", "queue_put")] * len(cluster.nodes)


def test_a_leader_that_stops_hands_over_first(cluster):
    leader = cluster.leader()
    others = [node for node in cluster.nodes if node is not leader]
    send(cluster, leader, 0)
    os.kill(leader["pid"], signal.SIGTERM)
    cluster.nodes.remove(leader)
    began = time.monotonic()
    for first in range(BATCH, 6 * BATCH, BATCH):
        until(lambda: is_sent(cluster, others[0], first), "the next leader takes sends")
    # Without a word of the leader the others would wait for half a second and more before they elect one.
    assert time.monotonic() - began < 5
    assert sorted(receive_all(cluster, cluster.leader())) == list(range(6 * BATCH))


@contextlib.contextmanager
def frozen(cluster, node):
    """Stops a node, which nobody is to ask meanwhile."""
    os.kill(node["pid"], signal.SIGSTOP)
    cluster.nodes.remove(node)
    try:
        yield
    finally:
        os.kill(node["pid"], signal.SIGCONT)
        cluster.nodes.append(node)


def send_large(cluster, node, numbers):
    for number in numbers:
        message = {"payload": f"{number} " + "x" * 1_000_000}
        status, answer = cluster.request(node, "POST", "/v1/queues/jobs/messages", message)
        assert status == 201, answer


def let_lead(cluster, node):
    """Takes the leadership from others until this node has it."""
    for _ in range(20):
        leader = cluster.leader()
        if leader is node:
            return
        with frozen(cluster, leader):
            cluster.leader()
    pytest.fail("the node never leads")


def test_a_node_that_missed_more_than_is_kept_gets_a_state_and_can_lead_then(tmp_path):
    cluster = Cluster(tmp_path, SLUICE_CLUSTER_LOG="1MiB")
    try:
        leader = cluster.leader()
        behind = next(node for node in cluster.nodes if node is not leader)
        send_large(cluster, leader, range(2))
        with frozen(cluster, behind):
            # Several segments of 64 MiB, so that the first of them are not kept.
            send_large(cluster, cluster.leader(), range(2, 220))
        let_lead(cluster, behind)
        assert "a state of another node was taken over" in cluster.log.read_text()
        numbers = []
        while len(numbers) < 220:
            status, answer = cluster.request(behind, "POST", "/v1/queues/jobs/receive", {"max": 10})
            assert status == 200 and answer["messages"], answer
            numbers += [int(message["payload"].split()[0]) for message in answer["messages"]]
        assert sorted(numbers) == list(range(220))
    finally:
        assert cluster.stop() == 0


def test_shards_with_leaders_on_different_nodes_are_one_server(cluster_of_shards):
    cluster = cluster_of_shards
    for at in range(3):
        node = cluster.nodes[at]
        status, answer = cluster.request(node, "PUT", f"/v1/namespaces/n{at}", {"shard": at})
        assert status == 201, answer
        path = f"/v1/namespaces/n{at}/queues/jobs"
        # Each call by another node than the one before.
        for turn, (method, path, body, expected) in enumerate([
            ("PUT", path, {}, 201),
            ("POST", f"{path}/messages", {"payload": "x"}, 201),
            ("DELETE", f"/v1/namespaces/n{at}", None, 409),
            ("DELETE", path, None, 200),
            ("DELETE", f"/v1/namespaces/n{at}", None, 200),
        ]):
            node = cluster.nodes[(at + turn) % 3]
            status, answer = cluster.request(node, method, path, body)
            assert status == expected, (method, path, answer)
    status, audit = cluster.request(cluster.nodes[1], "GET", "/v1/admin/audit")
    assert status == 200, audit
    made = sorted(entry["target"] for entry in audit["entries"] if entry["operation"] == "queue_put")
    assert made == [f"/v1/namespaces/n{at}/queues/jobs" for at in range(3)]


def test_the_status_says_what_is_wrong_and_what_to_do(cluster):
    leader = cluster.leader()
    send(cluster, leader, 0)

    def status_once(healthy):
        found = []

        def look():
            status, answer = cluster.request(leader, "GET", "/v1/cluster/status")
            found[:] = [answer]
            return status == 200 and answer["healthy"] == healthy

        until(look, f"the cluster is healthy: {healthy}")
        return found[0]

    answer = status_once(healthy=True)
    assert answer["tolerates"] == 1
    assert [node["reached"] for node in answer["nodes"]] == [True] * 3
    assert answer["shards"][0]["leader"] == leader["node"]
    assert len(answer["shards"][0]["followers"]) == 2
    lost = next(node for node in cluster.nodes if node is not leader)
    cluster.kill(lost)
    answer = status_once(healthy=False)
    assert answer["tolerates"] == 0
    assert "2 of 3 nodes are left" in answer["problems"][0]
    assert f"node {lost['node']} " in answer["problems"][1]
    until(lambda: "Connection refused" in status_once(healthy=False)["problems"][1], "the reason is told")
    with urllib.request.urlopen(leader["url"] + "/metrics", context=cluster.tls) as metrics:
        text = metrics.read().decode()
    assert f'sluice_replica_leader{{shard="0"}} {leader["node"]}\n' in text
    served = set(re.findall(r"^# TYPE (\S+)", text, flags=re.M))
    explained = set(re.findall(r"`(sluice_\w+)", (ROOT / "docs/operations.md").read_text()))
    assert served == {name for name in explained if not name.startswith("sluice_telemetry_")}
    assert f'sluice_replica_behind_records{{shard="0",node="{lost["node"]}"}}' in text


def test_a_leadership_is_handed_to_the_node_that_is_named(cluster):
    leader = cluster.leader()
    for node in cluster.nodes:
        # Whoever is asked.
        status, answer = cluster.request(leader, "POST", "/v1/cluster/transfer", {"node": node["node"]})
        assert (status, answer) == (200, {"node": node["node"], "shards": [0]})
        assert cluster.leader() is node
    status, answer = cluster.request(leader, "POST", "/v1/cluster/transfer", {"node": 9})
    assert (status, answer["error"]["code"]) == (400, "invalid_argument")


def test_a_worker_follows_each_change_of_the_leader(cluster, tmp_path):
    leader = cluster.leader()
    done = tmp_path / "done"
    urls = ",".join(node["url"] for node in cluster.nodes)
    credentials = ["--ca", cluster.told["ca"], "--cert", cluster.told["cert"], "--cert-key", cluster.told["key"]]
    # A message takes longer than a change of the leader.
    command = ["sh", "-c", f"read -r n; sleep 0.2; echo $n >> {done}"]
    work = [binary(), "work", "jobs", "--transport", "session", "--concurrency", "8", "--server", urls]
    worker = subprocess.Popen([*work, *credentials, "--", *command])
    for first in range(0, 6 * BATCH, BATCH):
        send(cluster, leader, first)
        node = cluster.nodes[first // BATCH % 3]
        status, answer = cluster.request(leader, "POST", "/v1/cluster/transfer", {"node": node["node"]})
        assert status == 200, answer
    until(lambda: done.exists() and len(done.read_text().split()) >= 6 * BATCH, "all is worked")
    worker.terminate()
    assert worker.wait(30) == 0
    # Nothing that a worker holds is given to another one meanwhile, nor to itself again.
    assert sorted(map(int, done.read_text().split())) == list(range(6 * BATCH))
    assert receive_all(cluster, cluster.leader()) == []


def test_a_node_that_is_cut_off_answers_only_reads_that_may_be_behind(cluster):
    leader = cluster.leader()
    send(cluster, leader, 0)
    follower, other = [node for node in cluster.nodes if node is not leader]
    path = "/v1/queues/jobs"

    def ready(query=""):
        status, answer = cluster.request(follower, "GET", path + query)
        return answer["counts"]["ready"] if status == 200 else answer["error"]["code"]

    assert ready() == BATCH
    until(lambda: ready("?stale=true") == BATCH, "the node has applied it")
    with frozen(cluster, leader), frozen(cluster, other):
        began = time.monotonic()
        assert ready("?stale=true") == BATCH
        assert time.monotonic() - began < 1
        # First passed on to the leader, until it is not one any more; then without a leader.
        for _ in range(3):
            began = time.monotonic()
            assert ready() == "no_leader"
            assert time.monotonic() - began < 6
        assert ready("?stale=true") == BATCH
        shown = sluice(cluster, follower, "queue", "show", "jobs", "--stale", "--json")
        assert json.loads(shown)["counts"]["ready"] == BATCH
    # On any node a value is one that was true. The nodes may still choose another leader.
    until(lambda: is_sent(cluster, cluster.leader(), BATCH), "one leads")
    assert ready("?stale=true") in (BATCH, 2 * BATCH)
    assert ready() == 2 * BATCH


def sluice(cluster, node, *arguments):
    credentials = ["--ca", cluster.told["ca"], "--cert", cluster.told["cert"], "--cert-key", cluster.told["key"]]
    command = [binary(), *arguments, "--server", node["url"], *credentials]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=60).stdout


def test_a_worker_that_knows_one_node_works_through_it(cluster, tmp_path):
    leader = cluster.leader()
    send(cluster, leader, 0)
    follower = next(node for node in cluster.nodes if node is not leader)
    done = tmp_path / "done"
    credentials = ["--ca", cluster.told["ca"], "--cert", cluster.told["cert"], "--cert-key", cluster.told["key"]]
    command = ["sh", "-c", f"read -r n; echo $n >> {done}"]
    work = [binary(), "work", "jobs", "--transport", "session", "--concurrency", "8", "--server", follower["url"]]
    worker = subprocess.Popen([*work, *credentials, "--", *command])
    until(lambda: done.exists() and len(done.read_text().split()) >= BATCH, "all is worked")
    # The leadership moves to the third node: the session ends, and the next one is passed on there.
    third = next(node for node in cluster.nodes if node not in (leader, follower))
    status, answer = cluster.request(leader, "POST", "/v1/cluster/transfer", {"node": third["node"]})
    assert status == 200, answer
    send(cluster, third, BATCH)
    until(lambda: len(done.read_text().split()) >= 2 * BATCH, "the rest is worked")
    worker.terminate()
    assert worker.wait(30) == 0
    assert sorted(map(int, done.read_text().split())) == list(range(2 * BATCH))
    assert receive_all(cluster, third) == []


def test_a_worker_goes_on_with_what_it_holds_when_the_leader_is_killed(cluster, tmp_path):
    leader = cluster.leader()
    begun, done, may_end = (tmp_path / name for name in ("begun", "done", "may-end"))
    urls = ",".join(node["url"] for node in cluster.nodes)
    credentials = ["--ca", cluster.told["ca"], "--cert", cluster.told["cert"], "--cert-key", cluster.told["key"]]
    # The worker's time of grace is its lease.
    work = [binary(), "work", "jobs", "--transport", "session", "--concurrency", "4", "--lease", "60s"]
    command = f"read -r n; echo $n >> {begun}; while [ ! -e {may_end} ]; do sleep 0.1; done; echo $n >> {done}"
    worker = subprocess.Popen([*work, "--server", urls, *credentials, "--", "sh", "-c", command])
    send(cluster, leader, 0)

    def held(node):
        """Consumers that hold messages, and how many."""
        status, answer = cluster.request(node, "GET", "/v1/consumers")
        assert status == 200, answer
        holding = [consumer for consumer in answer["consumers"] if consumer["in_flight"]]
        return [(consumer["id"], consumer["state"], consumer["in_flight"]) for consumer in holding]

    until(lambda: begun.exists() and len(begun.read_text().split()) == 4, "four commands run")
    before = held(leader)
    assert [state for _, state, _ in before] == ["attached"], before
    cluster.kill(leader)
    after = cluster.leader()
    others = []

    def is_back():
        # Somebody else asks meanwhile, and gets what the worker has no credit for.
        status, answer = cluster.request(after, "POST", "/v1/queues/jobs/receive", {"max": 100})
        assert status == 200, answer
        others.extend(answer["messages"])
        now = held(after)
        return [(state, count) for _, state, count in now if state == "attached"] == [("attached", before[0][2])]

    until(is_back, "the worker holds what it held")
    assert [consumer for consumer, *_ in held(after)][0] != before[0][0]
    others = [int(message["payload"]) for message in others]
    assert not set(others) & set(map(int, begun.read_text().split())), "what it holds went to others"
    assert len(others) == BATCH - before[0][2]
    may_end.touch()
    until(lambda: done.exists() and len(done.read_text().split()) == before[0][2], "all is worked")
    worker.terminate()
    assert worker.wait(30) == 0
    # Each command has run once, and what it did was acked.
    assert sorted(map(int, done.read_text().split())) == sorted(set(range(BATCH)) - set(others))
    assert sorted(begun.read_text().split()) == sorted(done.read_text().split())
    status, answer = cluster.request(after, "GET", "/v1/queues/jobs")
    assert answer["totals"]["acked"] == before[0][2], answer



def test_a_backup_of_any_node_holds_what_was_acknowledged_and_begins_a_cluster(cluster, tmp_path):
    leader = cluster.leader()
    send(cluster, leader, 0)
    follower = next(node for node in cluster.nodes if node is not leader)
    # A follower is behind the leader by what is on its way.
    send(cluster, leader, BATCH)
    credentials = ["--ca", cluster.told["ca"], "--cert", cluster.told["cert"], "--cert-key", cluster.told["key"]]
    backup = [binary(), "backup", "copy", "--server", follower["url"], *credentials]
    subprocess.run(backup, check=True, cwd=tmp_path, timeout=60)
    assert cluster.stop() == 0
    places = [Path(tmp_path, node["data_dir"]) for node in cluster.nodes]
    key = places[0].parent / f"{places[0].name}.key"
    restore = [binary(), "restore", "copy", "restored", "--key-source", f"file:{key}"]
    subprocess.run(restore, check=True, cwd=tmp_path, timeout=60)
    for place in places:
        shutil.rmtree(place)
        shutil.copytree(tmp_path / "restored", place)
    cluster.start()
    assert sorted(receive_all(cluster, cluster.leader())) == list(range(2 * BATCH))
    send(cluster, cluster.leader(), 0)
