from . import documents_pb2 as _documents_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class BeginUploadRequest(_message.Message):
    __slots__ = ("namespace", "key", "name", "content_type")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    name: str
    content_type: str
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ..., name: _Optional[str] = ..., content_type: _Optional[str] = ...) -> None: ...

class Upload(_message.Message):
    __slots__ = ("upload", "name", "bytes", "sha256", "chunk_bytes_max", "expires_at_ms")
    UPLOAD_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    CHUNK_BYTES_MAX_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_MS_FIELD_NUMBER: _ClassVar[int]
    upload: str
    name: str
    bytes: int
    sha256: str
    chunk_bytes_max: int
    expires_at_ms: int
    def __init__(self, upload: _Optional[str] = ..., name: _Optional[str] = ..., bytes: _Optional[int] = ..., sha256: _Optional[str] = ..., chunk_bytes_max: _Optional[int] = ..., expires_at_ms: _Optional[int] = ...) -> None: ...

class ListUploadsRequest(_message.Message):
    __slots__ = ("namespace", "key", "upload", "name")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    UPLOAD_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    upload: str
    name: str
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ..., upload: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class ListUploadsResponse(_message.Message):
    __slots__ = ("uploads",)
    UPLOADS_FIELD_NUMBER: _ClassVar[int]
    uploads: _containers.RepeatedCompositeFieldContainer[Upload]
    def __init__(self, uploads: _Optional[_Iterable[_Union[Upload, _Mapping]]] = ...) -> None: ...

class AppendToUploadRequest(_message.Message):
    __slots__ = ("namespace", "key", "upload", "offset", "content")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    UPLOAD_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    upload: str
    offset: int
    content: bytes
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ..., upload: _Optional[str] = ..., offset: _Optional[int] = ..., content: _Optional[bytes] = ...) -> None: ...

class AppendToUploadResponse(_message.Message):
    __slots__ = ("bytes",)
    BYTES_FIELD_NUMBER: _ClassVar[int]
    bytes: int
    def __init__(self, bytes: _Optional[int] = ...) -> None: ...

class CommitUploadRequest(_message.Message):
    __slots__ = ("namespace", "key", "name", "upload", "bytes", "sha256", "if_version", "if_etag", "if_exists", "if_absent", "token")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    UPLOAD_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    IF_ETAG_FIELD_NUMBER: _ClassVar[int]
    IF_EXISTS_FIELD_NUMBER: _ClassVar[int]
    IF_ABSENT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    name: str
    upload: str
    bytes: int
    sha256: str
    if_version: int
    if_etag: str
    if_exists: bool
    if_absent: bool
    token: str
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ..., name: _Optional[str] = ..., upload: _Optional[str] = ..., bytes: _Optional[int] = ..., sha256: _Optional[str] = ..., if_version: _Optional[int] = ..., if_etag: _Optional[str] = ..., if_exists: bool = ..., if_absent: bool = ..., token: _Optional[str] = ...) -> None: ...

class EndUploadRequest(_message.Message):
    __slots__ = ("namespace", "key", "upload")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    UPLOAD_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    upload: str
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ..., upload: _Optional[str] = ...) -> None: ...

class EndUploadResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Attachment(_message.Message):
    __slots__ = ("name", "version", "etag", "changed_at_ms", "bytes", "sha256", "content_type")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    CHANGED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: int
    etag: str
    changed_at_ms: int
    bytes: int
    sha256: str
    content_type: str
    def __init__(self, name: _Optional[str] = ..., version: _Optional[int] = ..., etag: _Optional[str] = ..., changed_at_ms: _Optional[int] = ..., bytes: _Optional[int] = ..., sha256: _Optional[str] = ..., content_type: _Optional[str] = ...) -> None: ...

class ReadAttachmentRequest(_message.Message):
    __slots__ = ("namespace", "key", "name", "offset")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    name: str
    offset: int
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ..., name: _Optional[str] = ..., offset: _Optional[int] = ...) -> None: ...

class ReadAttachmentResponse(_message.Message):
    __slots__ = ("attachment", "offset", "content")
    ATTACHMENT_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    attachment: Attachment
    offset: int
    content: bytes
    def __init__(self, attachment: _Optional[_Union[Attachment, _Mapping]] = ..., offset: _Optional[int] = ..., content: _Optional[bytes] = ...) -> None: ...

class UploadAttachmentRequest(_message.Message):
    __slots__ = ("namespace", "key", "name", "content_type", "sha256", "if_version", "if_etag", "if_exists", "if_absent", "token", "content")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    IF_ETAG_FIELD_NUMBER: _ClassVar[int]
    IF_EXISTS_FIELD_NUMBER: _ClassVar[int]
    IF_ABSENT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    name: str
    content_type: str
    sha256: str
    if_version: int
    if_etag: str
    if_exists: bool
    if_absent: bool
    token: str
    content: bytes
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ..., name: _Optional[str] = ..., content_type: _Optional[str] = ..., sha256: _Optional[str] = ..., if_version: _Optional[int] = ..., if_etag: _Optional[str] = ..., if_exists: bool = ..., if_absent: bool = ..., token: _Optional[str] = ..., content: _Optional[bytes] = ...) -> None: ...

class DownloadAttachmentRequest(_message.Message):
    __slots__ = ("namespace", "key", "name", "offset", "bytes", "if_etag")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    IF_ETAG_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    name: str
    offset: int
    bytes: int
    if_etag: str
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ..., name: _Optional[str] = ..., offset: _Optional[int] = ..., bytes: _Optional[int] = ..., if_etag: _Optional[str] = ...) -> None: ...

class ListAttachmentsRequest(_message.Message):
    __slots__ = ("namespace", "key", "after", "limit", "stale")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    after: str
    limit: int
    stale: bool
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ..., after: _Optional[str] = ..., limit: _Optional[int] = ..., stale: bool = ...) -> None: ...

class ListAttachmentsResponse(_message.Message):
    __slots__ = ("attachments", "next")
    ATTACHMENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    attachments: _containers.RepeatedCompositeFieldContainer[Attachment]
    next: str
    def __init__(self, attachments: _Optional[_Iterable[_Union[Attachment, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class DeleteAttachmentRequest(_message.Message):
    __slots__ = ("namespace", "key", "name", "if_version", "if_etag", "token")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    IF_ETAG_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    name: str
    if_version: int
    if_etag: str
    token: str
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ..., name: _Optional[str] = ..., if_version: _Optional[int] = ..., if_etag: _Optional[str] = ..., token: _Optional[str] = ...) -> None: ...

class DeleteAttachmentResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
