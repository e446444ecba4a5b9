from . import documents_pb2 as _documents_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AcquireLockRequest(_message.Message):
    __slots__ = ("namespace", "key", "keys", "owner", "mode", "holders", "ttl_ms", "wait_ms", "request_id", "with_document", "if_absent")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    HOLDERS_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    WITH_DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    IF_ABSENT_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    keys: _containers.RepeatedScalarFieldContainer[str]
    owner: str
    mode: str
    holders: int
    ttl_ms: int
    wait_ms: int
    request_id: str
    with_document: bool
    if_absent: bool
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ..., keys: _Optional[_Iterable[str]] = ..., owner: _Optional[str] = ..., mode: _Optional[str] = ..., holders: _Optional[int] = ..., ttl_ms: _Optional[int] = ..., wait_ms: _Optional[int] = ..., request_id: _Optional[str] = ..., with_document: bool = ..., if_absent: bool = ...) -> None: ...

class AcquireLockResponse(_message.Message):
    __slots__ = ("token", "fencing_token", "expires_at_ms", "document")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    FENCING_TOKEN_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_MS_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    token: str
    fencing_token: str
    expires_at_ms: int
    document: _documents_pb2.Document
    def __init__(self, token: _Optional[str] = ..., fencing_token: _Optional[str] = ..., expires_at_ms: _Optional[int] = ..., document: _Optional[_Union[_documents_pb2.Document, _Mapping]] = ...) -> None: ...

class LockGrant(_message.Message):
    __slots__ = ("token", "fencing_token", "expires_at_ms")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    FENCING_TOKEN_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_MS_FIELD_NUMBER: _ClassVar[int]
    token: str
    fencing_token: str
    expires_at_ms: int
    def __init__(self, token: _Optional[str] = ..., fencing_token: _Optional[str] = ..., expires_at_ms: _Optional[int] = ...) -> None: ...

class RenewLockRequest(_message.Message):
    __slots__ = ("namespace", "token", "ttl_ms")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    token: str
    ttl_ms: int
    def __init__(self, namespace: _Optional[str] = ..., token: _Optional[str] = ..., ttl_ms: _Optional[int] = ...) -> None: ...

class ReleaseLockRequest(_message.Message):
    __slots__ = ("namespace", "token")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    token: str
    def __init__(self, namespace: _Optional[str] = ..., token: _Optional[str] = ...) -> None: ...

class ReleaseLockResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListLocksRequest(_message.Message):
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

class ListLocksResponse(_message.Message):
    __slots__ = ("locks", "next")
    LOCKS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    locks: _containers.RepeatedCompositeFieldContainer[Lock]
    next: str
    def __init__(self, locks: _Optional[_Iterable[_Union[Lock, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class ShowLockRequest(_message.Message):
    __slots__ = ("namespace", "key", "stale")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    stale: bool
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ..., stale: bool = ...) -> None: ...

class Lock(_message.Message):
    __slots__ = ("key", "holder_count", "waiter_count", "holders", "waiters")
    KEY_FIELD_NUMBER: _ClassVar[int]
    HOLDER_COUNT_FIELD_NUMBER: _ClassVar[int]
    WAITER_COUNT_FIELD_NUMBER: _ClassVar[int]
    HOLDERS_FIELD_NUMBER: _ClassVar[int]
    WAITERS_FIELD_NUMBER: _ClassVar[int]
    key: str
    holder_count: int
    waiter_count: int
    holders: _containers.RepeatedCompositeFieldContainer[LockHolder]
    waiters: _containers.RepeatedCompositeFieldContainer[LockWaiter]
    def __init__(self, key: _Optional[str] = ..., holder_count: _Optional[int] = ..., waiter_count: _Optional[int] = ..., holders: _Optional[_Iterable[_Union[LockHolder, _Mapping]]] = ..., waiters: _Optional[_Iterable[_Union[LockWaiter, _Mapping]]] = ...) -> None: ...

class WatchLockRequest(_message.Message):
    __slots__ = ("namespace", "key")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ...) -> None: ...

class WatchLockResponse(_message.Message):
    __slots__ = ("key", "holder_count", "waiter_count", "holders", "waiters")
    KEY_FIELD_NUMBER: _ClassVar[int]
    HOLDER_COUNT_FIELD_NUMBER: _ClassVar[int]
    WAITER_COUNT_FIELD_NUMBER: _ClassVar[int]
    HOLDERS_FIELD_NUMBER: _ClassVar[int]
    WAITERS_FIELD_NUMBER: _ClassVar[int]
    key: str
    holder_count: int
    waiter_count: int
    holders: _containers.RepeatedCompositeFieldContainer[LockHolder]
    waiters: _containers.RepeatedCompositeFieldContainer[LockWaiter]
    def __init__(self, key: _Optional[str] = ..., holder_count: _Optional[int] = ..., waiter_count: _Optional[int] = ..., holders: _Optional[_Iterable[_Union[LockHolder, _Mapping]]] = ..., waiters: _Optional[_Iterable[_Union[LockWaiter, _Mapping]]] = ...) -> None: ...

class LockHolder(_message.Message):
    __slots__ = ("owner", "mode", "fencing_token", "expires_at_ms", "keys")
    OWNER_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    FENCING_TOKEN_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_MS_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    owner: str
    mode: str
    fencing_token: str
    expires_at_ms: int
    keys: int
    def __init__(self, owner: _Optional[str] = ..., mode: _Optional[str] = ..., fencing_token: _Optional[str] = ..., expires_at_ms: _Optional[int] = ..., keys: _Optional[int] = ...) -> None: ...

class LockWaiter(_message.Message):
    __slots__ = ("owner", "mode", "keys")
    OWNER_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    owner: str
    mode: str
    keys: int
    def __init__(self, owner: _Optional[str] = ..., mode: _Optional[str] = ..., keys: _Optional[int] = ...) -> None: ...

class BreakLockRequest(_message.Message):
    __slots__ = ("namespace", "key")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ...) -> None: ...

class BreakLockResponse(_message.Message):
    __slots__ = ("holders",)
    HOLDERS_FIELD_NUMBER: _ClassVar[int]
    holders: int
    def __init__(self, holders: _Optional[int] = ...) -> None: ...
