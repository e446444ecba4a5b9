"""Server-sent events, read as any client reads them."""

import http.client
import json
import urllib.parse


class Stream:
    """A stream of events over a connection of its own; begins again like a browser, with the last id that it has."""

    def __init__(self, server, path):
        self.server, self.path, self.id = server, path, ""
        self.begin()

    def begin(self):
        url = urllib.parse.urlparse(self.server.url)
        self.connection = http.client.HTTPConnection(url.hostname, url.port, timeout=40)
        headers = {"Last-Event-ID": self.id} if self.id else {}
        self.connection.request("GET", self.path, headers=headers)
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200, self.answer.read()
        assert self.answer.headers["Content-Type"] == "text/event-stream"
        # Where it stands comes at once, so what happens from here on is in the stream.
        assert self.block() == {}

    def leave(self):
        self.connection.close()
        self.answer.close()

    def block(self):
        """The data of the next block, empty if it is none; None at the end."""
        data, event = {}, None
        while line := self.answer.readline().decode():
            name, _, value = line.rstrip("\n").partition(": ")
            if name == "id":
                self.id = value
            elif name == "event":
                event = value
            elif name == "data":
                data = json.loads(value)
            elif name == "":
                if not value:
                    assert data.get("type") == event
                    return data
            else:
                assert name == "retry", line
        return None

    def next(self):
        while not (data := self.block()):
            assert data is not None, "the stream has ended"
        return data


def test_a_life_is_told_through_a_broken_connection_and_a_restart(server):
    server.call("PUT", "/v1/queues/mail", {"max_attempts": 1})
    stream = Stream(server, "/v1/queues/mail/events")
    sent = server.call("POST", "/v1/queues/mail/messages", {"payload": "hello"})
    event = stream.next()
    assert (event["type"], event["id"], event["queue"]) == ("sent", sent["id"], "mail")

    stream.leave()
    server.call("POST", "/v1/queues/other/messages", {"payload": "not of this feed"})
    (message,) = server.call("POST", "/v1/queues/mail/receive")["messages"]
    server.call("POST", "/v1/nack", {"receipt": message["receipt"], "error": "no"})
    stream.begin()
    seen = [stream.next() for _ in range(3)]
    assert [event["type"] for event in seen] == ["delivered", "nacked", "died"]
    assert seen[0]["lease_until_ms"] == message["lease_until_ms"]
    assert seen[2]["reason"] == "max_attempts"

    assert server.stop() == 0
    assert stream.block() is None, "the server ends the stream before it stops"
    stream.leave()
    server.start()
    stream.begin()
    assert stream.next() == {"type": "gap", "reason": "restarted"}
    server.call("POST", "/v1/queues/mail/dead/redrive", {"all": True})
    assert stream.next()["type"] == "redriven"
    stream.leave()


def test_what_is_not_kept_any_more_is_told(server):
    server.stop()
    server.start("--events-window", "10")
    stream = Stream(server, "/v1/events?types=sent")
    server.call("POST", "/v1/queues/a/messages", {"messages": [{"payload": ""}]})
    stream.next()
    stream.leave()
    server.call("POST", "/v1/queues/a/messages", {"messages": [{"payload": ""}] * 25})
    stream.begin()
    assert stream.next() == {"type": "gap", "reason": "window", "lost": 15}
    assert [stream.next()["type"] for _ in range(10)] == ["sent"] * 10
    stream.leave()


def test_mistakes_are_answered_before_the_stream_begins(server):
    status, answer = server.request("GET", "/v1/events?types=sent,eaten")
    assert status == 400 and b"expected one of sent, delayed, due, delivered, acked" in answer
    status, answer = server.request("GET", "/v1/events", headers={"Last-Event-ID": "yesterday"})
    assert status == 400 and b"is not the id of an event" in answer
    status, answer = server.request("GET", "/v1/queues/none/events")
    assert status == 404 and b"queue_not_found" in answer
