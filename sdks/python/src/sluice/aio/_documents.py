"""Documents."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from .._fields import made
from .._proto import documents_pb2 as pb
from .._proto import services
from .._values import Duration, Payload, encode, millis, to_json
from ..documents import Change, Conditions, Document, PutConditions, Written
from ..errors import NotFound
from ._core import Core, random_key
from ._watch import follow

if TYPE_CHECKING:
    from typing_extensions import Unpack


def sorting(fields: Sequence[str]) -> list[pb.DocumentSort]:
    """JSON pointers to sort by; one with a ``-`` before it sorts downwards."""
    return [pb.DocumentSort(pointer=one.lstrip("-"), descending=one.startswith("-")) for one in fields]


class Documents:
    """The documents of a namespace: keys with a content of any type, which has a version."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def put(
        self,
        key: str,
        content: Payload,
        *,
        content_type: str | None = None,
        attributes: Mapping[str, str] | None = None,
        ttl: Duration | None = None,
        history: int | None = None,
        **conditions: Unpack[PutConditions],
    ) -> Written:
        """Writes a document, which replaces the whole content.

        ``ttl``: it is gone after this time. ``history``: number of former versions that are kept.
        """
        data, kind = encode(content, "content")
        request = made(
            pb.PutDocumentRequest,
            key=key,
            content=data,
            content_type=content_type or kind or None,
            attributes=attributes,
            ttl_ms=None if ttl is None else millis(ttl, "ttl"),
            history=history,
            request_id=random_key(),
            **conditions,
        )
        return Written.of(await self._core.unary(services.DOCUMENTS_PUT, request, safe=True))

    async def get(self, key: str, *, version: int | None = None, stale: bool = False) -> Document:
        """A document, or a former version of it. :class:`NotFound`: there is none."""
        request = made(pb.GetDocumentRequest, key=key, version=version, stale=stale)
        return Document.of(await self._core.unary(services.DOCUMENTS_GET, request, safe=True))

    async def find(self, key: str) -> Document | None:
        """A document, or None where there is none."""
        try:
            return await self.get(key)
        except NotFound as error:
            if error.code != "document_not_found":
                raise
            return None

    async def patch(self, key: str, merge: Any, **conditions: Unpack[Conditions]) -> Written:
        """Changes a part of JSON: members replace those that are there, None removes them (RFC 7396)."""
        return await self._patch(
            made(pb.PatchDocumentRequest, key=key, merge_patch=to_json(merge, "merge"), **conditions)
        )

    async def json_patch(
        self, key: str, operations: Sequence[Mapping[str, Any]], **conditions: Unpack[Conditions]
    ) -> Written:
        """Changes JSON by the operations of a JSON patch (RFC 6902), all or none."""
        patch = to_json(list(operations), "operations")
        return await self._patch(made(pb.PatchDocumentRequest, key=key, json_patch=patch, **conditions))

    async def increment(
        self, key: str, pointer: str, by: float = 1, **conditions: Unpack[Conditions]
    ) -> Written:
        """Adds to a number in JSON; one that is missing in its object counts as 0."""
        increment = [made(pb.DocumentIncrement, pointer=pointer, by=str(by))]
        return await self._patch(made(pb.PatchDocumentRequest, key=key, increment=increment, **conditions))

    async def delete(self, key: str, **conditions: Unpack[Conditions]) -> None:
        """Deletes a document with its former versions."""
        request = made(pb.DeleteDocumentRequest, key=key, **conditions)
        await self._core.unary(services.DOCUMENTS_DELETE, request)

    async def list(self, prefix: str = "", *, page: int = 100) -> AsyncIterator[Document]:
        """All documents whose keys begin with the prefix, by key, without contents."""
        request = made(pb.ListDocumentsRequest, prefix=prefix or None, limit=page)
        while True:
            got = await self._core.unary(services.DOCUMENTS_LIST, request, safe=True)
            for one in got.documents:
                yield Document.of(one)
            if not got.next:
                return
            request.after = got.next

    async def query(
        self,
        where: Mapping[str, Any] | None = None,
        *,
        prefix: str = "",
        sort: Sequence[str] = (),
        content: bool = True,
        page: int = 100,
    ) -> AsyncIterator[Document]:
        """All documents whose JSON matches the filter: ``{"/state": "paid", "/total": {"ge": 100}}``.

        ``sort``: JSON pointers, ``-`` before one sorts downwards.
        """
        request = made(
            pb.QueryDocumentsRequest,
            where=None if where is None else to_json(where, "where"),
            prefix=prefix or None,
            sort=sorting(sort),
            content=content,
            limit=page,
        )
        while True:
            got = await self._core.unary(services.DOCUMENTS_QUERY, request, safe=True)
            for one in got.documents:
                yield Document.of(one)
            if not got.next:
                return
            request.after = got.next

    async def history(self, key: str) -> Sequence[Document]:
        """The versions that are kept, without contents, the current one first."""
        request = made(pb.DocumentHistoryRequest, key=key)
        got = await self._core.unary(services.DOCUMENTS_HISTORY, request, safe=True)
        return [Document.of(one) for one in got.versions]

    async def watch(self, prefix: str = "", *, after: str | None = None) -> AsyncGenerator[Change, None]:
        """The documents as they are, and each change from then on; goes on after lost connections.

        ``after``: the position of a former change, to go on behind it.
        """
        request = made(pb.WatchDocumentsRequest, prefix=prefix or None, after=after)

        def is_news(one: pb.WatchDocumentsResponse) -> bool:
            if one.position:
                request.after = one.position
            return bool(one.key)

        def begin() -> AsyncGenerator[pb.WatchDocumentsResponse, None]:
            return self._core.stream(services.DOCUMENTS_WATCH, request)

        async with aclosing(follow(begin, is_news)) as changes:
            async for one in changes:
                yield Change(one.key, None if one.gone else Document.of(one.document), one.position)

    async def _patch(self, request: pb.PatchDocumentRequest) -> Written:
        request.request_id = random_key()
        return Written.of(await self._core.unary(services.DOCUMENTS_PATCH, request, safe=True))
