"""Shards that were used and rest give back the disk that they have taken ahead."""

import time

import pytest
from conftest import Server, until
from test_cluster import Cluster

SHARDS = 2
MIB = 1 << 20
# Disk that a shard may take at rest, in bytes, and the size of the segment that is made ahead.
AT_REST, AHEAD = 8 * MIB, 64 * MIB
# Time after which a shard rests, and time within which it has given everything back.
REST_S, GIVEN_BACK_S = 60, 20
PAYLOAD = "x" * 100_000


class OfShards(Server):
    def start(self, *arguments: str):
        super().start(f"--shards={SHARDS}", *arguments)


@pytest.fixture
def alone(tmp_path):
    (tmp_path / "alone").mkdir()
    server = OfShards(tmp_path / "alone")
    yield server
    assert server.stop() == 0


@pytest.fixture
def cluster(tmp_path):
    cluster = Cluster(tmp_path, SLUICE_SHARDS=str(SHARDS))
    cluster.until_all_answer()
    # A transfer later on is a record, and the shard rests a minute after that.
    cluster.spread_leaders(SHARDS)
    yield cluster
    assert cluster.stop() == 0


def use(call, messages: int) -> int:
    """Sends to each shard, and acks all there is; the number of messages."""
    acked = 0
    for shard in range(SHARDS):
        namespace = f"/v1/namespaces/of-shard-{shard}"
        call("PUT", namespace, {"shard": shard})
        for _ in range(messages):
            call("POST", f"{namespace}/queues/jobs/messages", {"payload": PAYLOAD})
        while given := call("POST", f"{namespace}/queues/jobs/receive", {"max": 10})["messages"]:
            results = call("POST", f"{namespace}/ack", {"receipts": [each["receipt"] for each in given]})["results"]
            acked += sum(result["ok"] for result in results)
    return acked


def taken(shard) -> int:
    """What the files of a shard take on the disk, as `du` tells it."""
    found = 0
    for file in shard.iterdir():
        try:
            found += file.stat().st_blocks * 512
        except FileNotFoundError:
            pass
    return found


def test_a_used_shard_at_rest_takes_little_disk(alone, cluster, tmp_path):
    def of_cluster(*request):
        status, answer = cluster.request(cluster.nodes[0], *request)
        assert status in (200, 201), answer
        return answer

    calls = [alone.call, of_cluster]
    shards = [directory for directory in tmp_path.rglob("shard-*") if directory.is_dir()]
    assert len(shards) == 4 * SHARDS

    assert [use(call, 30) for call in calls] == [30 * SHARDS] * 2
    until(lambda: all(taken(shard) > AHEAD for shard in shards), "each has made its next segment")
    time.sleep(REST_S)
    deadline = time.monotonic() + GIVEN_BACK_S
    while most := max(taken(shard) for shard in shards):
        if most <= AT_REST:
            break
        assert time.monotonic() < deadline, {str(shard): taken(shard) for shard in shards}
        time.sleep(0.5)
    assert [use(call, 3) for call in calls] == [3 * SHARDS] * 2
    alone.kill()
    alone.start()
    assert use(alone.call, 1) == SHARDS
