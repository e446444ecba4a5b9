from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListConsumersRequest(_message.Message):
    __slots__ = ("namespace", "after", "limit", "stale")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    after: str
    limit: int
    stale: bool
    def __init__(self, namespace: _Optional[str] = ..., after: _Optional[str] = ..., limit: _Optional[int] = ..., stale: bool = ...) -> None: ...

class ListConsumersResponse(_message.Message):
    __slots__ = ("consumers", "next")
    CONSUMERS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    consumers: _containers.RepeatedCompositeFieldContainer[Consumer]
    next: str
    def __init__(self, consumers: _Optional[_Iterable[_Union[Consumer, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class GetConsumerRequest(_message.Message):
    __slots__ = ("namespace", "consumer", "limit", "stale")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    consumer: str
    limit: int
    stale: bool
    def __init__(self, namespace: _Optional[str] = ..., consumer: _Optional[str] = ..., limit: _Optional[int] = ..., stale: bool = ...) -> None: ...

class Consumer(_message.Message):
    __slots__ = ("id", "name", "state", "queues", "credit", "in_flight", "lease_ms", "since_at_ms", "oldest_leased_at_ms", "holds")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    SINCE_AT_MS_FIELD_NUMBER: _ClassVar[int]
    OLDEST_LEASED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    HOLDS_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    state: str
    queues: _containers.RepeatedScalarFieldContainer[str]
    credit: int
    in_flight: int
    lease_ms: int
    since_at_ms: int
    oldest_leased_at_ms: int
    holds: _containers.RepeatedCompositeFieldContainer[HeldMessage]
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., state: _Optional[str] = ..., queues: _Optional[_Iterable[str]] = ..., credit: _Optional[int] = ..., in_flight: _Optional[int] = ..., lease_ms: _Optional[int] = ..., since_at_ms: _Optional[int] = ..., oldest_leased_at_ms: _Optional[int] = ..., holds: _Optional[_Iterable[_Union[HeldMessage, _Mapping]]] = ...) -> None: ...

class HeldMessage(_message.Message):
    __slots__ = ("id", "queue", "attempt", "leased_at_ms", "lease_until_ms")
    ID_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    LEASED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    LEASE_UNTIL_MS_FIELD_NUMBER: _ClassVar[int]
    id: str
    queue: str
    attempt: int
    leased_at_ms: int
    lease_until_ms: int
    def __init__(self, id: _Optional[str] = ..., queue: _Optional[str] = ..., attempt: _Optional[int] = ..., leased_at_ms: _Optional[int] = ..., lease_until_ms: _Optional[int] = ...) -> None: ...

class DetachConsumerRequest(_message.Message):
    __slots__ = ("namespace", "consumer", "grace_ms")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    GRACE_MS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    consumer: str
    grace_ms: int
    def __init__(self, namespace: _Optional[str] = ..., consumer: _Optional[str] = ..., grace_ms: _Optional[int] = ...) -> None: ...

class DetachConsumerResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
