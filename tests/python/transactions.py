"""Words to talk about transactions with a server."""

import json

from documents import LOCKS, acquire, error, get, put

TRANSACTIONS = "/v1/transactions"
LONG_MS = 600_000


def commit(server, *operations: dict, key="", path=TRANSACTIONS, headers=None) -> dict:
    named = {"Idempotency-Key": key} if key else {}
    return server.call("POST", path, {"operations": list(operations)}, {**named, **(headers or {})})


def refused(server, *operations: dict, key="", path=TRANSACTIONS, headers=None) -> dict:
    """Error of a transaction that must not be committed."""
    named = {"Idempotency-Key": key} if key else {}
    return error(server, "POST", path, {"operations": list(operations)}, {**named, **(headers or {})})


def code(server, *operations: dict, **more) -> tuple[int, str]:
    told = refused(server, *operations, **more)
    return told["status"], told["code"]


def sending(payload: str, queue="mail", **fields) -> dict:
    return {"send": {"queue": queue, "payload": payload, **fields}}


def settling(receipt: str, outcome="ack", **fields) -> dict:
    return {"settle": {"receipt": receipt, "outcome": outcome, **fields}}


def putting(key: str, content="", **fields) -> dict:
    return {"put": {"key": key, "content": content, **fields}}


def deleting(key: str, **fields) -> dict:
    return {"delete": {"key": key, **fields}}


def checking(key: str, **fields) -> dict:
    return {"check": {"key": key, **fields}}


def adding(key: str, by=1, pointer="/n", **fields) -> dict:
    return {"patch": {"key": key, "increment": [{"pointer": pointer, "by": str(by)}], **fields}}


def acquiring(key: str, **fields) -> dict:
    return {"acquire": {"key": key, "ttl_ms": LONG_MS, **fields}}


def releasing(token: str) -> dict:
    return {"release": {"token": token}}


def send(server, payload: str, queue="jobs", **fields) -> str:
    return server.call("POST", f"/v1/queues/{queue}/messages", {"payload": payload, **fields})["id"]


def receive(server, queue="jobs", **fields) -> dict | None:
    body = {"lease_ms": LONG_MS, **fields}
    return next(iter(server.call("POST", f"/v1/queues/{queue}/receive", body)["messages"]), None)


def delivery(server, payload="job", queue="jobs", lease_ms=LONG_MS, **fields) -> str:
    """The receipt of a message that was sent and received just now."""
    send(server, payload, queue, **fields)
    return receive(server, queue, lease_ms=lease_ms)["receipt"]


def messages(server, queue: str) -> list[dict]:
    status, answer = server.request("GET", f"/v1/queues/{queue}/messages?payload=true&limit=1000")
    return json.loads(answer)["messages"] if status == 200 else []


def payloads(server, queue="mail") -> list[str]:
    return [message["payload"] for message in messages(server, queue)]


def message(server, sent: str) -> dict:
    return server.call("GET", f"/v1/messages/{sent}")


def held(server, key: str) -> str:
    return acquire(server, key, ttl_ms=LONG_MS)


def is_held(server, key: str) -> bool:
    status, answer = server.request("GET", f"{LOCKS}/{key}")
    return status == 200 and json.loads(answer)["holder_count"] > 0


def number(server, key: str, pointer="n") -> int:
    return json.loads(get(server, key)["content"]).get(pointer, 0)


def everything(server) -> dict:
    """All that is there, to see that nothing has changed."""
    queues = server.call("GET", "/v1/queues")["queues"]
    for queue in queues:
        queue.pop("oldest_ready_age_ms", None)
    documents = [one["key"] for one in server.call("GET", "/v1/documents")["documents"]]
    return {
        "queues": queues,
        "messages": {queue["name"]: messages(server, queue["name"]) for queue in queues},
        "documents": [(get(server, key), get(server, key, "/history")) for key in documents],
        "locks": server.call("GET", LOCKS)["locks"],
        "namespaces": server.call("GET", "/v1/namespaces"),
    }


class Work:
    """What a worker has at hand: a delivery, locks, documents."""

    def __init__(self, server):
        self.receipt, self.token, self.other = delivery(server), *(held(server, key) for key in ("k", "busy"))
        self.version = put(server, "k", "old", history=2)["version"]
        put(server, "n", '{"n":0}')
        put(server, "gone", "x")

    def operations(self) -> list[dict]:
        """One of each kind, all of which are admitted."""
        return [
            settling(self.receipt),
            putting("k", "new", token=self.token, if_version=self.version),
            sending("follow-up"),
            adding("n"),
            deleting("gone"),
            acquiring("free"),
            releasing(self.token),
        ]
