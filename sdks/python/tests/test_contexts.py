"""The contexts of the command line."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sluice import Client
from sluice._config import make_config
from sluice.testing import Server
from sluice.testing.server import NO_BINARY, find_binary


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("SERVER", "CONTEXT", "NAMESPACE", "TOKEN", "TOKEN_FILE", "CA", "CERT", "CERT_KEY"):
        monkeypatch.delenv(f"SLUICE_{name}", raising=False)
    return tmp_path


def sluice(*arguments: str) -> None:
    binary = find_binary()
    if binary is None:
        pytest.skip(NO_BINARY)
    subprocess.run([binary, "context", *arguments], check=True, capture_output=True)


def test_a_context_names_server_namespace_and_credentials(
    monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    (home / "token").write_text("secret\n")
    sluice("add", "local", "--server", "http://127.0.0.1:1")
    shop = ["--server", "http://shop:2,http://shop:3", "--namespace", "shop"]
    sluice("add", 'the "shop"', *shop, "--token-file", str(home / "token"))
    monkeypatch.setenv("SLUICE_TOKEN", "another")
    in_use = make_config()
    assert (in_use.addresses, in_use.namespace, in_use.token) == (("127.0.0.1:1",), "", None)
    made = make_config(context='the "shop"')
    assert (made.addresses, made.namespace, made.token) == (("shop:2", "shop:3"), "shop", "secret")
    assert make_config(context='the "shop"', namespace="n", token="t").token == "t"
    monkeypatch.setenv("SLUICE_CONTEXT", 'the "shop"')
    monkeypatch.setenv("SLUICE_NAMESPACE", "from-the-environment")
    assert (make_config().addresses[0], make_config().namespace) == ("shop:2", "from-the-environment")
    assert make_config("http://given:4").addresses == ("given:4",)
    monkeypatch.setenv("SLUICE_SERVER", "http://variable:5")
    assert make_config().addresses == ("variable:5",)
    assert make_config(context="local").addresses == ("127.0.0.1:1",)
    with pytest.raises(ValueError, match="not both"):
        make_config("http://given:4", context="local")


def test_what_is_wrong_is_told(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    assert make_config().addresses == ("127.0.0.1:7070",)
    with pytest.raises(ValueError, match="sluice context add"):
        make_config(context="shop")
    sluice("add", "local", "--server", "http://127.0.0.1:1")
    with pytest.raises(ValueError, match=r"contexts\.toml: there is no context 'shop', but local"):
        make_config(context="shop")
    for broken in ("current = ", "contexts = 1\ncurrent = 'x'", "current = 'x'\n[contexts.x]"):
        (home / "sluice" / "contexts.toml").write_text(broken)
        with pytest.raises(ValueError, match=r"contexts\.toml"):
            make_config()


def test_a_client_talks_to_the_server_of_the_context_in_use(sluice_server: Server) -> None:
    sluice("add", "local", "--server", sluice_server.url)
    with Client() as client:
        assert client.send("contexts", "hello").id
