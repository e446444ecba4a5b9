from . import common_pb2 as _common_pb2
from . import messages_pb2 as _messages_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListBulksRequest(_message.Message):
    __slots__ = ("namespace",)
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    def __init__(self, namespace: _Optional[str] = ...) -> None: ...

class ListBulksResponse(_message.Message):
    __slots__ = ("bulks",)
    BULKS_FIELD_NUMBER: _ClassVar[int]
    bulks: _containers.RepeatedCompositeFieldContainer[Bulk]
    def __init__(self, bulks: _Optional[_Iterable[_Union[Bulk, _Mapping]]] = ...) -> None: ...

class StartBulkRequest(_message.Message):
    __slots__ = ("namespace", "action", "filter", "dry_run", "by", "why", "to", "priority", "delay_ms", "deliver_at_ms", "max_attempts", "tags", "cost", "per_second")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    DELIVER_AT_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    action: str
    filter: BulkFilter
    dry_run: bool
    by: str
    why: str
    to: str
    priority: int
    delay_ms: int
    deliver_at_ms: int
    max_attempts: int
    tags: _messages_pb2.TagList
    cost: int
    per_second: int
    def __init__(self, namespace: _Optional[str] = ..., action: _Optional[str] = ..., filter: _Optional[_Union[BulkFilter, _Mapping]] = ..., dry_run: bool = ..., by: _Optional[str] = ..., why: _Optional[str] = ..., to: _Optional[str] = ..., priority: _Optional[int] = ..., delay_ms: _Optional[int] = ..., deliver_at_ms: _Optional[int] = ..., max_attempts: _Optional[int] = ..., tags: _Optional[_Union[_messages_pb2.TagList, _Mapping]] = ..., cost: _Optional[int] = ..., per_second: _Optional[int] = ...) -> None: ...

class BulkFilter(_message.Message):
    __slots__ = ("queue", "where")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    where: str
    def __init__(self, queue: _Optional[str] = ..., where: _Optional[str] = ...) -> None: ...

class StartBulkResponse(_message.Message):
    __slots__ = ("bulk",)
    BULK_FIELD_NUMBER: _ClassVar[int]
    bulk: str
    def __init__(self, bulk: _Optional[str] = ...) -> None: ...

class BulkRequest(_message.Message):
    __slots__ = ("namespace", "bulk")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    BULK_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    bulk: str
    def __init__(self, namespace: _Optional[str] = ..., bulk: _Optional[str] = ...) -> None: ...

class Bulk(_message.Message):
    __slots__ = ("bulk", "state", "action", "to", "filter", "dry_run", "by", "why", "total", "scanned", "matched", "changed", "skipped", "started_at_ms", "ended_at_ms", "error", "per_second")
    BULK_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    SCANNED_FIELD_NUMBER: _ClassVar[int]
    MATCHED_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    bulk: str
    state: str
    action: str
    to: str
    filter: BulkFilter
    dry_run: bool
    by: str
    why: str
    total: int
    scanned: int
    matched: int
    changed: int
    skipped: int
    started_at_ms: int
    ended_at_ms: int
    error: _common_pb2.Error
    per_second: int
    def __init__(self, bulk: _Optional[str] = ..., state: _Optional[str] = ..., action: _Optional[str] = ..., to: _Optional[str] = ..., filter: _Optional[_Union[BulkFilter, _Mapping]] = ..., dry_run: bool = ..., by: _Optional[str] = ..., why: _Optional[str] = ..., total: _Optional[int] = ..., scanned: _Optional[int] = ..., matched: _Optional[int] = ..., changed: _Optional[int] = ..., skipped: _Optional[int] = ..., started_at_ms: _Optional[int] = ..., ended_at_ms: _Optional[int] = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ..., per_second: _Optional[int] = ...) -> None: ...
