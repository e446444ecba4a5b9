from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Header(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class Backoff(_message.Message):
    __slots__ = ("kind", "base_ms", "cap_ms", "jitter_percent")
    KIND_FIELD_NUMBER: _ClassVar[int]
    BASE_MS_FIELD_NUMBER: _ClassVar[int]
    CAP_MS_FIELD_NUMBER: _ClassVar[int]
    JITTER_PERCENT_FIELD_NUMBER: _ClassVar[int]
    kind: str
    base_ms: int
    cap_ms: int
    jitter_percent: int
    def __init__(self, kind: _Optional[str] = ..., base_ms: _Optional[int] = ..., cap_ms: _Optional[int] = ..., jitter_percent: _Optional[int] = ...) -> None: ...

class Unique(_message.Message):
    __slots__ = ("key", "window_ms", "until", "on_duplicate")
    KEY_FIELD_NUMBER: _ClassVar[int]
    WINDOW_MS_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    ON_DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    key: str
    window_ms: int
    until: str
    on_duplicate: str
    def __init__(self, key: _Optional[str] = ..., window_ms: _Optional[int] = ..., until: _Optional[str] = ..., on_duplicate: _Optional[str] = ...) -> None: ...

class Message(_message.Message):
    __slots__ = ("payload", "content_type", "headers", "tags", "priority", "delay_ms", "deliver_at_ms", "max_attempts", "backoff", "ordering_key", "fair_key", "limit_key", "unique", "ttl_ms", "expires_at_ms", "result_ttl_ms", "correlation_id", "reply_to", "hold", "depends_on", "depends_mode", "on_parent_failed", "chain", "on_failure", "cost")
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    DELIVER_AT_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    BACKOFF_FIELD_NUMBER: _ClassVar[int]
    ORDERING_KEY_FIELD_NUMBER: _ClassVar[int]
    FAIR_KEY_FIELD_NUMBER: _ClassVar[int]
    LIMIT_KEY_FIELD_NUMBER: _ClassVar[int]
    UNIQUE_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_MS_FIELD_NUMBER: _ClassVar[int]
    RESULT_TTL_MS_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    REPLY_TO_FIELD_NUMBER: _ClassVar[int]
    HOLD_FIELD_NUMBER: _ClassVar[int]
    DEPENDS_ON_FIELD_NUMBER: _ClassVar[int]
    DEPENDS_MODE_FIELD_NUMBER: _ClassVar[int]
    ON_PARENT_FAILED_FIELD_NUMBER: _ClassVar[int]
    CHAIN_FIELD_NUMBER: _ClassVar[int]
    ON_FAILURE_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    payload: bytes
    content_type: str
    headers: _containers.RepeatedCompositeFieldContainer[Header]
    tags: _containers.RepeatedScalarFieldContainer[str]
    priority: int
    delay_ms: int
    deliver_at_ms: int
    max_attempts: int
    backoff: Backoff
    ordering_key: str
    fair_key: str
    limit_key: str
    unique: Unique
    ttl_ms: int
    expires_at_ms: int
    result_ttl_ms: int
    correlation_id: str
    reply_to: str
    hold: bool
    depends_on: _containers.RepeatedScalarFieldContainer[str]
    depends_mode: str
    on_parent_failed: str
    chain: _containers.RepeatedCompositeFieldContainer[Step]
    on_failure: Step
    cost: int
    def __init__(self, payload: _Optional[bytes] = ..., content_type: _Optional[str] = ..., headers: _Optional[_Iterable[_Union[Header, _Mapping]]] = ..., tags: _Optional[_Iterable[str]] = ..., priority: _Optional[int] = ..., delay_ms: _Optional[int] = ..., deliver_at_ms: _Optional[int] = ..., max_attempts: _Optional[int] = ..., backoff: _Optional[_Union[Backoff, _Mapping]] = ..., ordering_key: _Optional[str] = ..., fair_key: _Optional[str] = ..., limit_key: _Optional[str] = ..., unique: _Optional[_Union[Unique, _Mapping]] = ..., ttl_ms: _Optional[int] = ..., expires_at_ms: _Optional[int] = ..., result_ttl_ms: _Optional[int] = ..., correlation_id: _Optional[str] = ..., reply_to: _Optional[str] = ..., hold: bool = ..., depends_on: _Optional[_Iterable[str]] = ..., depends_mode: _Optional[str] = ..., on_parent_failed: _Optional[str] = ..., chain: _Optional[_Iterable[_Union[Step, _Mapping]]] = ..., on_failure: _Optional[_Union[Step, _Mapping]] = ..., cost: _Optional[int] = ...) -> None: ...

class Step(_message.Message):
    __slots__ = ("payload", "content_type", "headers", "tags", "priority", "delay_ms", "deliver_at_ms", "max_attempts", "backoff", "ordering_key", "fair_key", "limit_key", "ttl_ms", "expires_at_ms", "result_ttl_ms", "correlation_id", "reply_to", "hold", "queue", "cost")
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    DELIVER_AT_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    BACKOFF_FIELD_NUMBER: _ClassVar[int]
    ORDERING_KEY_FIELD_NUMBER: _ClassVar[int]
    FAIR_KEY_FIELD_NUMBER: _ClassVar[int]
    LIMIT_KEY_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_MS_FIELD_NUMBER: _ClassVar[int]
    RESULT_TTL_MS_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    REPLY_TO_FIELD_NUMBER: _ClassVar[int]
    HOLD_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    payload: bytes
    content_type: str
    headers: _containers.RepeatedCompositeFieldContainer[Header]
    tags: _containers.RepeatedScalarFieldContainer[str]
    priority: int
    delay_ms: int
    deliver_at_ms: int
    max_attempts: int
    backoff: Backoff
    ordering_key: str
    fair_key: str
    limit_key: str
    ttl_ms: int
    expires_at_ms: int
    result_ttl_ms: int
    correlation_id: str
    reply_to: str
    hold: bool
    queue: str
    cost: int
    def __init__(self, payload: _Optional[bytes] = ..., content_type: _Optional[str] = ..., headers: _Optional[_Iterable[_Union[Header, _Mapping]]] = ..., tags: _Optional[_Iterable[str]] = ..., priority: _Optional[int] = ..., delay_ms: _Optional[int] = ..., deliver_at_ms: _Optional[int] = ..., max_attempts: _Optional[int] = ..., backoff: _Optional[_Union[Backoff, _Mapping]] = ..., ordering_key: _Optional[str] = ..., fair_key: _Optional[str] = ..., limit_key: _Optional[str] = ..., ttl_ms: _Optional[int] = ..., expires_at_ms: _Optional[int] = ..., result_ttl_ms: _Optional[int] = ..., correlation_id: _Optional[str] = ..., reply_to: _Optional[str] = ..., hold: bool = ..., queue: _Optional[str] = ..., cost: _Optional[int] = ...) -> None: ...

class Delivered(_message.Message):
    __slots__ = ("id", "receipt", "queue", "payload", "content_type", "headers", "tags", "priority", "attempt", "max_attempts", "deliveries", "sent_at_ms", "lease_until_ms", "from_queue", "reason", "correlation_id", "reply_to", "checkpoint", "checkpoint_content_type")
    ID_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    SENT_AT_MS_FIELD_NUMBER: _ClassVar[int]
    LEASE_UNTIL_MS_FIELD_NUMBER: _ClassVar[int]
    FROM_QUEUE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    REPLY_TO_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    id: str
    receipt: str
    queue: str
    payload: bytes
    content_type: str
    headers: _containers.RepeatedCompositeFieldContainer[Header]
    tags: _containers.RepeatedScalarFieldContainer[str]
    priority: int
    attempt: int
    max_attempts: int
    deliveries: int
    sent_at_ms: int
    lease_until_ms: int
    from_queue: str
    reason: str
    correlation_id: str
    reply_to: str
    checkpoint: bytes
    checkpoint_content_type: str
    def __init__(self, id: _Optional[str] = ..., receipt: _Optional[str] = ..., queue: _Optional[str] = ..., payload: _Optional[bytes] = ..., content_type: _Optional[str] = ..., headers: _Optional[_Iterable[_Union[Header, _Mapping]]] = ..., tags: _Optional[_Iterable[str]] = ..., priority: _Optional[int] = ..., attempt: _Optional[int] = ..., max_attempts: _Optional[int] = ..., deliveries: _Optional[int] = ..., sent_at_ms: _Optional[int] = ..., lease_until_ms: _Optional[int] = ..., from_queue: _Optional[str] = ..., reason: _Optional[str] = ..., correlation_id: _Optional[str] = ..., reply_to: _Optional[str] = ..., checkpoint: _Optional[bytes] = ..., checkpoint_content_type: _Optional[str] = ...) -> None: ...

class Settlement(_message.Message):
    __slots__ = ("receipt", "outcome", "error", "delay_ms", "result", "result_content_type", "add_cost")
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    RESULT_CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    ADD_COST_FIELD_NUMBER: _ClassVar[int]
    receipt: str
    outcome: str
    error: str
    delay_ms: int
    result: bytes
    result_content_type: str
    add_cost: int
    def __init__(self, receipt: _Optional[str] = ..., outcome: _Optional[str] = ..., error: _Optional[str] = ..., delay_ms: _Optional[int] = ..., result: _Optional[bytes] = ..., result_content_type: _Optional[str] = ..., add_cost: _Optional[int] = ...) -> None: ...

class Extension(_message.Message):
    __slots__ = ("receipt", "lease_ms", "progress", "checkpoint", "add_cost")
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    ADD_COST_FIELD_NUMBER: _ClassVar[int]
    receipt: str
    lease_ms: int
    progress: Report
    checkpoint: bytes
    add_cost: int
    def __init__(self, receipt: _Optional[str] = ..., lease_ms: _Optional[int] = ..., progress: _Optional[_Union[Report, _Mapping]] = ..., checkpoint: _Optional[bytes] = ..., add_cost: _Optional[int] = ...) -> None: ...

class Report(_message.Message):
    __slots__ = ("percent", "note")
    PERCENT_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    percent: int
    note: str
    def __init__(self, percent: _Optional[int] = ..., note: _Optional[str] = ...) -> None: ...

class Error(_message.Message):
    __slots__ = ("code", "message", "details")
    class DetailsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    code: str
    message: str
    details: _containers.ScalarMap[str, str]
    def __init__(self, code: _Optional[str] = ..., message: _Optional[str] = ..., details: _Optional[_Mapping[str, str]] = ...) -> None: ...
