#!/usr/bin/env python3
"""Moves the jobs of a BullMQ queue from Redis into a queue of Sluice.

  pip install ./sdks/python redis
  python bullmq.py pictures                  the jobs that wait, by priority, and those that are delayed
  python bullmq.py pictures --to images --redis redis://localhost:6379/0 --prefix bull

Stop the producers and workers first, or let the workers finish what they have. The script may be killed and started
again at any time. What it does not move stays in Redis, and is counted: jobs that are active, failed or completed,
and those of flows.
"""

import argparse
import json
import sys

import redis
from ledger import BATCH, Ledger, Taken, is_full, move

import sluice

# Takes jobs out of where they wait, and notes them, with the time at which they are due, in a list of ours.
# In one step: whatever happens a job is in one of the two. Jobs of flows stay.
CLAIM = """
local prefix, claimed, n = KEYS[1], KEYS[2], tonumber(ARGV[1])
local function claim(id, due)
  -- Markers are no jobs, and jobs of flows stay.
  if redis.call('HEXISTS', prefix .. id, 'name') == 0 then return false end
  if redis.call('HEXISTS', prefix .. id, 'parentKey') == 1 then return false end
  redis.call('RPUSH', claimed, cjson.encode({id = id, due = due}))
  n = n - 1
  return true
end
for _, list in ipairs({'wait', 'paused'}) do
  local left = 0
  while n > 0 do
    local ids = redis.call('LRANGE', prefix .. list, -left - 1000, -left - 1)
    if #ids == 0 then break end
    for at = #ids, 1, -1 do
      if n > 0 and claim(ids[at], 0) then redis.call('LREM', prefix .. list, -1, ids[at]) else left = left + 1 end
    end
  end
end
for _, set in ipairs({'prioritized', 'delayed'}) do
  local left = 0
  while n > 0 do
    local rows = redis.call('ZRANGE', prefix .. set, left, left + 999, 'WITHSCORES')
    if #rows == 0 then break end
    for at = 1, #rows, 2 do
      local due = set == 'delayed' and math.floor(tonumber(rows[at + 1]) / 4096) or 0
      if n > 0 and claim(rows[at], due) then redis.call('ZREM', prefix .. set, rows[at]) else left = left + 1 end
    end
  end
end
return redis.call('LLEN', claimed)
"""

# Forgets claimed jobs.
FORGET = """
for at = 2, #ARGV do
  redis.call('DEL', KEYS[1] .. ARGV[at], KEYS[1] .. ARGV[at] .. ':logs')
end
redis.call('LTRIM', KEYS[2], #ARGV - 1, -1)
"""


def priority(of: int) -> int:
    """BullMQ: none comes before 1, which is first of the others. Here 9 is first."""
    return 9 if of == 0 else max(0, 9 - of)


def backoff(options: dict) -> dict:
    """The delay between attempts, where there is one that Sluice knows."""
    found = options.get("backoff")
    if isinstance(found, (int, float)):
        found = {"type": "fixed", "delay": found}
    if not found or found.get("type") not in ("fixed", "exponential"):
        return {}
    base = max(found.get("delay", 0), 1) / 1000
    return {"backoff": sluice.Backoff(found["type"], base=base, cap=max(base, 24 * 3600))}


def message(job: dict[str, str], id: str, due: int) -> Taken:
    options = json.loads(job.get("opts", "{}"))
    made = int(job.get("atm", job.get("attemptsMade", 0)))
    sent = {
        "content_type": "application/json",
        "headers": {"bullmq-name": job["name"], "bullmq-id": id},
        "priority": priority(int(job.get("priority", 0))),
        "max_attempts": max(1, int(options.get("attempts") or 1) - made),
        **backoff(options),
    }
    if due:
        sent["deliver_at"] = due / 1000
    return Taken(id, job["data"].encode(), sent)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("queue", help="name of the queue in BullMQ")
    parser.add_argument("--to", help="queue in Sluice; default: the same name")
    parser.add_argument("--redis", default="redis://localhost:6379/0")
    parser.add_argument("--prefix", default="bull")
    given = parser.parse_args()
    store = redis.Redis.from_url(given.redis, decode_responses=True)
    prefix = f"{given.prefix}:{given.queue}:"
    claimed = f"{prefix}sluice-claimed"
    claim, forget = store.register_script(CLAIM), store.register_script(FORGET)

    def take() -> list[Taken]:
        rows = store.lrange(claimed, 0, BATCH - 1)
        if not rows and claim([prefix, claimed], [BATCH]):
            rows = store.lrange(claimed, 0, BATCH - 1)
        entries = [json.loads(row) for row in rows]
        with store.pipeline(transaction=False) as pipeline:
            for entry in entries:
                pipeline.hgetall(prefix + entry["id"])
            jobs = pipeline.execute()
        batch: list[Taken] = []
        for job, entry in zip(jobs, entries):
            if is_full(batch):
                break
            batch.append(message(job, entry["id"], entry["due"]))
        return batch

    def let_go(batch: list[Taken]) -> None:
        forget([prefix, claimed], [len(batch), *(taken.id for taken in batch)])

    ledger = Ledger(sluice.Client(), given.to or given.queue, f"bullmq/{given.queue}")
    print(f"moved {move(ledger, take, let_go)} jobs")
    for name in ("wait", "paused", "active"):
        if left := store.llen(prefix + name):
            print(f"left {left} in {name}", file=sys.stderr)
    for name in ("prioritized", "delayed", "failed", "completed", "waiting-children"):
        if left := store.zcard(prefix + name):
            print(f"left {left} in {name}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
