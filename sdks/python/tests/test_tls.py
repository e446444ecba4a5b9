"""Certificates and tokens."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import sluice
from sluice import Client
from sluice.testing import Server, find_binary


def test_certificates_and_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tls = tmp_path / "data-tls"
    with Server(f"--data-dir={tmp_path}/data", "--tls=auto") as server:
        assert server.url.startswith("https://")
        ca, cert, key = (str(tls / name) for name in ("ca.pem", "admin.pem", "admin.key"))
        with Client(server.url, ca=ca, cert=cert, key=key) as admin:
            admin.send("q", "by certificate")
        for name, value in (("SERVER", server.url), ("CA", ca), ("CERT", cert), ("CERT_KEY", key)):
            monkeypatch.setenv(f"SLUICE_{name}", value)
        with Client() as from_environment:
            assert from_environment.receive("q")[0].value == "by certificate"
        create = [str(find_binary()), "token", "create", "sender", "--scope", "default=w"]
        made = subprocess.run(create, capture_output=True, text=True)
        assert made.returncode == 0, made.stderr
        monkeypatch.delenv("SLUICE_CERT")
        monkeypatch.delenv("SLUICE_CERT_KEY")
        monkeypatch.setenv("SLUICE_TOKEN", made.stdout.strip())
        _by_token()
        monkeypatch.delenv("SLUICE_TOKEN")
        with Client() as nobody:
            with pytest.raises(sluice.Unauthenticated):
                nobody.send("q", "x")
            with pytest.raises(sluice.Unauthenticated):
                sluice.Worker(nobody, "q", lambda job: None).run()


def _by_token() -> None:
    with Client() as sender:
        sender.send("q", "by token")
        with pytest.raises(sluice.Forbidden) as refused:
            sender.receive("q")
        with pytest.raises(sluice.Forbidden):
            sluice.Worker(sender, "q", lambda job: None).run()
    assert refused.value.code == "forbidden"
