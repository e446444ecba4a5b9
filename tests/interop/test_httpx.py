"""Python's httpx, over h2."""

import asyncio
import contextlib

import httpx
import pytest

from conftest import PATTERN, PIECES, UPLOADED


@pytest.fixture
def client(stack):
    with connect(stack) as client:
        yield client


def connect(stack, kind=httpx.Client):
    return kind(http1=False, http2=True, verify=stack.context(), base_url=stack.url, timeout=30)


def in_pieces(body: bytes, size: int):
    for at in range(0, len(body), size):
        yield body[at : at + size]


def test_requests(client):
    for size in (0, 1, 16_384, 300_000):
        answer = client.get(f"/size/{size}")
        assert (answer.http_version, answer.status_code, answer.content) == ("HTTP/2", 200, PATTERN[:size])
    answer = client.head("/size/1000")
    assert (answer.headers["content-length"], answer.content) == ("1000", b"")
    assert client.get("/status/204").status_code == 204
    assert client.get("/nowhere").text == "there is no /nowhere"
    assert 'x-one="1"' in client.request("PURGE", "/head", headers={"X-One": "1"}).text


def test_bodies_are_streamed_both_ways(client):
    assert client.post("/echo", content=in_pieces(PATTERN, 7_000)).content == PATTERN
    told = client.post("/upload", content=in_pieces(PATTERN[:500], 1)).text
    assert told == UPLOADED.format(500, "")
    with client.stream("GET", "/pieces/64") as answer:
        assert b"".join(answer.iter_bytes()) == PIECES


def test_forty_downloads_on_four_connections(stack):
    async def download(client):
        return (await client.get("/size/262144")).content

    async def downloads():
        async with contextlib.AsyncExitStack() as opened:
            clients = [await opened.enter_async_context(connect(stack, httpx.AsyncClient)) for _ in range(4)]
            return await asyncio.gather(*[download(client) for client in clients for _ in range(10)])

    assert asyncio.run(downloads()) == [PATTERN[:262_144]] * 40


def test_two_hundred_downloads_are_left_and_the_next_is_served(client):
    for _ in range(200):
        # httpx gives no credit for what it leaves: all of it fits into the window of the connection.
        with client.stream("GET", "/size/50000") as answer:
            assert answer.status_code == 200
    assert client.get("/size/100000").content == PATTERN[:100_000]


def test_an_answer_that_breaks_off(client):
    with pytest.raises(httpx.RemoteProtocolError):
        client.get("/fails")
    assert client.get("/size/3").content == PATTERN[:3]
