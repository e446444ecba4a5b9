"""Jobs that BullMQ has made arrive once each, as what they were, through kills."""

import json
import subprocess
import time

import redis
from conftest import ROOT, messages

from sluice.proto import messages_pb2, queues_pb2

COUNT = 6_000


def test_every_job_arrives_once(redis_port, client, migrate):
    subprocess.run(["node", ROOT / "tests/migration/produce.mjs", str(redis_port), "pictures", str(COUNT)], check=True)
    url = f"redis://127.0.0.1:{redis_port}/0"
    assert migrate("bullmq.py", "pictures", "--to", "images", "--redis", url) > 2
    counts = client.stubs.queues.Get(queues_pb2.GetQueueRequest(queue="images")).counts
    assert (counts.ready, counts.delayed) == (COUNT * 4 // 5, COUNT // 5)
    came = messages(client, "images")
    numbers = [message.value["n"] for message in came]
    assert len(numbers) == len(set(numbers)) == COUNT * 4 // 5
    # Plain jobs first and in order, then those with priorities.
    plain = [n for n in range(COUNT) if n % 5 in (0, 4)]
    assert numbers == plain + [n for n in range(COUNT) if n % 5 == 1] + [n for n in range(COUNT) if n % 5 == 2]
    first, last = came[0], came[-1]
    assert first.headers["bullmq-name"] == "kind-0" and first.max_attempts == 1
    assert (first.priority, last.priority) == (9, 2)
    assert next(message for message in came if message.value["n"] % 5 == 4).max_attempts == 8
    store = redis.Redis.from_url(url, decode_responses=True)
    # The page of the album is what is left, and the album waits for it.
    [page] = store.lrange("bull:pictures:wait", 0, -1)
    assert json.loads(store.hget(f"bull:pictures:{page}", "data")) == {}
    assert not [key for key in store.scan_iter("bull:pictures:*") if key.endswith(":sluice-claimed")]
    assert len([key for key in store.scan_iter("bull:pictures:*") if key.split(":")[-1].isdigit()]) <= 1


def test_delays_go_on(redis_port, client, migrate):
    subprocess.run(["node", ROOT / "tests/migration/produce.mjs", str(redis_port), "late", "5"], check=True)
    migrate("bullmq.py", "late", "--redis", f"redis://127.0.0.1:{redis_port}/0")
    [delayed] = client.stubs.messages.List(messages_pb2.ListMessagesRequest(queue="late", state="delayed")).messages
    assert abs(delayed.deadline_ms - (time.time() + 3_600) * 1_000) < 60_000
