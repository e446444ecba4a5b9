"""Transactions over several namespaces in a cluster, whose leaders die between two phases."""

import http.client
import json
import random
import signal
import ssl
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from conftest import until
from documents import JSON, of
from test_cluster_join import begun, joined, machines  # noqa: F401
from test_transactions_across import Bank, moving, there
from transactions import TRANSACTIONS, putting, sending


class Three:
    """Three nodes with two shards; the namespaces `b` and `c` lie on the second one."""

    def __init__(self, make):
        self.nodes = [begun(make, "--shards=2")]
        self.nodes += [joined(make, name, self.nodes[0]) for name in ("two", "three")]
        tls = self.nodes[0].directory / "data-tls"
        self.context = ssl.create_default_context(cafile=tls / "ca.pem")
        self.context.load_cert_chain(tls / "admin.pem", tls / "admin.key")
        self.until_all_follow()
        for name in ("b", "c"):
            assert self.nodes[0].request("PUT", f"/v1/namespaces/{name}", {"shard": 1})[0] == 201

    def ask(self, method, path, body=None, headers=None, node=None):
        """Status and JSON of the answer of a node, or of any; None: there is none."""
        data = None if body is None else json.dumps(body).encode()
        url = (node or random.choice(self.nodes)).url + path
        request = urllib.request.Request(url, data, {**JSON, **(headers or {})}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20, context=self.context) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as failed:
            return failed.code, json.loads(failed.read())
        except (OSError, http.client.HTTPException):
            time.sleep(0.02)
            return None, None

    def shards(self) -> list[dict]:
        """The shards as a node sees them that answers."""
        for node in self.nodes:
            status, answer = self.ask("GET", "/v1/cluster/status", node=node)
            if status == 200:
                return answer["shards"]
        return []

    def until_all_follow(self):
        def all_follow() -> bool:
            followers = [one for shard in self.shards() for one in shard["followers"]]
            return len(followers) == 4 and all(one["votes"] for one in followers)

        until(all_follow, "all nodes follow and vote")

    def leader_of(self, shard: int):
        found = []

        def is_led() -> bool:
            found[:] = [one["leader"] for one in self.shards()[shard : shard + 1] if one.get("leader")]
            return bool(found)

        until(is_led, f"shard {shard} is led")
        return self.nodes[found[0] - 1]

    def let_lead(self, shard: int, node):
        def leads() -> bool:
            body = {"node": self.nodes.index(node) + 1, "shards": [shard]}
            self.ask("POST", "/v1/cluster/transfer", body)
            return self.leader_of(shard) is node

        until(leads, f"shard {shard} is led by {node.directory.name}")


def test_money_is_neither_made_nor_lost_when_leaders_of_a_cluster_die(machines):  # noqa: F811
    cluster = Three(machines)
    cluster.let_lead(1, cluster.nodes[1])

    def kills():
        for at in range(3):
            time.sleep(0.3 + random.random())
            killed = cluster.leader_of(1 - at % 2)
            killed.kill()
            time.sleep(0.5 + random.random())
            killed.start()
            cluster.until_all_follow()

    moving(Bank(cluster.ask), kills)


class Burst:
    """Transactions of the same moment. While `two` sleeps, parts wait to be prepared there, and `three` gets
    the shard of the coordinator; when `two` wakes, `one` lets `three` decide on all of them, which dies then.
    """

    COUNT = 48

    def __init__(self, cluster: Three, name: str):
        self.cluster, self.answers = cluster, {}
        self.keys = [f"{name}/{at:02}" for at in range(self.COUNT)]

    def write(self, key: str):
        operations = [putting(key, "x"), sending(key, "moved"), there(putting(key, "x"))]
        body = {"operations": operations}
        self.answers[key] = self.cluster.ask("POST", TRANSACTIONS, body, node=self.cluster.nodes[0])

    def run(self, stuck_s: float):
        """`stuck_s`: time for which `three` does not answer before its connections break."""
        one, two, three = self.cluster.nodes
        self.cluster.let_lead(0, one)
        self.cluster.let_lead(1, two)
        with ThreadPoolExecutor(self.COUNT) as threads:
            two.process.send_signal(signal.SIGSTOP)
            writes = [threads.submit(self.write, key) for key in self.keys]
            time.sleep(0.15)
            body = {"node": 3, "shards": [0]}
            status, answer = self.cluster.ask("POST", "/v1/cluster/transfer", body, node=one)
            two.process.send_signal(signal.SIGCONT)
            assert status == 200, answer
            time.sleep(random.random() / 20)
            three.process.send_signal(signal.SIGSTOP)
            time.sleep(stuck_s)
            three.kill()
            for done in writes:
                done.result()

    def read(self, path: str) -> dict | None:
        found = []

        def is_answered() -> bool:
            status, answer = self.cluster.ask("GET", path, node=random.choice(self.cluster.nodes[:2]))
            found[:] = [answer if status == 200 else None]
            return status in (200, 404)

        until(is_answered, f"GET {path} is answered")
        return found[0]

    def check(self):
        for _ in range(2):
            # The first time waits for what is prepared, and until all is decided.
            own = {key: self.read(of(key)) for key in self.keys}
            other = {key: self.read(of(key, namespace="b")) for key in self.keys}
        halves = {key: self.answers[key] for key in self.keys if (own[key] is None) != (other[key] is None)}
        assert not halves, f"{len(halves)} of {self.COUNT} are done by halves: {halves}"
        done = [key for key in self.keys if own[key]]
        twice = [key for key in done if (own[key]["version"], other[key]["version"]) != (1, 1)]
        assert not twice, f"{len(twice)} of {self.COUNT} are done twice: {twice}"
        # There is no queue if nothing was committed.
        queue = self.read("/v1/queues/moved/messages?payload=true&limit=1000")
        sent = queue["messages"] if queue else []
        assert sorted(one["payload"] for one in sent if one["payload"] in self.keys) == done
        assert all(own[key] for key, (status, _) in self.answers.items() if status == 200)


def test_a_decision_whose_answer_is_lost_counts_and_counts_once(machines):  # noqa: F811
    cluster = Three(machines)
    for number, stuck_s in enumerate((0, 0, 0, 3.5)):
        burst = Burst(cluster, f"burst {number}")
        burst.run(stuck_s)
        burst.check()
        cluster.nodes[2].start()
        cluster.until_all_follow()
