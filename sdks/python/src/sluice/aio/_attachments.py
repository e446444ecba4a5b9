"""Attachments of documents, as streams."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable
from contextlib import aclosing
from typing import IO, TYPE_CHECKING

from .._proto import attachments_pb2 as pb
from .._proto import services
from ..documents import PutConditions, Written
from ._core import Core

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: Largest piece of an upload.
PIECE = 1 << 20
#: What can be uploaded: bytes, an open file, or pieces of any length.
Source = bytes | IO[bytes] | Iterable[bytes] | AsyncIterable[bytes]


async def pieces_of(source: Source) -> AsyncIterator[bytes]:
    """The bytes in pieces that the server takes."""
    if isinstance(source, (bytes, bytearray)):
        for at in range(0, len(source), PIECE):
            yield bytes(source[at : at + PIECE])
    elif isinstance(source, AsyncIterable):
        async for one in source:
            async for piece in pieces_of(one):
                yield piece
    elif hasattr(source, "read"):
        while piece := source.read(PIECE):
            yield piece
    else:
        for one in source:
            async for piece in pieces_of(one):
                yield piece


class Attachments:
    """Named bytes of a document, of up to 5 GiB."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def upload(
        self,
        key: str,
        name: str,
        source: Source,
        *,
        content_type: str | None = None,
        sha256: str | None = None,
        **conditions: Unpack[PutConditions],
    ) -> Written:
        """Makes an attachment of a document, which has to be there. Nothing is left of one that fails."""
        first = pb.UploadAttachmentRequest(
            key=key, name=name, content_type=content_type, sha256=sha256, **conditions
        )

        async def requests() -> AsyncIterator[pb.UploadAttachmentRequest]:
            yield first
            async for piece in pieces_of(source):
                yield pb.UploadAttachmentRequest(content=piece)

        return Written.of(await self._core.upload(services.ATTACHMENTS_UPLOAD, requests()))

    async def download(self, key: str, name: str, *, offset: int = 0) -> AsyncGenerator[bytes, None]:
        """The bytes of an attachment, piece by piece, from an offset on."""
        request = pb.DownloadAttachmentRequest(key=key, name=name, offset=offset)
        async with aclosing(self._core.stream(services.ATTACHMENTS_DOWNLOAD, request)) as pieces:
            async for one in pieces:
                if one.content:
                    yield one.content

    async def list(self, key: str) -> AsyncIterator[pb.Attachment]:
        """The attachments of a document, by name."""
        request = pb.ListAttachmentsRequest(key=key)
        while True:
            got = await self._core.unary(services.ATTACHMENTS_LIST, request, safe=True)
            for one in got.attachments:
                yield one
            if not got.next:
                return
            request.after = got.next

    async def delete(self, key: str, name: str) -> None:
        """Deletes an attachment."""
        request = pb.DeleteAttachmentRequest(key=key, name=name)
        await self._core.unary(services.ATTACHMENTS_DELETE, request)
