"""Values that no server needs to see: each is refused with an error that names its field."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import sluice
from sluice import Client, Json, Step, Unique
from sluice.operations import Operations


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A client that fails with another error if it sends anything."""
    with Client("http://127.0.0.1:1", retry_for=0) as made:
        yield made


NAN, HALF = float("nan"), "half \ud800"
CASES: list[tuple[str, Callable[[Any], Any], str]] = [
    ("payload", lambda c: c.send("q", NAN), "no JSON can be made of it"),
    ("payload", lambda c: c.send("q", {"a": [float("inf")]}), "not JSON compliant"),
    ("payload", lambda c: c.send("q", object()), "object is not JSON serializable"),
    ("payload", lambda c: c.send("q", HALF), "UTF-8"),
    ("payload", lambda c: c.send("q", {"a": HALF}), "UTF-8"),
    ("payload", lambda c: c.send("q", Json(HALF)), "UTF-8"),
    ("delay", lambda c: c.send("q", "x", delay=-1), r"from 0 to 9.2e\+15 seconds, not -1"),
    ("delay", lambda c: c.send("q", "x", delay=1e300), r"from 0 to 9.2e\+15 seconds, not 1e\+300"),
    ("delay", lambda c: c.send("q", "x", delay=NAN), "a number of seconds or a timedelta, not nan"),
    ("ttl", lambda c: c.send("q", "x", ttl="soon"), "a number of seconds or a timedelta, not 'soon'"),
    ("deliver_at", lambda c: c.send("q", "x", deliver_at=-1), "seconds since 1970, not -1"),
    ("deliver_at", lambda c: c.send("q", "x", deliver_at="now"), "a datetime, not 'now'"),
    ("headers", lambda c: c.send("q", "x", headers={"a": 1}), "texts by name, not {'a': 1}"),
    ("headers", lambda c: c.send("q", "x", headers=["a"]), r"texts by name, not \['a'\]"),
    ("headers", lambda c: c.send("q", "x", headers={"a": HALF}), "UTF-8"),
    ("tags", lambda c: c.send("q", "x", tags=[1]), r"a list of texts, not \[1\]"),
    ("chain", lambda c: c.send("q", "x", chain=["a"]), r"a list of steps, not \['a'\]"),
    ("priority", lambda c: c.send("q", "x", priority=-1), "a whole number from 0 to 4294967295, not -1"),
    ("priority", lambda c: c.send("q", "x", chain=[Step("s", priority=-2)]), "a whole number from 0 to"),
    ("fair_key", lambda c: c.send("q", "x", fair_key=5), "a text, not 5"),
    ("window", lambda c: c.send("q", "x", unique=Unique("u", window=-1)), "seconds, not -1"),
    ("base", lambda c: c.send("q", "x", backoff=-1), "seconds, not -1"),
    ("queue", lambda c: c.send(5, "x"), "a text, not 5"),
    ("queue", lambda c: c.send(HALF, "x"), "UTF-8"),
    ("idempotency_key", lambda c: c.send("q", "x", idempotency_key=5), "a text, not 5"),
    ("max", lambda c: c.receive("q", max=-1), "a whole number from 0 to 4294967295, not -1"),
    ("wait", lambda c: c.receive("q", wait=-1), "seconds, not -1"),
    ("lease", lambda c: c.receive("q", lease=NAN), "a number of seconds"),
    ("result", lambda c: c.ack("r", NAN), "no JSON"),
    ("delay", lambda c: c.nack("r", delay=-1), "seconds, not -1"),
    ("percent", lambda c: c.extend("r", percent=-1), "a whole number"),
    ("content", lambda c: c.documents.put("k", NAN), "no JSON"),
    (
        "if_version",
        lambda c: c.documents.put("k", 1, if_version=-1),
        "a whole number from 0 to 18446744073709551615, not -1",
    ),
    ("if_exists", lambda c: c.documents.put("k", 1, if_exists="yes"), "True or False, not 'yes'"),
    ("attributes", lambda c: c.documents.put("k", 1, attributes={"a": 1}), "texts by name, not {'a': 1}"),
    ("version", lambda c: c.documents.get("k", version=-1), "a whole number"),
    ("merge", lambda c: c.documents.patch("k", {"a": NAN}), "no JSON"),
    ("merge", lambda c: c.documents.patch("k", HALF), "UTF-8"),
    ("where", lambda c: list(c.documents.query({"/a": NAN})), "no JSON"),
    ("ttl", lambda c: c.locks.acquire("k", ttl=-1), "seconds, not -1"),
    ("keys", lambda c: c.locks.acquire([1]), r"a list, each a text, not \(1,\)"),
    ("holders", lambda c: c.locks.acquire("k", holders=-1), "a whole number"),
    ("every", lambda c: c.schedules.put("s", "q", every=-1), "seconds, not -1"),
    ("timeout", lambda c: c.result("id", timeout="soon"), "a number of seconds"),
    ("content", lambda c: Operations().put("k", NAN), "no JSON"),
    ("if_version", lambda c: Operations().put("k", 1, if_version=-1), "a whole number"),
    ("if_version", lambda c: Operations().check("k", if_version=-1), "a whole number"),
]


@pytest.mark.parametrize(("field", "call", "says"), CASES)
def test_a_value_that_its_field_cannot_hold_is_refused(
    client: Client, field: str, call: Callable[[Any], Any], says: str
) -> None:
    with pytest.raises(sluice.InvalidArgument, match=says) as raised:
        call(client)
    error = raised.value
    assert (error.code, error.details) == ("invalid_argument", {"field": field})
    assert error.message.startswith(f"{field}: ")


def test_an_option_that_there_is_not_is_an_error_of_the_program(client: Client) -> None:
    for call in (
        lambda: client.documents.put("k", 1, if_colour="red"),  # type: ignore[call-arg]
        lambda: client.send("q", "x", if_colour="red"),  # type: ignore[call-arg]
    ):
        with pytest.raises(TypeError, match="no option 'if_colour'"):
            call()
