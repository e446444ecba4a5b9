"""A token counts on every node from the answer to its creation to that of its revocation."""

import os
import signal
import time

import pytest
from conftest import until
from test_cluster import cluster_of_shards  # noqa: F401

SCOPES = ["sluice://ns/n*?perm=w"]


@pytest.fixture
def cluster(cluster_of_shards):  # noqa: F811
    """Three shards, each of which another node leads, with a namespace on each."""
    for at, node in enumerate(cluster_of_shards.nodes):
        status, answer = cluster_of_shards.request(node, "PUT", f"/v1/namespaces/n{at}", {"shard": at})
        assert status == 201, answer
    return cluster_of_shards


def create(cluster, node, name):
    status, answer = cluster.request(node, "POST", "/v1/tokens", {"name": name, "scopes": SCOPES})
    assert status == 201, answer
    return answer["token"]


def revoke(cluster, node, name):
    status, answer = cluster.request(node, "DELETE", f"/v1/tokens/{name}")
    assert status == 200, answer


def statuses(cluster, token):
    """What the leaders of all shards say to sends with a token, each by one node after the other."""

    def send(node, shard):
        path = f"/v1/namespaces/n{shard}/queues/jobs/messages"
        return cluster.request(node, "POST", path, {"payload": "x"}, token)[0]

    return {send(node, shard) for node in cluster.nodes for shard in range(3)}


def lead_first(cluster, node):
    status, answer = cluster.request(node, "POST", "/v1/cluster/transfer", {"node": node["node"], "shards": [0]})
    assert status == 200, answer


def test_a_token_counts_at_once_on_all_leaders_and_then_no_more(cluster):
    for turn in range(6):
        node = cluster.nodes[turn % 3]
        token = create(cluster, node, f"t{turn}")
        assert statuses(cluster, token) == {201}
        revoke(cluster, node, f"t{turn}")
        assert statuses(cluster, token) == {401}


def test_the_next_leader_knows_the_tokens_that_were_created_and_revoked(cluster):
    for turn in range(6):
        former, node = cluster.nodes[turn % 3], cluster.nodes[(turn + 1) % 3]
        token = create(cluster, former, f"t{turn}")
        lead_first(cluster, node)
        assert statuses(cluster, token) == {201}
        status, answer = cluster.request(node, "POST", "/v1/tokens", {"name": f"t{turn}", "scopes": SCOPES})
        assert (status, answer["error"]["code"]) == (409, "token_exists")
        revoke(cluster, node, f"t{turn}")
        lead_first(cluster, former)
        assert statuses(cluster, token) == {401}
        lead_first(cluster, node)


def test_a_node_that_was_not_reached_follows_when_it_is(cluster):
    token, first = create(cluster, cluster.nodes[0], "gone"), cluster.nodes[0]
    behind = cluster.nodes[2]
    os.kill(behind["pid"], signal.SIGSTOP)
    try:
        began = time.monotonic()
        revoke(cluster, first, "gone")
        assert time.monotonic() - began < 10, "it is not waited for"
    finally:
        os.kill(behind["pid"], signal.SIGCONT)
    until(lambda: statuses(cluster, token) == {401}, "it refuses the token, too")
    assert "has not said that it counts a change" in cluster.log.read_text()
