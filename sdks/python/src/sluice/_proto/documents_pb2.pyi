from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PutDocumentRequest(_message.Message):
    __slots__ = ("namespace", "key", "content", "content_type", "attributes", "ttl_ms", "history", "if_version", "if_etag", "if_exists", "if_absent", "token", "request_id")
    class AttributesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    IF_ETAG_FIELD_NUMBER: _ClassVar[int]
    IF_EXISTS_FIELD_NUMBER: _ClassVar[int]
    IF_ABSENT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    content: bytes
    content_type: str
    attributes: _containers.ScalarMap[str, str]
    ttl_ms: int
    history: int
    if_version: int
    if_etag: str
    if_exists: bool
    if_absent: bool
    token: str
    request_id: str
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ..., content: _Optional[bytes] = ..., content_type: _Optional[str] = ..., attributes: _Optional[_Mapping[str, str]] = ..., ttl_ms: _Optional[int] = ..., history: _Optional[int] = ..., if_version: _Optional[int] = ..., if_etag: _Optional[str] = ..., if_exists: bool = ..., if_absent: bool = ..., token: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class PatchDocumentRequest(_message.Message):
    __slots__ = ("namespace", "key", "merge_patch", "json_patch", "increment", "if_version", "if_etag", "token", "request_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    MERGE_PATCH_FIELD_NUMBER: _ClassVar[int]
    JSON_PATCH_FIELD_NUMBER: _ClassVar[int]
    INCREMENT_FIELD_NUMBER: _ClassVar[int]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    IF_ETAG_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    merge_patch: str
    json_patch: str
    increment: _containers.RepeatedCompositeFieldContainer[DocumentIncrement]
    if_version: int
    if_etag: str
    token: str
    request_id: str
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ..., merge_patch: _Optional[str] = ..., json_patch: _Optional[str] = ..., increment: _Optional[_Iterable[_Union[DocumentIncrement, _Mapping]]] = ..., if_version: _Optional[int] = ..., if_etag: _Optional[str] = ..., token: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class DocumentIncrement(_message.Message):
    __slots__ = ("pointer", "by")
    POINTER_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    pointer: str
    by: str
    def __init__(self, pointer: _Optional[str] = ..., by: _Optional[str] = ...) -> None: ...

class PutDocumentResponse(_message.Message):
    __slots__ = ("version", "etag", "changed_at_ms")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    CHANGED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    version: int
    etag: str
    changed_at_ms: int
    def __init__(self, version: _Optional[int] = ..., etag: _Optional[str] = ..., changed_at_ms: _Optional[int] = ...) -> None: ...

class GetDocumentRequest(_message.Message):
    __slots__ = ("namespace", "key", "version", "stale")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    version: int
    stale: bool
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ..., version: _Optional[int] = ..., stale: bool = ...) -> None: ...

class Document(_message.Message):
    __slots__ = ("key", "version", "etag", "changed_at_ms", "content_bytes", "expires_at_ms", "history", "content", "content_type", "attributes")
    class AttributesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    KEY_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    CHANGED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    CONTENT_BYTES_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_MS_FIELD_NUMBER: _ClassVar[int]
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    key: str
    version: int
    etag: str
    changed_at_ms: int
    content_bytes: int
    expires_at_ms: int
    history: int
    content: bytes
    content_type: str
    attributes: _containers.ScalarMap[str, str]
    def __init__(self, key: _Optional[str] = ..., version: _Optional[int] = ..., etag: _Optional[str] = ..., changed_at_ms: _Optional[int] = ..., content_bytes: _Optional[int] = ..., expires_at_ms: _Optional[int] = ..., history: _Optional[int] = ..., content: _Optional[bytes] = ..., content_type: _Optional[str] = ..., attributes: _Optional[_Mapping[str, str]] = ...) -> None: ...

class ListDocumentsRequest(_message.Message):
    __slots__ = ("namespace", "prefix", "after", "limit", "stale")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    prefix: str
    after: str
    limit: int
    stale: bool
    def __init__(self, namespace: _Optional[str] = ..., prefix: _Optional[str] = ..., after: _Optional[str] = ..., limit: _Optional[int] = ..., stale: bool = ...) -> None: ...

class ListDocumentsResponse(_message.Message):
    __slots__ = ("documents", "next")
    DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    documents: _containers.RepeatedCompositeFieldContainer[Document]
    next: str
    def __init__(self, documents: _Optional[_Iterable[_Union[Document, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class QueryDocumentsRequest(_message.Message):
    __slots__ = ("namespace", "where", "prefix", "sort", "after", "limit", "content")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    SORT_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    where: str
    prefix: str
    sort: _containers.RepeatedCompositeFieldContainer[DocumentSort]
    after: str
    limit: int
    content: bool
    def __init__(self, namespace: _Optional[str] = ..., where: _Optional[str] = ..., prefix: _Optional[str] = ..., sort: _Optional[_Iterable[_Union[DocumentSort, _Mapping]]] = ..., after: _Optional[str] = ..., limit: _Optional[int] = ..., content: bool = ...) -> None: ...

class DocumentSort(_message.Message):
    __slots__ = ("pointer", "descending")
    POINTER_FIELD_NUMBER: _ClassVar[int]
    DESCENDING_FIELD_NUMBER: _ClassVar[int]
    pointer: str
    descending: bool
    def __init__(self, pointer: _Optional[str] = ..., descending: bool = ...) -> None: ...

class QueryDocumentsResponse(_message.Message):
    __slots__ = ("documents", "scanned", "next", "index")
    DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    SCANNED_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    documents: _containers.RepeatedCompositeFieldContainer[Document]
    scanned: int
    next: str
    index: str
    def __init__(self, documents: _Optional[_Iterable[_Union[Document, _Mapping]]] = ..., scanned: _Optional[int] = ..., next: _Optional[str] = ..., index: _Optional[str] = ...) -> None: ...

class PutDocumentIndexRequest(_message.Message):
    __slots__ = ("namespace", "name", "pointer")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    POINTER_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    pointer: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., pointer: _Optional[str] = ...) -> None: ...

class DocumentIndex(_message.Message):
    __slots__ = ("name", "pointer", "state", "terms")
    NAME_FIELD_NUMBER: _ClassVar[int]
    POINTER_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    TERMS_FIELD_NUMBER: _ClassVar[int]
    name: str
    pointer: str
    state: str
    terms: int
    def __init__(self, name: _Optional[str] = ..., pointer: _Optional[str] = ..., state: _Optional[str] = ..., terms: _Optional[int] = ...) -> None: ...

class ListDocumentIndexesRequest(_message.Message):
    __slots__ = ("namespace",)
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    def __init__(self, namespace: _Optional[str] = ...) -> None: ...

class ListDocumentIndexesResponse(_message.Message):
    __slots__ = ("indexes",)
    INDEXES_FIELD_NUMBER: _ClassVar[int]
    indexes: _containers.RepeatedCompositeFieldContainer[DocumentIndex]
    def __init__(self, indexes: _Optional[_Iterable[_Union[DocumentIndex, _Mapping]]] = ...) -> None: ...

class DeleteDocumentIndexRequest(_message.Message):
    __slots__ = ("namespace", "name")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class DeleteDocumentIndexResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DocumentHistoryRequest(_message.Message):
    __slots__ = ("namespace", "key", "stale")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    stale: bool
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ..., stale: bool = ...) -> None: ...

class DocumentHistoryResponse(_message.Message):
    __slots__ = ("versions",)
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    versions: _containers.RepeatedCompositeFieldContainer[Document]
    def __init__(self, versions: _Optional[_Iterable[_Union[Document, _Mapping]]] = ...) -> None: ...

class DocumentChangesRequest(_message.Message):
    __slots__ = ("namespace", "prefix", "after", "limit", "wait_ms")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    prefix: str
    after: str
    limit: int
    wait_ms: int
    def __init__(self, namespace: _Optional[str] = ..., prefix: _Optional[str] = ..., after: _Optional[str] = ..., limit: _Optional[int] = ..., wait_ms: _Optional[int] = ...) -> None: ...

class DocumentChangesResponse(_message.Message):
    __slots__ = ("changes", "next", "more")
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    changes: _containers.RepeatedCompositeFieldContainer[DocumentChange]
    next: str
    more: bool
    def __init__(self, changes: _Optional[_Iterable[_Union[DocumentChange, _Mapping]]] = ..., next: _Optional[str] = ..., more: bool = ...) -> None: ...

class WatchDocumentsRequest(_message.Message):
    __slots__ = ("namespace", "prefix", "after")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    prefix: str
    after: str
    def __init__(self, namespace: _Optional[str] = ..., prefix: _Optional[str] = ..., after: _Optional[str] = ...) -> None: ...

class WatchDocumentsResponse(_message.Message):
    __slots__ = ("position", "key", "etag", "changed_at_ms", "document", "gone", "current")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    CHANGED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    GONE_FIELD_NUMBER: _ClassVar[int]
    CURRENT_FIELD_NUMBER: _ClassVar[int]
    position: str
    key: str
    etag: str
    changed_at_ms: int
    document: Document
    gone: bool
    current: bool
    def __init__(self, position: _Optional[str] = ..., key: _Optional[str] = ..., etag: _Optional[str] = ..., changed_at_ms: _Optional[int] = ..., document: _Optional[_Union[Document, _Mapping]] = ..., gone: bool = ..., current: bool = ...) -> None: ...

class DocumentChange(_message.Message):
    __slots__ = ("key", "etag", "changed_at_ms", "document", "gone")
    KEY_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    CHANGED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    GONE_FIELD_NUMBER: _ClassVar[int]
    key: str
    etag: str
    changed_at_ms: int
    document: Document
    gone: bool
    def __init__(self, key: _Optional[str] = ..., etag: _Optional[str] = ..., changed_at_ms: _Optional[int] = ..., document: _Optional[_Union[Document, _Mapping]] = ..., gone: bool = ...) -> None: ...

class DeleteDocumentRequest(_message.Message):
    __slots__ = ("namespace", "key", "if_version", "if_etag", "token")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    IF_ETAG_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    if_version: int
    if_etag: str
    token: str
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ..., if_version: _Optional[int] = ..., if_etag: _Optional[str] = ..., token: _Optional[str] = ...) -> None: ...

class DeleteDocumentResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
