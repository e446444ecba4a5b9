from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListLimitsRequest(_message.Message):
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

class ListLimitsResponse(_message.Message):
    __slots__ = ("limits", "next")
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    limits: _containers.RepeatedCompositeFieldContainer[Limit]
    next: str
    def __init__(self, limits: _Optional[_Iterable[_Union[Limit, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class GetLimitRequest(_message.Message):
    __slots__ = ("namespace", "name", "key", "waiting", "cursor", "limit", "stale")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    key: str
    waiting: bool
    cursor: str
    limit: int
    stale: bool
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., key: _Optional[str] = ..., waiting: bool = ..., cursor: _Optional[str] = ..., limit: _Optional[int] = ..., stale: bool = ...) -> None: ...

class PutLimitRequest(_message.Message):
    __slots__ = ("namespace", "name", "in_flight", "in_flight_per_key", "rate", "rate_per_key")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_PER_KEY_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    RATE_PER_KEY_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    in_flight: int
    in_flight_per_key: int
    rate: Rate
    rate_per_key: Rate
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., in_flight: _Optional[int] = ..., in_flight_per_key: _Optional[int] = ..., rate: _Optional[_Union[Rate, _Mapping]] = ..., rate_per_key: _Optional[_Union[Rate, _Mapping]] = ...) -> None: ...

class Rate(_message.Message):
    __slots__ = ("count", "period_ms", "burst")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    PERIOD_MS_FIELD_NUMBER: _ClassVar[int]
    BURST_FIELD_NUMBER: _ClassVar[int]
    count: int
    period_ms: int
    burst: int
    def __init__(self, count: _Optional[int] = ..., period_ms: _Optional[int] = ..., burst: _Optional[int] = ...) -> None: ...

class LimitSettings(_message.Message):
    __slots__ = ("in_flight", "in_flight_per_key", "rate", "rate_per_key")
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_PER_KEY_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    RATE_PER_KEY_FIELD_NUMBER: _ClassVar[int]
    in_flight: int
    in_flight_per_key: int
    rate: Rate
    rate_per_key: Rate
    def __init__(self, in_flight: _Optional[int] = ..., in_flight_per_key: _Optional[int] = ..., rate: _Optional[_Union[Rate, _Mapping]] = ..., rate_per_key: _Optional[_Union[Rate, _Mapping]] = ...) -> None: ...

class Limit(_message.Message):
    __slots__ = ("name", "settings", "queues", "in_flight", "waiting", "next_at_ms", "keys", "next", "spent")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    NEXT_AT_MS_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    SPENT_FIELD_NUMBER: _ClassVar[int]
    name: str
    settings: LimitSettings
    queues: _containers.RepeatedScalarFieldContainer[str]
    in_flight: int
    waiting: int
    next_at_ms: int
    keys: _containers.RepeatedCompositeFieldContainer[LimitKey]
    next: str
    spent: int
    def __init__(self, name: _Optional[str] = ..., settings: _Optional[_Union[LimitSettings, _Mapping]] = ..., queues: _Optional[_Iterable[str]] = ..., in_flight: _Optional[int] = ..., waiting: _Optional[int] = ..., next_at_ms: _Optional[int] = ..., keys: _Optional[_Iterable[_Union[LimitKey, _Mapping]]] = ..., next: _Optional[str] = ..., spent: _Optional[int] = ...) -> None: ...

class LimitKey(_message.Message):
    __slots__ = ("key", "in_flight", "waiting", "next_at_ms", "spent")
    KEY_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    NEXT_AT_MS_FIELD_NUMBER: _ClassVar[int]
    SPENT_FIELD_NUMBER: _ClassVar[int]
    key: str
    in_flight: int
    waiting: int
    next_at_ms: int
    spent: int
    def __init__(self, key: _Optional[str] = ..., in_flight: _Optional[int] = ..., waiting: _Optional[int] = ..., next_at_ms: _Optional[int] = ..., spent: _Optional[int] = ...) -> None: ...

class DeleteLimitRequest(_message.Message):
    __slots__ = ("namespace", "name")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class DeleteLimitResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
