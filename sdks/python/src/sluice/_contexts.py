"""The contexts of the command line: named servers, in the file that ``sluice context`` keeps."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import error_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Context:
    """A named server. Files of credentials are paths."""

    server: str
    namespace: str | None
    ca: str | None
    cert: str | None
    cert_key: str | None
    token_file: str | None


def context_of(name: str | None) -> Context | None:
    """The context of this name, or the one in use; None: there is none in use.

    :class:`InvalidArgument`: there is no such context, or the file cannot be understood.
    """
    path = _path()
    if path is None or not path.exists():
        if name:
            raise error_of("usage", f"there is no context {name!r}: `sluice context add` makes one")
        return None
    try:
        file = tomllib.loads(path.read_text())
        contexts: dict[str, dict[str, Any]] = file.get("contexts", {})
        name = name or file.get("current")
        if name is None:
            return None
        if name not in contexts:
            raise ValueError(f"there is no context {name!r}, but {', '.join(sorted(contexts)) or 'none'}")
        return _context(contexts[name])
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise error_of("usage", f"{path}: {error}") from error


def _context(table: dict[str, Any]) -> Context:
    files = table.get("credentials", {})
    names = ("ca", "cert", "cert_key", "token_file")
    return Context(table["server"], table.get("namespace"), *(files.get(name) for name in names))


def _path() -> Path | None:
    """Of the file; None if neither XDG_CONFIG_HOME nor HOME is set."""
    home = os.environ.get("HOME")
    folder = os.environ.get("XDG_CONFIG_HOME") or (home and os.path.join(home, ".config"))
    return Path(folder) / "sluice" / "contexts.toml" if folder else None
