from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListNamespacesRequest(_message.Message):
    __slots__ = ("all", "stale")
    ALL_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    all: bool
    stale: bool
    def __init__(self, all: bool = ..., stale: bool = ...) -> None: ...

class ListNamespacesResponse(_message.Message):
    __slots__ = ("namespaces",)
    NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    namespaces: _containers.RepeatedCompositeFieldContainer[Namespace]
    def __init__(self, namespaces: _Optional[_Iterable[_Union[Namespace, _Mapping]]] = ...) -> None: ...

class NamespaceRequest(_message.Message):
    __slots__ = ("namespace", "stale")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    stale: bool
    def __init__(self, namespace: _Optional[str] = ..., stale: bool = ...) -> None: ...

class PutNamespaceRequest(_message.Message):
    __slots__ = ("namespace", "quotas", "shard")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    QUOTAS_FIELD_NUMBER: _ClassVar[int]
    SHARD_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    quotas: Quotas
    shard: int
    def __init__(self, namespace: _Optional[str] = ..., quotas: _Optional[_Union[Quotas, _Mapping]] = ..., shard: _Optional[int] = ...) -> None: ...

class ChangeNamespaceRequest(_message.Message):
    __slots__ = ("namespace", "quotas")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    QUOTAS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    quotas: Quotas
    def __init__(self, namespace: _Optional[str] = ..., quotas: _Optional[_Union[Quotas, _Mapping]] = ...) -> None: ...

class DeleteNamespaceRequest(_message.Message):
    __slots__ = ("namespace", "force")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    force: bool
    def __init__(self, namespace: _Optional[str] = ..., force: bool = ...) -> None: ...

class DeleteNamespaceResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Quotas(_message.Message):
    __slots__ = ("queues", "messages", "bytes")
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    queues: int
    messages: int
    bytes: int
    def __init__(self, queues: _Optional[int] = ..., messages: _Optional[int] = ..., bytes: _Optional[int] = ...) -> None: ...

class Namespace(_message.Message):
    __slots__ = ("name", "shard", "quotas", "queues", "messages", "bytes", "created_at_ms")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SHARD_FIELD_NUMBER: _ClassVar[int]
    QUOTAS_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    name: str
    shard: int
    quotas: Quotas
    queues: int
    messages: int
    bytes: int
    created_at_ms: int
    def __init__(self, name: _Optional[str] = ..., shard: _Optional[int] = ..., quotas: _Optional[_Union[Quotas, _Mapping]] = ..., queues: _Optional[int] = ..., messages: _Optional[int] = ..., bytes: _Optional[int] = ..., created_at_ms: _Optional[int] = ...) -> None: ...
