from . import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ScheduleRequest(_message.Message):
    __slots__ = ("namespace", "schedule")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    schedule: str
    def __init__(self, namespace: _Optional[str] = ..., schedule: _Optional[str] = ...) -> None: ...

class GetScheduleRequest(_message.Message):
    __slots__ = ("namespace", "schedule", "stale")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    schedule: str
    stale: bool
    def __init__(self, namespace: _Optional[str] = ..., schedule: _Optional[str] = ..., stale: bool = ...) -> None: ...

class ListSchedulesRequest(_message.Message):
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

class ListSchedulesResponse(_message.Message):
    __slots__ = ("schedules", "next")
    SCHEDULES_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    schedules: _containers.RepeatedCompositeFieldContainer[Schedule]
    next: str
    def __init__(self, schedules: _Optional[_Iterable[_Union[Schedule, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class PutScheduleRequest(_message.Message):
    __slots__ = ("namespace", "schedule", "cron", "time_zone", "every_ms", "missed", "queue", "message")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    CRON_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    EVERY_MS_FIELD_NUMBER: _ClassVar[int]
    MISSED_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    schedule: str
    cron: str
    time_zone: str
    every_ms: int
    missed: str
    queue: str
    message: _common_pb2.Message
    def __init__(self, namespace: _Optional[str] = ..., schedule: _Optional[str] = ..., cron: _Optional[str] = ..., time_zone: _Optional[str] = ..., every_ms: _Optional[int] = ..., missed: _Optional[str] = ..., queue: _Optional[str] = ..., message: _Optional[_Union[_common_pb2.Message, _Mapping]] = ...) -> None: ...

class Schedule(_message.Message):
    __slots__ = ("name", "cron", "time_zone", "every_ms", "missed", "queue", "paused", "next_at_ms", "fired", "duplicates", "refused", "last_at_ms", "last_id", "last_error", "created_at_ms", "message")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CRON_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    EVERY_MS_FIELD_NUMBER: _ClassVar[int]
    MISSED_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    NEXT_AT_MS_FIELD_NUMBER: _ClassVar[int]
    FIRED_FIELD_NUMBER: _ClassVar[int]
    DUPLICATES_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    LAST_AT_MS_FIELD_NUMBER: _ClassVar[int]
    LAST_ID_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    name: str
    cron: str
    time_zone: str
    every_ms: int
    missed: str
    queue: str
    paused: bool
    next_at_ms: int
    fired: int
    duplicates: int
    refused: int
    last_at_ms: int
    last_id: str
    last_error: str
    created_at_ms: int
    message: _common_pb2.Message
    def __init__(self, name: _Optional[str] = ..., cron: _Optional[str] = ..., time_zone: _Optional[str] = ..., every_ms: _Optional[int] = ..., missed: _Optional[str] = ..., queue: _Optional[str] = ..., paused: bool = ..., next_at_ms: _Optional[int] = ..., fired: _Optional[int] = ..., duplicates: _Optional[int] = ..., refused: _Optional[int] = ..., last_at_ms: _Optional[int] = ..., last_id: _Optional[str] = ..., last_error: _Optional[str] = ..., created_at_ms: _Optional[int] = ..., message: _Optional[_Union[_common_pb2.Message, _Mapping]] = ...) -> None: ...

class DeleteScheduleResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class NextRequest(_message.Message):
    __slots__ = ("namespace", "schedule", "count", "stale")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    schedule: str
    count: int
    stale: bool
    def __init__(self, namespace: _Optional[str] = ..., schedule: _Optional[str] = ..., count: _Optional[int] = ..., stale: bool = ...) -> None: ...

class NextResponse(_message.Message):
    __slots__ = ("next_at_ms",)
    NEXT_AT_MS_FIELD_NUMBER: _ClassVar[int]
    next_at_ms: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, next_at_ms: _Optional[_Iterable[int]] = ...) -> None: ...

class TriggerResponse(_message.Message):
    __slots__ = ("id", "duplicate")
    ID_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    id: str
    duplicate: bool
    def __init__(self, id: _Optional[str] = ..., duplicate: bool = ...) -> None: ...
