"""What needs no server: errors, configuration, tries, payloads."""

from __future__ import annotations

import asyncio
import pickle
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from google.protobuf import any_pb2, duration_pb2

import sluice
from sluice import Backoff, Json, Outgoing, Step, Unique, _encode, errors
from sluice._config import make_config
from sluice._proto import status_pb2
from sluice._status import from_details
from sluice._values import decode, encode
from sluice.aio._core import Core, Tries

ERRORS = Path(__file__).parents[3] / "docs" / "errors.md"


def test_each_code_of_the_page_has_its_class() -> None:
    codes = [line.split("`")[1] for line in ERRORS.read_text().splitlines() if line.startswith("| `")]
    assert len(codes) > 70
    assert [code for code in codes if type(errors.error_of(code, "")) is errors.SluiceError] == []


def test_error_is_read_from_its_details() -> None:
    info = status_pb2.ErrorInfo(reason="overloaded", domain="sluice", metadata={"queue": "q"})
    retry = status_pb2.RetryInfo(retry_delay=duration_pb2.Duration(seconds=1, nanos=500_000_000))
    status = status_pb2.Status(code=8, message="too much")
    for name, detail in (("ErrorInfo", info), ("RetryInfo", retry)):
        url = f"type.googleapis.com/google.rpc.{name}"
        status.details.append(any_pb2.Any(type_url=url, value=detail.SerializeToString()))
    error = from_details(status.SerializeToString())
    assert isinstance(error, sluice.Overloaded)
    assert (error.message, error.details, error.retry_after) == ("too much", {"queue": "q"}, 1.5)
    assert str(error) == "too much [overloaded]"
    assert pickle.loads(pickle.dumps(error)).__dict__ == error.__dict__
    assert from_details(status_pb2.Status().SerializeToString()) is None


def test_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SLUICE_SERVER", "https://a:1, https://[::1]:2,https://c")
    monkeypatch.setenv("SLUICE_NAMESPACE", "n")
    monkeypatch.setenv("SLUICE_TOKEN_FILE", str(tmp_path / "token"))
    (tmp_path / "token").write_text("secret\n")
    made = make_config()
    assert (made.addresses, made.tls) == (("a:1", "[::1]:2", "c:443"), True)
    assert (made.namespace, made.token) == ("n", "secret")
    assert "secret" not in repr(made)
    assert make_config(["b:7"], token="t").addresses == ("b:7",)
    for wrong in ("http://a,https://b", "ftp://a", "http://a/path", ""):
        monkeypatch.setenv("SLUICE_SERVER", wrong)
        if wrong:
            with pytest.raises(ValueError, match=r"expected|TLS"):
                make_config()
        else:
            assert make_config().addresses == ("127.0.0.1:7070",)
    with pytest.raises(ValueError, match="go together"):
        make_config(cert="x")


def tries(safe: bool, servers: str = "a:1,b:2,c:3", retry_for: float = 30) -> Tries:
    return Tries(Core(make_config(servers, retry_for=retry_for)), safe)


def test_only_what_may_be_repeated_is() -> None:
    for code, once, safe in [
        ("overloaded", True, True),
        ("no_leader", True, True),
        ("unreachable", True, True),
        ("connection_lost", False, True),
        ("outcome_unknown", False, True),
        ("quota_exceeded", False, False),
        ("queue_not_found", False, False),
    ]:
        error = errors.error_of(code, "")
        assert (tries(False).next_delay(error, False) is not None) == once, code
        assert (tries(True).next_delay(error, False) is not None) == safe, code


def test_each_other_server_is_asked_once_without_a_delay() -> None:
    error = errors.error_of("not_leader", "", retry_after=1)
    made = tries(False)
    delays = [made.next_delay(error, True) for _ in range(4)]
    assert [delay == 0 for delay in delays] == [True, True, False, True]
    assert all(delay is not None and delay <= 0.1 for delay in delays)
    assert tries(False, retry_for=0).next_delay(error, True) is None


def test_the_server_is_not_asked_sooner_than_it_said() -> None:
    delay = tries(False, "a:1").next_delay(errors.error_of("overloaded", "", retry_after=2), False)
    assert delay is not None
    assert delay >= 2
    far = errors.error_of("overloaded", "", retry_after=3600)
    assert tries(False, "a:1").next_delay(far, False) is None


def test_the_leader_that_is_named_is_asked_next() -> None:
    core = Core(make_config("a:1,b:2,c:3"))
    assert core.pass_on(0, errors.error_of("not_leader", "", {"address": "c:3"}))
    assert core.current == 2
    assert core.pass_on(2, errors.error_of("connection_lost", ""))
    assert core.current == 0
    assert core.pass_on(2, errors.error_of("no_leader", ""))
    assert not core.pass_on(0, errors.error_of("queue_not_found", ""))
    assert core.current == 0
    asyncio.run(core.close())


def test_payloads() -> None:
    assert encode(b"\xff") == (b"\xff", "")
    assert encode("é") == ("é".encode(), "text/plain; charset=utf-8")
    assert encode({"a": [1, None]}) == (b'{"a":[1,null]}', "application/json")
    assert encode(Json("text")) == (b'"text"', "application/json")
    assert decode(b'{"a":1}', "application/merge-patch+json") == {"a": 1}
    assert (decode(b"x", "text/plain"), decode(b"x", "")) == ("x", b"x")


def test_options_of_a_message() -> None:
    at = datetime(2030, 1, 1, tzinfo=timezone.utc)
    made = _encode.message(
        Outgoing(
            "x",
            delay=timedelta(seconds=1.5),
            expires_at=at,
            backoff=Backoff("linear", base=2, cap=60, jitter_percent=5),
            unique=Unique("u", window=60, until="window", on_duplicate="debounce"),
            depends_on=[sluice.Sent("id1"), "#0"],
            depends_mode="any",
            on_parent_failed="run",
            chain=[Step("next", priority=3)],
            on_failure=Step("trouble", {"own": "payload"}),
            hold=True,
            fair_key="f",
            limit_key="l",
            cost=0,
        )
    )
    assert (made.limit_key, made.HasField("cost"), made.cost) == ("l", True, 0)
    assert (made.delay_ms, made.expires_at_ms) == (1500, round(at.timestamp() * 1000))
    assert (made.backoff.kind, made.backoff.base_ms, made.backoff.cap_ms) == ("linear", 2000, 60_000)
    assert (made.unique.key, made.unique.window_ms, made.unique.until) == ("u", 60_000, "window")
    assert (list(made.depends_on), made.depends_mode) == (["id1", "#0"], "any")
    assert (made.chain[0].queue, made.chain[0].HasField("payload"), made.chain[0].priority) == (
        "next", False, 3,
    )  # fmt: skip
    assert made.on_failure.payload == b'{"own":"payload"}'
    with pytest.raises(TypeError, match="no option 'colour'"):
        _encode.message(Outgoing("x", colour="red"))  # type: ignore[call-arg]
