from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class WatchRequest(_message.Message):
    __slots__ = ("namespace", "types", "queue", "after")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    types: str
    queue: str
    after: str
    def __init__(self, namespace: _Optional[str] = ..., types: _Optional[str] = ..., queue: _Optional[str] = ..., after: _Optional[str] = ...) -> None: ...

class WatchQueueRequest(_message.Message):
    __slots__ = ("namespace", "queue", "types", "after")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    queue: str
    types: str
    after: str
    def __init__(self, namespace: _Optional[str] = ..., queue: _Optional[str] = ..., types: _Optional[str] = ..., after: _Optional[str] = ...) -> None: ...

class WatchResponse(_message.Message):
    __slots__ = ("position", "type", "at_ms", "queue", "id", "attempt", "lease_until_ms", "consumer", "ready_at_ms", "reason", "from_queue", "messages", "lost")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    LEASE_UNTIL_MS_FIELD_NUMBER: _ClassVar[int]
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    READY_AT_MS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    FROM_QUEUE_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    position: str
    type: str
    at_ms: int
    queue: str
    id: str
    attempt: int
    lease_until_ms: int
    consumer: str
    ready_at_ms: int
    reason: str
    from_queue: str
    messages: int
    lost: int
    def __init__(self, position: _Optional[str] = ..., type: _Optional[str] = ..., at_ms: _Optional[int] = ..., queue: _Optional[str] = ..., id: _Optional[str] = ..., attempt: _Optional[int] = ..., lease_until_ms: _Optional[int] = ..., consumer: _Optional[str] = ..., ready_at_ms: _Optional[int] = ..., reason: _Optional[str] = ..., from_queue: _Optional[str] = ..., messages: _Optional[int] = ..., lost: _Optional[int] = ...) -> None: ...
