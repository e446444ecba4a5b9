"""Documents as they are read, and the conditions of writes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypedDict

from ._proto import documents_pb2 as pb
from ._values import time_of
from .messages import HasContent


class Conditions(TypedDict, total=False):
    """Conditions of a write, which is refused with :class:`VersionMismatch` unless they hold."""

    #: The document has this version.
    if_version: int
    #: The document has this ETag.
    if_etag: str
    #: Token of a lock of the key: it is held. :class:`LeaseLost`: it is not.
    token: str


class PutConditions(Conditions, total=False):
    """Conditions of a write of a whole document."""

    #: There is a document.
    if_exists: bool
    #: There is no document.
    if_absent: bool


@dataclass(frozen=True)
class Written:
    """The version that a write has made."""

    version: int
    etag: str
    changed_at: datetime

    @staticmethod
    def of(got: pb.PutDocumentResponse) -> Written:
        """The version, as the server tells it."""
        return Written(got.version, got.etag, time_of(got.changed_at_ms))


@dataclass(frozen=True)
class Document(HasContent):
    """A document. ``payload`` is its content: empty where only its version was asked for."""

    key: str
    version: int
    etag: str
    changed_at: datetime
    expires_at: datetime | None
    content_bytes: int
    payload: bytes
    content_type: str
    attributes: dict[str, str]

    @staticmethod
    def of(got: pb.Document) -> Document:
        """A document, as the server tells it."""
        return Document(
            key=got.key,
            version=got.version,
            etag=got.etag,
            changed_at=time_of(got.changed_at_ms),
            expires_at=time_of(got.expires_at_ms) if got.expires_at_ms else None,
            content_bytes=got.content_bytes,
            payload=got.content,
            content_type=got.content_type,
            attributes=dict(got.attributes),
        )


@dataclass(frozen=True)
class Change:
    """A change of a document that is watched."""

    key: str
    #: The document, without its content; None: it is gone.
    document: Document | None
    #: Place at which a later watch may go on; empty between changes that came together.
    position: str
