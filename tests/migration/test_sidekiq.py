"""Jobs as Sidekiq writes them arrive once each, through kills."""

import json
import secrets
import time

import redis
from conftest import messages

COUNT = 6_000


def job(n: int, **fields) -> str:
    """https://github.com/sidekiq/sidekiq/wiki/Job-Format"""
    made = {
        "class": "MailJob", "args": [n, "welcome"], "jid": secrets.token_hex(12), "queue": "mail", "retry": True,
        "created_at": time.time(), "enqueued_at": time.time(),
    }
    return json.dumps(made | fields)


def test_every_job_arrives_once(redis_port, client, migrate):
    url = f"redis://127.0.0.1:{redis_port}/0"
    store = redis.Redis.from_url(url, decode_responses=True)
    store.sadd("queues", "mail", "other")
    store.lpush("queue:mail", *(job(n) for n in range(COUNT)))
    store.lpush("queue:other", job(0, queue="other"))
    soon, late = time.time() + 3_600, time.time() - 1
    store.zadd("schedule", {job(COUNT + n): soon + n for n in range(50)})
    store.zadd("schedule", {job(n, queue="other"): soon for n in range(1_500)})
    failed = {"retry": 3, "retry_count": 1, "error_message": "no answer", "error_class": "IOError"}
    store.zadd("retry", {job(COUNT + 100, **failed): late})
    store.zadd("dead", {job(COUNT + 200): late})
    assert migrate("sidekiq.py", "mail", "--redis", url) > 2
    came = messages(client, "mail")
    numbers = [message.value["args"][0] for message in came]
    assert numbers == [*range(COUNT), COUNT + 100]
    assert came[0].value == {"class": "MailJob", "args": [0, "welcome"]}
    assert (came[0].max_attempts, came[-1].max_attempts) == (26, 2)
    assert len(came[0].headers["sidekiq-jid"]) == 24
    assert store.zcard("schedule") == 1_500 and store.llen("queue:other") == 1 and store.zcard("dead") == 1
    assert not store.exists("queue:mail", "sluice-claimed:mail", "retry")
    migrate("sidekiq.py", "other", "--redis", url)
    assert len(messages(client, "other")) == 1
    assert not store.exists("schedule")
