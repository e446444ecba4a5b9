#!/usr/bin/env python3
"""A worker for Sluice that needs nothing but Python.

    python3 worker.py emails --server http://127.0.0.1:7070

It receives one message at a time, calls handle(), and acks. A handler that raises an
exception nacks the message, which is tried again later; Reject makes it a dead letter.
While a handler runs, the lease is extended. SIGTERM or Ctrl-C finishes the message at
hand and stops.
"""

import argparse
import base64
import json
import signal
import threading
import time
import traceback
import urllib.error
import urllib.request

LEASE_MS = 30_000
WAIT_MS = 2_000  # How long one receive may wait; also the longest delay of a stop.


class Reject(Exception):
    """Raised by a handler for a message that can never succeed."""


def handle(payload: bytes, message: dict) -> None:
    """Put your work here. It may run twice for one message, so make that harmless."""
    print(f"{message['id']} attempt {message['attempt']}: {payload.decode(errors='replace')}", flush=True)


class Sluice:
    """The four calls that a worker needs."""

    def __init__(self, server: str):
        self.server = server.rstrip("/")

    def receive(self, queue: str) -> list[dict]:
        body = {"max": 1, "wait_ms": WAIT_MS, "lease_ms": LEASE_MS}
        return self.post(f"/v1/queues/{queue}/receive", body)["messages"]

    def extend(self, receipt: str) -> None:
        self.post("/v1/extend", {"receipt": receipt, "lease_ms": LEASE_MS})

    def settle(self, outcome: str, receipt: str, error: str = "") -> None:
        body = {"receipt": receipt, **({"error": error} if error else {})}
        self.post(f"/v1/{outcome}", body)

    def post(self, path: str, body: dict) -> dict:
        """Every call here may be repeated safely, so a server that is away is asked again."""
        request = urllib.request.Request(
            self.server + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        for attempt in range(8):
            try:
                with urllib.request.urlopen(request, timeout=WAIT_MS / 1000 + 30) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                told = json.load(error)["error"]
                if error.code not in (429, 503):
                    raise RuntimeError(f"{told['code']}: {told['message']}") from error
                failure = told["message"]
            except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
                failure = str(error)
            time.sleep(min(0.1 * 2**attempt, 5))
        raise RuntimeError(f"no answer from {self.server}: {failure}")


def extend_until(done: threading.Event, sluice: Sluice, receipt: str) -> None:
    """Extends the lease at half time, until the handler is done."""
    while not done.wait(LEASE_MS / 2000):
        try:
            sluice.extend(receipt)
        except RuntimeError as error:
            print(f"cannot extend the lease: {error}", flush=True)
            return


def work_on(sluice: Sluice, message: dict) -> None:
    receipt, done = message["receipt"], threading.Event()
    extender = threading.Thread(target=extend_until, args=(done, sluice, receipt))
    extender.start()
    try:
        text = message.get("payload")
        payload = base64.b64decode(message["payload_base64"]) if text is None else text.encode()
        handle(payload, message)
        outcome, error = "ack", ""
    except Reject as reason:
        outcome, error = "reject", str(reason)
    except Exception:
        outcome, error = "nack", traceback.format_exc()[-2000:]
    finally:
        done.set()
        extender.join()
    try:
        sluice.settle(outcome, receipt, error)
    except RuntimeError as failure:  # Mostly lease_lost: another worker has the message by now.
        print(f"cannot {outcome} {message['id']}: {failure}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Works through the messages of a Sluice queue.")
    parser.add_argument("queue")
    parser.add_argument("--server", default="http://127.0.0.1:7070")
    args = parser.parse_args()

    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())

    sluice = Sluice(args.server)
    while not stop.is_set():
        for message in sluice.receive(args.queue):
            work_on(sluice, message)


if __name__ == "__main__":
    main()
