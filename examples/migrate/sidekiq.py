#!/usr/bin/env python3
"""Moves the jobs of a Sidekiq queue from Redis into a queue of Sluice.

  pip install ./sdks/python redis
  python sidekiq.py mail                  those that wait, are scheduled, or wait for a retry
  python sidekiq.py mail --to letters --redis redis://localhost:6379/0

Stop the processes of Sidekiq first, with their time to put back what they have. The script may be killed and started
again at any time. The payload of a message is {"class": ..., "args": [...]}; jobs in the dead set stay.
"""

import argparse
import json
import sys

import redis
from ledger import BATCH, Ledger, Taken, is_full, move

import sluice

# Takes jobs out of where they wait, and notes them, with the time at which they are due, in a list of ours.
# In one step: whatever happens a job is in one of the two. The sets hold the jobs of all queues.
CLAIM = """
local queue, claimed, n = KEYS[1], KEYS[2], tonumber(ARGV[1])
while n > 0 do
  local job = redis.call('RPOP', queue)
  if not job then break end
  redis.call('RPUSH', claimed, cjson.encode({job = job, due = '0'}))
  n = n - 1
end
for _, set in ipairs({'schedule', 'retry'}) do
  local from = 0
  while n > 0 do
    local rows = redis.call('ZRANGE', set, from, from + 999, 'WITHSCORES')
    if #rows == 0 then break end
    for at = 1, #rows, 2 do
      if n > 0 and cjson.decode(rows[at]).queue == ARGV[2] then
        redis.call('ZREM', set, rows[at])
        redis.call('RPUSH', claimed, cjson.encode({job = rows[at], due = rows[at + 1]}))
        n = n - 1
      else
        from = from + 1
      end
    end
  end
end
return redis.call('LLEN', claimed)
"""

# Retries of a job whose class does not say how many.
RETRIES = 25


def attempts(job: dict) -> int:
    """Attempts that are left. `retry` is their number besides the first; `retry_count` is 0 after the first failure."""
    retry = job.get("retry", True)
    allowed = 1 + (RETRIES if retry is True else int(retry or 0))
    made = job["retry_count"] + 1 if "retry_count" in job else 0
    return max(1, allowed - made)


def message(row: str) -> Taken:
    entry = json.loads(row)
    job = json.loads(entry["job"])
    sent = {
        "content_type": "application/json",
        "headers": {"sidekiq-jid": job["jid"]},
        "max_attempts": attempts(job),
    }
    if float(entry["due"]):
        sent["deliver_at"] = float(entry["due"])
    payload = json.dumps({"class": job["class"], "args": job["args"]})
    return Taken(job["jid"], payload.encode(), sent)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("queue", help="name of the queue in Sidekiq")
    parser.add_argument("--to", help="queue in Sluice; default: the same name")
    parser.add_argument("--redis", default="redis://localhost:6379/0")
    given = parser.parse_args()
    store = redis.Redis.from_url(given.redis, decode_responses=True)
    claimed = f"sluice-claimed:{given.queue}"
    claim = store.register_script(CLAIM)

    def take() -> list[Taken]:
        rows = store.lrange(claimed, 0, BATCH - 1)
        if not rows and claim([f"queue:{given.queue}", claimed], [BATCH, given.queue]):
            rows = store.lrange(claimed, 0, BATCH - 1)
        batch: list[Taken] = []
        for row in rows:
            if is_full(batch):
                break
            batch.append(message(row))
        return batch

    def let_go(batch: list[Taken]) -> None:
        store.ltrim(claimed, len(batch), -1)

    ledger = Ledger(sluice.Client(), given.to or given.queue, f"sidekiq/{given.queue}")
    print(f"moved {move(ledger, take, let_go)} jobs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
