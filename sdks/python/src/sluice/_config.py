"""Servers and credentials, given or taken from the environment as the command line takes them."""

from __future__ import annotations

import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import grpc

PathLike = str | os.PathLike[str]
DEFAULT_SERVER = "http://127.0.0.1:7070"


@dataclass(frozen=True)
class Config:
    """All that a client is made with."""

    #: ``host:port`` of each server, which are asked in turn.
    addresses: tuple[str, ...]
    tls: bool
    namespace: str
    token: str | None = field(repr=False)
    #: CA, private key and certificate, as PEM.
    pem: tuple[bytes | None, bytes | None, bytes | None] = field(repr=False)
    #: Seconds for one try of a call, beyond the wait that it asks for.
    request_timeout: float = 30.0
    #: Seconds for which a call is repeated.
    retry_for: float = 30.0
    #: Seconds for which a call is repeated while the only server cannot be reached.
    connect_retry_for: float = 10.0

    def credentials(self) -> grpc.ChannelCredentials:
        """The credentials of a TLS connection."""
        ca, key, cert = self.pem
        return grpc.ssl_channel_credentials(ca or _system_cas(), key, cert)


def make_config(
    servers: str | Sequence[str] | None = None,
    *,
    namespace: str | None = None,
    token: str | None = None,
    token_file: PathLike | None = None,
    ca: PathLike | None = None,
    cert: PathLike | None = None,
    key: PathLike | None = None,
    request_timeout: float = 30.0,
    retry_for: float = 30.0,
    connect_retry_for: float = 10.0,
) -> Config:
    """What is given, else what the environment says, else the defaults."""
    given = servers if servers is not None else os.environ.get("SLUICE_SERVER") or DEFAULT_SERVER
    urls = given.split(",") if isinstance(given, str) else list(given)
    tls, addresses = _addresses([url.strip() for url in urls])
    cert, key = cert or os.environ.get("SLUICE_CERT"), key or os.environ.get("SLUICE_CERT_KEY")
    if bool(cert) != bool(key):
        raise ValueError("a client's certificate and its private key go together")
    return Config(
        addresses=addresses,
        tls=tls,
        namespace=namespace or os.environ.get("SLUICE_NAMESPACE") or "",
        token=token or _token(token_file),
        pem=(_read(ca or os.environ.get("SLUICE_CA")), _read(key), _read(cert)),
        request_timeout=request_timeout,
        retry_for=retry_for,
        connect_retry_for=connect_retry_for,
    )


def _token(file: PathLike | None) -> str | None:
    file = file or os.environ.get("SLUICE_TOKEN_FILE")
    if file:
        return Path(file).read_text().strip()
    return os.environ.get("SLUICE_TOKEN") or None


def _system_cas() -> bytes | None:
    """The CAs that the system trusts; None: those of gRPC."""
    return _read(ssl.get_default_verify_paths().cafile)


def _read(file: PathLike | None) -> bytes | None:
    return Path(file).read_bytes() if file else None


def _addresses(urls: list[str]) -> tuple[bool, tuple[str, ...]]:
    each = [_address(url) for url in urls]
    if len({tls for tls, _ in each}) != 1:
        raise ValueError("all nodes of a cluster are asked with TLS, or none")
    return each[0][0], tuple(address for _, address in each)


def _address(url: str) -> tuple[bool, str]:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/"):
        raise ValueError(f"expected http://HOST:PORT or https://HOST:PORT, not {url!r}")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    tls = parts.scheme == "https"
    return tls, f"{host}:{parts.port or (443 if tls else 80)}"
