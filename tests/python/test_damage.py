"""A cluster in which the disk of one node damages a payload."""

import re
import subprocess
import urllib.request
from pathlib import Path

import pytest
from conftest import binary, until
from test_cluster import Cluster

TLS = {"cert": "node-2.pem", "key": "node-2.key", "client-ca": "ca.pem"}
NEEDLE = "this payload is damaged on one disk, and not on the others"


@pytest.fixture
def cluster(tmp_path):
    """A cluster whose payloads can be found on the disk, and are read from there."""
    cluster = Cluster(tmp_path, SLUICE_NO_ENCRYPTION="true", SLUICE_CACHE="0")
    cluster.until_all_answer()
    yield cluster


def flip(directory):
    """Flips a bit of the needle, wherever it lies; the name of the file."""
    for path in Path(directory).rglob("*.log"):
        content = path.read_bytes()
        at = content.find(NEEDLE.encode())
        if at >= 0:
            with open(path, "r+b") as file:
                file.seek(at + 7)
                file.write(bytes([content[at + 7] ^ 1]))
            return path
    raise AssertionError(f"no log in {directory} has the payload")


def figures(cluster, node):
    """The figures of repairs of a node, by their short names."""
    with urllib.request.urlopen(node["url"] + "/metrics", context=cluster.tls) as metrics:
        text = metrics.read().decode()
    found = re.findall(r'^sluice_replica_repairs_(\w+)_total\{shard="0"\} (\d+)$', text, flags=re.M)
    return {name: int(value) for name, value in found}


def test_a_payload_damaged_on_the_leaders_disk_comes_from_another_node_and_is_replaced(cluster, tmp_path):
    leader = cluster.leader()
    status, answer = cluster.request(leader, "POST", "/v1/queues/jobs/messages", {"payload": NEEDLE})
    assert status == 201, answer
    damaged = flip(tmp_path / leader["data_dir"])
    status, answer = cluster.request(leader, "POST", "/v1/queues/jobs/receive", {"max": 1})
    assert status == 200 and [message["payload"] for message in answer["messages"]] == [NEEDLE], answer
    until(lambda: figures(cluster, leader)["written"] == 1, "the damaged file is replaced")
    told = figures(cluster, leader)
    assert (told["asked"], told["done"], told["lost"], told["unanswered"]) == (1, 1, 0, 0)
    assert not damaged.exists()
    assert cluster.stop() == 0
    for node in cluster.nodes:
        checked = subprocess.run(
            [binary(), "check", node["data_dir"]], cwd=tmp_path, capture_output=True, text=True, timeout=60
        )
        assert checked.returncode == 0, checked


def test_a_payload_that_all_nodes_have_lost_is_held(cluster, tmp_path):
    leader = cluster.leader()
    status, answer = cluster.request(leader, "POST", "/v1/queues/jobs/messages", {"payload": NEEDLE})
    assert status == 201, answer
    sent = answer
    for node in cluster.nodes:
        # A follower writes a little later than its leader answers.
        until(lambda node=node: has_needle(tmp_path / node["data_dir"]), "the node has the payload")
        flip(tmp_path / node["data_dir"])
    status, answer = cluster.request(leader, "POST", "/v1/queues/jobs/receive", {"max": 1})
    assert status == 200 and answer["messages"] == [], answer
    status, answer = cluster.request(leader, "GET", f"/v1/messages/{sent['id']}")
    assert (status, answer["error"]["code"]) == (500, "payload_damaged"), answer

    def held():
        answer = cluster.request(leader, "GET", "/v1/queues/jobs/messages?state=held")[1]
        return [message["id"] for message in answer["messages"]]

    until(lambda: held() == [sent["id"]], "the message is held")
    assert figures(cluster, leader)["lost"] == 1
    assert cluster.stop() == 0


def test_a_node_whose_number_is_fixed_does_not_start_with_damage_and_says_what_to_do(cluster, tmp_path):
    assert cluster.stop() == 0
    manifest = tmp_path / cluster.nodes[1]["data_dir"] / "shard-000" / "manifest"
    content = manifest.read_bytes()
    manifest.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    members = [f"{node['node']}={node['url'].removeprefix('https://')}" for node in cluster.nodes]
    tls = [f"--tls-{name}=cluster/tls/{file}" for name, file in TLS.items()]
    serve = [binary(), "serve", "--no-encryption", f"--cluster-members={','.join(members)}", *tls]
    at = [f"--listen={members[1].split('=')[1]}", "--data-dir=cluster/node-2/data"]
    refused = subprocess.run([*serve, *at], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert refused.returncode != 0
    assert "is damaged at byte" in refused.stderr and "stands in cluster_members" in refused.stderr, refused
    assert manifest.read_bytes() != content


def has_needle(directory):
    return any(NEEDLE.encode() in path.read_bytes() for path in Path(directory).rglob("*.log"))
