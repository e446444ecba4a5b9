"""What programs have for their tests."""

from __future__ import annotations

import asyncio

import pytest

from sluice import App, Client, To, aio
from sluice._proto import queues_pb2
from sluice.testing import outbox

NOWHERE = "127.0.0.1:1"


def test_outbox_records_sends() -> None:
    client = Client(NOWHERE)
    app = App(client)

    @app.task(queue="mail")
    def send_mail(to: str) -> None: ...

    with client, outbox(client) as box:
        box.assert_nothing_sent()
        client.send("q", {"n": 1}, headers={"h": "1"})
        client.send_many("q", [b"raw", "text"])
        client.group([To("a", 1), To("b", 2)], To("end", "done"))
        send_mail.send("ann")
        box.assert_sent("q", {"n": 1}, count=1)
        box.assert_sent("q", count=3)
        box.assert_sent("q", b"raw")
        box.assert_sent("q", "text")
        box.assert_sent("end", "done")
        box.assert_sent("mail", {"args": ["ann"], "kwargs": {}})
        assert box.sent("q")[0].headers == {"h": "1"}
        with pytest.raises(AssertionError, match="sent were"):
            box.assert_sent("q", {"n": 2})
        with pytest.raises(AssertionError, match="sent were"):
            box.assert_sent("q", count=1)
        with pytest.raises(AssertionError, match="records sends only"):
            client.receive("q")


def test_outbox_of_the_asyncio_client() -> None:
    async def main() -> None:
        async with aio.Client(NOWHERE) as client:
            with outbox(client) as box:
                await client.send("q", 1)
            box.assert_sent("q", 1, count=1)

    asyncio.run(main())


def test_clients_of_two_tests_do_not_see_each_other(sluice_client: Client) -> None:
    sluice_client.send("shared", 1)
    found = sluice_client.stubs.queues.List(queues_pb2.ListQueuesRequest())
    assert [queue.name for queue in found.queues] == ["shared"]
