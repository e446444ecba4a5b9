"""Servers and credentials, given or taken from the environment as the command line takes them."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import grpc

from ._contexts import Context, context_of
from .errors import SluiceError, error_of

PathLike = str | os.PathLike[str]
DEFAULT_SERVER = "http://127.0.0.1:7070"
#: Hosts as gRPC can be asked for them: blanks and the like are in no name.
_HOST = re.compile(r"[^\s/@%\\]+(%[\w.-]+)?")


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
    #: The same while the only server cannot be reached, which makes that time shorter, not longer.
    connect_retry_for: float = 10.0

    def credentials(self) -> grpc.ChannelCredentials:
        """The credentials of a TLS connection."""
        ca, key, cert = self.pem
        return grpc.ssl_channel_credentials(ca or _system_cas(), key, cert)


def make_config(
    servers: str | Sequence[str] | None = None,
    *,
    context: str | None = None,
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
    """What is given, else what the environment or a context of the command line says, else the defaults."""
    found = _found(servers, context)
    given = servers if servers is not None else found.server
    urls = given.split(",") if isinstance(given, str) else list(given)
    tls, addresses = _addresses([url.strip() for url in urls])
    cert, key = cert or found.cert, key or found.cert_key
    if bool(cert) != bool(key):
        raise error_of("usage", "a client's certificate and its private key go together")
    return Config(
        addresses=addresses,
        tls=tls,
        namespace=namespace or os.environ.get("SLUICE_NAMESPACE") or found.namespace or "",
        token=_checked(token or _token(token_file or found.token_file) or found.token),
        pem=(_read(ca or found.ca), _read(key), _read(cert)),
        request_timeout=request_timeout,
        retry_for=retry_for,
        connect_retry_for=connect_retry_for,
    )


@dataclass(frozen=True)
class _Found(Context):
    """What the environment or a context says; the token itself stands in the environment alone."""

    token: str | None


def _found(servers: str | Sequence[str] | None, context: str | None) -> _Found:
    if servers is not None and context:
        raise error_of("usage", "a client has servers or a context, not both")
    named = servers is not None or (not context and os.environ.get("SLUICE_SERVER"))
    chosen = None if named else context_of(context or os.environ.get("SLUICE_CONTEXT"))
    if chosen is not None:
        return _Found(**vars(chosen), token=None)
    variables = ("SLUICE_CA", "SLUICE_CERT", "SLUICE_CERT_KEY", "SLUICE_TOKEN_FILE", "SLUICE_TOKEN")
    server = os.environ.get("SLUICE_SERVER") or DEFAULT_SERVER
    return _Found(server, None, *(os.environ.get(name) or None for name in variables))


def _token(file: PathLike | None) -> str | None:
    content = _read(file)
    return None if content is None else content.decode(errors="replace").strip()


def _checked(token: str | None) -> str | None:
    """The token, if a header can carry it. The error does not show it."""
    if token and not all(" " <= character <= "~" for character in token):
        raise error_of("usage", "the token has characters that no token has")
    return token


def _system_cas() -> bytes | None:
    """The CAs that the system trusts; None: those of gRPC."""
    return _read(ssl.get_default_verify_paths().cafile)


def _read(file: PathLike | None) -> bytes | None:
    try:
        return Path(file).read_bytes() if file else None
    except OSError as error:
        raise error_of("usage", f"cannot read {file}: {error.strerror or error}") from error


def _addresses(urls: list[str]) -> tuple[bool, tuple[str, ...]]:
    each = [_address(url) for url in urls]
    if len({tls for tls, _ in each}) != 1:
        raise error_of("usage", "all nodes of a cluster are asked with TLS, or none")
    return each[0][0], tuple(address for _, address in each)


def _address(url: str) -> tuple[bool, str]:
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        name, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise _no_address(url, f": {error}") from error
    if parts.scheme not in ("http", "https") or not _HOST.fullmatch(name) or parts.path not in ("", "/"):
        raise _no_address(url)
    host = f"[{name}]" if ":" in name else name
    tls = parts.scheme == "https"
    return tls, f"{host}:{port or (443 if tls else 80)}"


def _no_address(url: str, reason: str = "") -> SluiceError:
    return error_of("usage", f"expected http://HOST:PORT or https://HOST:PORT, not {url!r}{reason}")
