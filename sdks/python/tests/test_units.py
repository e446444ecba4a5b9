"""What needs no server: errors, configuration, tries, payloads."""

from __future__ import annotations

import asyncio
import pickle
import time
import traceback
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import any_pb2, duration_pb2

import sluice
from sluice import Backoff, Json, Outgoing, Step, Unique, _encode, errors
from sluice._config import make_config
from sluice._proto import status_pb2
from sluice._signal import Signal
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


SECRET = "sluice_8f4e_SECRET"


@pytest.mark.parametrize(
    "token", [f"{SECRET}\nb", f"{SECRET}é", f"a\r{SECRET}", f"{SECRET}\x7f", f"{SECRET}\0"]
)
def test_a_token_that_no_header_can_carry_is_refused_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, token: str
) -> None:
    def refused(**given: Any) -> None:
        with pytest.raises(sluice.InvalidArgument, match="has characters that no token has") as raised:
            make_config(**given)
        assert raised.value.code == "usage"
        assert SECRET not in "".join(traceback.format_exception(raised.value))

    refused(token=token)
    (tmp_path / "token").write_bytes(token.encode())
    refused(token_file=str(tmp_path / "token"))
    monkeypatch.setenv("SLUICE_TOKEN_FILE", str(tmp_path / "token"))
    refused()
    monkeypatch.delenv("SLUICE_TOKEN_FILE")
    if "\0" not in token:
        monkeypatch.setenv("SLUICE_TOKEN", token)
        refused()
    monkeypatch.delenv("SLUICE_TOKEN", raising=False)
    (tmp_path / "sluice").mkdir()
    (tmp_path / "sluice" / "contexts.toml").write_text(
        "[contexts.shop]\nserver = 'http://a:1'\n"
        f"[contexts.shop.credentials]\ntoken_file = '{tmp_path}/token'\n"
    )
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    refused(context="shop")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"servers": "http://a:99999"}, r"not 'http://a:99999': Port out of range"),
        ({"servers": "http://a:b"}, "not 'http://a:b'"),
        ({"servers": "http://a b:70"}, "not 'http://a b:70'"),
        ({"servers": "http://[::1"}, r"not 'http://\[::1'"),
        ({"token_file": "/nowhere/token"}, "cannot read /nowhere/token: No such file"),
        ({"ca": "/nowhere/ca"}, "cannot read /nowhere/ca"),
        ({"cert": "x"}, "go together"),
        ({"servers": "a", "context": "b"}, "not both"),
    ],
)
def test_what_no_client_can_be_made_with_is_told(given: dict[str, Any], says: str) -> None:
    with pytest.raises(sluice.InvalidArgument, match=says) as raised:
        make_config(**given)
    assert raised.value.code == "usage"


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


def test_the_time_for_repeats_bounds_those_of_a_server_that_is_not_there() -> None:
    began = time.monotonic()
    with sluice.Client("127.0.0.1:1", retry_for=0.5) as client, pytest.raises(sluice.Unavailable):
        client.documents.get("x")
    assert time.monotonic() - began < 3


def test_nothing_was_sent_to_a_server_whose_name_says_nothing() -> None:
    with sluice.Client("http://nowhere.invalid:7070", retry_for=0) as client:
        for call in (lambda: client.documents.get("x"), lambda: client.send("q", "x")):
            with pytest.raises(sluice.Unavailable) as raised:
                call()
            assert (type(raised.value), raised.value.code) == (sluice.Unavailable, "unreachable")


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


def test_a_signal_wakes_those_who_wait_and_those_who_come_later() -> None:
    async def main() -> None:
        signal, loop = Signal(), asyncio.get_running_loop()
        assert not signal.wait(0)
        in_thread = loop.run_in_executor(None, signal.wait, 30)
        on_loop = asyncio.create_task(signal.wait_async())
        await asyncio.sleep(0.05)
        assert [in_thread.done(), on_loop.done()] == [False, False]
        signal.set()
        assert await asyncio.wait_for(in_thread, 30)
        await asyncio.wait_for(on_loop, 30)
        assert signal.is_set()
        assert signal.wait(0)
        late = Signal()
        late.set()
        assert late.wait(0)
        await asyncio.wait_for(late.wait_async(), 30)

    asyncio.run(main())
