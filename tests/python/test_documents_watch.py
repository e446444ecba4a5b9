"""Documents as a stream: all as they are, then each change; read as any client of server-sent events does."""

import http.client
import json
import time
import urllib.parse

import pytest

from documents import allow_keys, delete, put

STREAM = "/v1/document-changes/stream"


class Watch:
    """A stream of changes; `begin` goes on behind the last id, as a browser does."""

    def __init__(self, server, query="", headers=None):
        self.server, self.path, self.id = server, f"{STREAM}?{query}", ""
        self.headers = headers or {}
        self.begin()

    def begin(self):
        url = urllib.parse.urlparse(self.server.url)
        self.connection = http.client.HTTPConnection(url.hostname, url.port, timeout=40)
        headers = self.headers | ({"Last-Event-ID": self.id} if self.id else {})
        self.connection.request("GET", self.path, headers=headers)
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200, self.answer.read()
        assert self.answer.headers["Content-Type"] == "text/event-stream"

    def next(self):
        """The name and the data of the next event; None at the end."""
        event = data = None
        while line := self.answer.readline().decode():
            name, _, value = line.rstrip("\n").partition(": ")
            if name == "id":
                self.id = value
            elif name == "event":
                event = value
            elif name == "data":
                data = json.loads(value)
            elif name == "" and event is not None:
                return event, data
        return None

    def keys(self, count):
        told = [self.next() for _ in range(count)]
        return [("-" if name == "gone" else "") + data["key"] if name != "current" else name for name, data in told]

    def leave(self):
        self.connection.close()
        self.answer.close()


def test_a_watcher_hears_what_is_there_and_then_each_change(server):
    for key in ("a", "b", "a"):
        put(server, key, "x")
    watch = Watch(server)
    assert watch.keys(3) == ["b", "a", "current"]
    put(server, "c", "hello")
    name, change = watch.next()
    assert name == "written" and change["document"]["version"] == 1 and change["document"]["content_bytes"] == 5
    delete(server, "b")
    assert watch.keys(1) == ["-b"]
    put(server, "d", "x", ttl_ms=300)
    assert watch.keys(2) == ["d", "-d"]


def test_a_watcher_that_comes_back_hears_what_it_has_missed(server):
    put(server, "a", "x")
    watch = Watch(server)
    assert watch.keys(2) == ["a", "current"]
    put(server, "b", "x")
    assert watch.keys(1) == ["b"]
    watch.leave()
    delete(server, "a")
    put(server, "b", "y")
    server.stop()
    server.start()
    watch.begin()
    assert watch.keys(3) == ["-a", "b", "current"]
    put(server, "c", "x")
    assert watch.keys(1) == ["c"]


def test_many_documents_come_in_order_and_none_is_left_out(server):
    wanted = [f"k{number:03}" for number in range(300)]
    for key in [*wanted, "other"]:
        put(server, key, "x")
    watch = Watch(server, "prefix=k")
    assert watch.keys(301) == [*wanted, "current"]
    middle = Watch(server, "prefix=k")
    for _ in range(150):
        middle.next()
    middle.leave()
    put(server, "k000", "again")
    middle.begin()
    told = []
    while (event := middle.next())[0] != "current":
        told.append(event[1]["key"])
    assert told[-1] == "k000" and set(wanted[150:]) <= set(told)


def test_an_empty_namespace_is_current_at_once(server):
    watch = Watch(server)
    assert watch.keys(1) == ["current"] and watch.id == "0"
    put(server, "a", "x")
    assert watch.keys(1) == ["a"]


MISTAKES = {"after=yesterday": "invalid_argument", "after=1-2-3": "invalid_argument", "limit=3": "unknown_field"}


@pytest.mark.parametrize("query", MISTAKES)
def test_mistakes_are_answered_before_the_stream_begins(server, query):
    status, answer = server.request("GET", f"{STREAM}?{query}")
    assert status == 400 and json.loads(answer)["error"]["code"] == MISTAKES[query], answer


def test_a_wrong_last_event_is_named(server):
    status, answer = server.request("GET", STREAM, headers={"Last-Event-ID": "yesterday"})
    assert status == 400 and "Last-Event-ID: expected next" in json.loads(answer)["error"]["message"], answer


def test_a_watcher_hears_only_of_keys_that_it_may_read_by_then(server):
    server.env["SLUICE_TOKEN"] = server.sluice("token", "create", "root", "--scope", "*=admin").stdout.strip()
    root = {"Authorization": f"Bearer {server.env['SLUICE_TOKEN']}"}
    watcher = {"Authorization": f"Bearer {server.sluice('token', 'create', 'watcher').stdout.strip()}"}

    def allow(keys: str):
        allow_keys(server, "watcher", keys)

    def write(*names: str):
        for name in names:
            server.call("PUT", f"/v1/documents/{name}", {"content": "x"}, root)

    allow('"a*", "secret*"')
    write("a1", "b1", "secret1")
    watch = Watch(server, headers=watcher)
    assert watch.keys(3) == ["a1", "secret1", "current"]
    allow('"a*"')
    write("secret2", "b2", "a2")
    assert watch.keys(1) == ["a2"]
    server.sluice("token", "revoke", "watcher")
    assert watch.next() is None


def test_a_deleted_namespace_ends_the_stream(server):
    server.call("PUT", "/v1/namespaces/team", {})
    server.call("PUT", "/v1/namespaces/team/documents/a", {"content": "x"})
    url = urllib.parse.urlparse(server.url)
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=40)
    connection.request("GET", "/v1/namespaces/team/document-changes/stream")
    answer = connection.getresponse()
    assert b"written" in answer.readline() + answer.readline()
    began = time.monotonic()
    server.call("DELETE", "/v1/namespaces/team?force=true")
    assert answer.read().count(b"event: written") == 0 and time.monotonic() - began < 5
