from . import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SendRequest(_message.Message):
    __slots__ = ("namespace", "queue", "messages", "idempotency_key")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    queue: str
    messages: _containers.RepeatedCompositeFieldContainer[_common_pb2.Message]
    idempotency_key: str
    def __init__(self, namespace: _Optional[str] = ..., queue: _Optional[str] = ..., messages: _Optional[_Iterable[_Union[_common_pb2.Message, _Mapping]]] = ..., idempotency_key: _Optional[str] = ...) -> None: ...

class SendResponse(_message.Message):
    __slots__ = ("ids", "duplicate", "duplicates")
    IDS_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    DUPLICATES_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[str]
    duplicate: bool
    duplicates: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, ids: _Optional[_Iterable[str]] = ..., duplicate: bool = ..., duplicates: _Optional[_Iterable[int]] = ...) -> None: ...

class ReceiveRequest(_message.Message):
    __slots__ = ("namespace", "queues", "max", "wait_ms", "lease_ms", "consumer", "transaction", "transaction_ttl_ms")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_TTL_MS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    queues: _containers.RepeatedCompositeFieldContainer[WeightedQueue]
    max: int
    wait_ms: int
    lease_ms: int
    consumer: str
    transaction: str
    transaction_ttl_ms: int
    def __init__(self, namespace: _Optional[str] = ..., queues: _Optional[_Iterable[_Union[WeightedQueue, _Mapping]]] = ..., max: _Optional[int] = ..., wait_ms: _Optional[int] = ..., lease_ms: _Optional[int] = ..., consumer: _Optional[str] = ..., transaction: _Optional[str] = ..., transaction_ttl_ms: _Optional[int] = ...) -> None: ...

class WeightedQueue(_message.Message):
    __slots__ = ("name", "weight")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    name: str
    weight: int
    def __init__(self, name: _Optional[str] = ..., weight: _Optional[int] = ...) -> None: ...

class ReceiveResponse(_message.Message):
    __slots__ = ("messages", "transaction", "expires_at_ms")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_MS_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[_common_pb2.Delivered]
    transaction: str
    expires_at_ms: int
    def __init__(self, messages: _Optional[_Iterable[_Union[_common_pb2.Delivered, _Mapping]]] = ..., transaction: _Optional[str] = ..., expires_at_ms: _Optional[int] = ...) -> None: ...

class SettleRequest(_message.Message):
    __slots__ = ("namespace", "items")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    items: _containers.RepeatedCompositeFieldContainer[_common_pb2.Settlement]
    def __init__(self, namespace: _Optional[str] = ..., items: _Optional[_Iterable[_Union[_common_pb2.Settlement, _Mapping]]] = ...) -> None: ...

class ExtendRequest(_message.Message):
    __slots__ = ("namespace", "items")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    items: _containers.RepeatedCompositeFieldContainer[_common_pb2.Extension]
    def __init__(self, namespace: _Optional[str] = ..., items: _Optional[_Iterable[_Union[_common_pb2.Extension, _Mapping]]] = ...) -> None: ...

class ResultsResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[ItemResult]
    def __init__(self, results: _Optional[_Iterable[_Union[ItemResult, _Mapping]]] = ...) -> None: ...

class ItemResult(_message.Message):
    __slots__ = ("ok", "already_settled", "error")
    OK_FIELD_NUMBER: _ClassVar[int]
    ALREADY_SETTLED_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ok: bool
    already_settled: bool
    error: _common_pb2.Error
    def __init__(self, ok: bool = ..., already_settled: bool = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ...) -> None: ...

class ListMessagesRequest(_message.Message):
    __slots__ = ("namespace", "queue", "state", "cursor", "limit", "payload", "stale")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    queue: str
    state: str
    cursor: str
    limit: int
    payload: bool
    stale: bool
    def __init__(self, namespace: _Optional[str] = ..., queue: _Optional[str] = ..., state: _Optional[str] = ..., cursor: _Optional[str] = ..., limit: _Optional[int] = ..., payload: bool = ..., stale: bool = ...) -> None: ...

class ListMessagesResponse(_message.Message):
    __slots__ = ("messages", "next")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[StoredMessage]
    next: str
    def __init__(self, messages: _Optional[_Iterable[_Union[StoredMessage, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class SearchMessagesRequest(_message.Message):
    __slots__ = ("namespace", "queue", "where", "cursor", "limit", "payload")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    queue: str
    where: str
    cursor: str
    limit: int
    payload: bool
    def __init__(self, namespace: _Optional[str] = ..., queue: _Optional[str] = ..., where: _Optional[str] = ..., cursor: _Optional[str] = ..., limit: _Optional[int] = ..., payload: bool = ...) -> None: ...

class SearchMessagesResponse(_message.Message):
    __slots__ = ("messages", "scanned", "total", "next", "index")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    SCANNED_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[StoredMessage]
    scanned: int
    total: int
    next: str
    index: str
    def __init__(self, messages: _Optional[_Iterable[_Union[StoredMessage, _Mapping]]] = ..., scanned: _Optional[int] = ..., total: _Optional[int] = ..., next: _Optional[str] = ..., index: _Optional[str] = ...) -> None: ...

class PeekRequest(_message.Message):
    __slots__ = ("namespace", "queue", "limit", "stale")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    queue: str
    limit: int
    stale: bool
    def __init__(self, namespace: _Optional[str] = ..., queue: _Optional[str] = ..., limit: _Optional[int] = ..., stale: bool = ...) -> None: ...

class PeekResponse(_message.Message):
    __slots__ = ("messages", "truncated")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[StoredMessage]
    truncated: bool
    def __init__(self, messages: _Optional[_Iterable[_Union[StoredMessage, _Mapping]]] = ..., truncated: bool = ...) -> None: ...

class GetMessageRequest(_message.Message):
    __slots__ = ("namespace", "id", "payload", "stale")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    id: str
    payload: bool
    stale: bool
    def __init__(self, namespace: _Optional[str] = ..., id: _Optional[str] = ..., payload: bool = ..., stale: bool = ...) -> None: ...

class StoredMessage(_message.Message):
    __slots__ = ("id", "queue", "state", "priority", "attempts", "max_attempts", "deliveries", "sent_at_ms", "deadline_ms", "receipt", "ordering_key", "fair_key", "limit_key", "unique_key", "expires_at_ms", "blocked_by", "cancelled", "version", "changes", "reason", "reason_at_ms", "from_queue", "backoff", "size_bytes", "history", "payload", "content_type", "headers", "tags", "correlation_id", "reply_to", "checkpoint", "checkpoint_content_type", "progress", "result", "result_content_type", "done_at_ms", "kept_until_ms", "holder", "payload_damaged", "cost")
    ID_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    SENT_AT_MS_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_MS_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    ORDERING_KEY_FIELD_NUMBER: _ClassVar[int]
    FAIR_KEY_FIELD_NUMBER: _ClassVar[int]
    LIMIT_KEY_FIELD_NUMBER: _ClassVar[int]
    UNIQUE_KEY_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_MS_FIELD_NUMBER: _ClassVar[int]
    BLOCKED_BY_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REASON_AT_MS_FIELD_NUMBER: _ClassVar[int]
    FROM_QUEUE_FIELD_NUMBER: _ClassVar[int]
    BACKOFF_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    REPLY_TO_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    RESULT_CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    DONE_AT_MS_FIELD_NUMBER: _ClassVar[int]
    KEPT_UNTIL_MS_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_DAMAGED_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    id: str
    queue: str
    state: str
    priority: int
    attempts: int
    max_attempts: int
    deliveries: int
    sent_at_ms: int
    deadline_ms: int
    receipt: str
    ordering_key: str
    fair_key: str
    limit_key: str
    unique_key: str
    expires_at_ms: int
    blocked_by: str
    cancelled: bool
    version: str
    changes: _containers.RepeatedCompositeFieldContainer[PastChange]
    reason: str
    reason_at_ms: int
    from_queue: str
    backoff: _common_pb2.Backoff
    size_bytes: int
    history: _containers.RepeatedCompositeFieldContainer[Attempt]
    payload: bytes
    content_type: str
    headers: _containers.RepeatedCompositeFieldContainer[_common_pb2.Header]
    tags: _containers.RepeatedScalarFieldContainer[str]
    correlation_id: str
    reply_to: str
    checkpoint: bytes
    checkpoint_content_type: str
    progress: Progress
    result: bytes
    result_content_type: str
    done_at_ms: int
    kept_until_ms: int
    holder: Holder
    payload_damaged: bool
    cost: int
    def __init__(self, id: _Optional[str] = ..., queue: _Optional[str] = ..., state: _Optional[str] = ..., priority: _Optional[int] = ..., attempts: _Optional[int] = ..., max_attempts: _Optional[int] = ..., deliveries: _Optional[int] = ..., sent_at_ms: _Optional[int] = ..., deadline_ms: _Optional[int] = ..., receipt: _Optional[str] = ..., ordering_key: _Optional[str] = ..., fair_key: _Optional[str] = ..., limit_key: _Optional[str] = ..., unique_key: _Optional[str] = ..., expires_at_ms: _Optional[int] = ..., blocked_by: _Optional[str] = ..., cancelled: bool = ..., version: _Optional[str] = ..., changes: _Optional[_Iterable[_Union[PastChange, _Mapping]]] = ..., reason: _Optional[str] = ..., reason_at_ms: _Optional[int] = ..., from_queue: _Optional[str] = ..., backoff: _Optional[_Union[_common_pb2.Backoff, _Mapping]] = ..., size_bytes: _Optional[int] = ..., history: _Optional[_Iterable[_Union[Attempt, _Mapping]]] = ..., payload: _Optional[bytes] = ..., content_type: _Optional[str] = ..., headers: _Optional[_Iterable[_Union[_common_pb2.Header, _Mapping]]] = ..., tags: _Optional[_Iterable[str]] = ..., correlation_id: _Optional[str] = ..., reply_to: _Optional[str] = ..., checkpoint: _Optional[bytes] = ..., checkpoint_content_type: _Optional[str] = ..., progress: _Optional[_Union[Progress, _Mapping]] = ..., result: _Optional[bytes] = ..., result_content_type: _Optional[str] = ..., done_at_ms: _Optional[int] = ..., kept_until_ms: _Optional[int] = ..., holder: _Optional[_Union[Holder, _Mapping]] = ..., payload_damaged: bool = ..., cost: _Optional[int] = ...) -> None: ...

class Attempt(_message.Message):
    __slots__ = ("attempt", "end", "started_at_ms", "ended_at_ms", "error")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    attempt: int
    end: str
    started_at_ms: int
    ended_at_ms: int
    error: str
    def __init__(self, attempt: _Optional[int] = ..., end: _Optional[str] = ..., started_at_ms: _Optional[int] = ..., ended_at_ms: _Optional[int] = ..., error: _Optional[str] = ...) -> None: ...

class PastChange(_message.Message):
    __slots__ = ("change", "at_ms", "by", "why")
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    change: str
    at_ms: int
    by: str
    why: str
    def __init__(self, change: _Optional[str] = ..., at_ms: _Optional[int] = ..., by: _Optional[str] = ..., why: _Optional[str] = ...) -> None: ...

class Holder(_message.Message):
    __slots__ = ("consumer", "name")
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    consumer: str
    name: str
    def __init__(self, consumer: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ("percent", "note", "at_ms")
    PERCENT_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    percent: int
    note: str
    at_ms: int
    def __init__(self, percent: _Optional[int] = ..., note: _Optional[str] = ..., at_ms: _Optional[int] = ...) -> None: ...

class AwaitResultRequest(_message.Message):
    __slots__ = ("namespace", "id", "wait_ms")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    id: str
    wait_ms: int
    def __init__(self, namespace: _Optional[str] = ..., id: _Optional[str] = ..., wait_ms: _Optional[int] = ...) -> None: ...

class AwaitResultResponse(_message.Message):
    __slots__ = ("state", "result", "result_content_type", "done_at_ms", "kept_until_ms", "progress", "reason", "reason_at_ms")
    STATE_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    RESULT_CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    DONE_AT_MS_FIELD_NUMBER: _ClassVar[int]
    KEPT_UNTIL_MS_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REASON_AT_MS_FIELD_NUMBER: _ClassVar[int]
    state: str
    result: bytes
    result_content_type: str
    done_at_ms: int
    kept_until_ms: int
    progress: Progress
    reason: str
    reason_at_ms: int
    def __init__(self, state: _Optional[str] = ..., result: _Optional[bytes] = ..., result_content_type: _Optional[str] = ..., done_at_ms: _Optional[int] = ..., kept_until_ms: _Optional[int] = ..., progress: _Optional[_Union[Progress, _Mapping]] = ..., reason: _Optional[str] = ..., reason_at_ms: _Optional[int] = ...) -> None: ...

class ChangeRequest(_message.Message):
    __slots__ = ("namespace", "id", "by", "why", "version")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    id: str
    by: str
    why: str
    version: str
    def __init__(self, namespace: _Optional[str] = ..., id: _Optional[str] = ..., by: _Optional[str] = ..., why: _Optional[str] = ..., version: _Optional[str] = ...) -> None: ...

class MoveRequest(_message.Message):
    __slots__ = ("namespace", "id", "by", "why", "version", "to")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    id: str
    by: str
    why: str
    version: str
    to: str
    def __init__(self, namespace: _Optional[str] = ..., id: _Optional[str] = ..., by: _Optional[str] = ..., why: _Optional[str] = ..., version: _Optional[str] = ..., to: _Optional[str] = ...) -> None: ...

class ChangeFieldsRequest(_message.Message):
    __slots__ = ("namespace", "id", "by", "why", "version", "priority", "delay_ms", "deliver_at_ms", "max_attempts", "tags", "cost")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    DELIVER_AT_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    id: str
    by: str
    why: str
    version: str
    priority: int
    delay_ms: int
    deliver_at_ms: int
    max_attempts: int
    tags: TagList
    cost: int
    def __init__(self, namespace: _Optional[str] = ..., id: _Optional[str] = ..., by: _Optional[str] = ..., why: _Optional[str] = ..., version: _Optional[str] = ..., priority: _Optional[int] = ..., delay_ms: _Optional[int] = ..., deliver_at_ms: _Optional[int] = ..., max_attempts: _Optional[int] = ..., tags: _Optional[_Union[TagList, _Mapping]] = ..., cost: _Optional[int] = ...) -> None: ...

class TagList(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, values: _Optional[_Iterable[str]] = ...) -> None: ...

class ChangeResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SendGroupRequest(_message.Message):
    __slots__ = ("namespace", "messages", "callback", "idempotency_key")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    CALLBACK_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    messages: GroupMessageList
    callback: GroupMessage
    idempotency_key: str
    def __init__(self, namespace: _Optional[str] = ..., messages: _Optional[_Union[GroupMessageList, _Mapping]] = ..., callback: _Optional[_Union[GroupMessage, _Mapping]] = ..., idempotency_key: _Optional[str] = ...) -> None: ...

class GroupMessageList(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedCompositeFieldContainer[GroupMessage]
    def __init__(self, values: _Optional[_Iterable[_Union[GroupMessage, _Mapping]]] = ...) -> None: ...

class GroupMessage(_message.Message):
    __slots__ = ("payload", "content_type", "headers", "tags", "priority", "delay_ms", "deliver_at_ms", "max_attempts", "backoff", "ordering_key", "fair_key", "limit_key", "unique", "ttl_ms", "expires_at_ms", "result_ttl_ms", "correlation_id", "reply_to", "hold", "depends_on", "depends_mode", "on_parent_failed", "queue", "chain", "on_failure", "cost")
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
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    CHAIN_FIELD_NUMBER: _ClassVar[int]
    ON_FAILURE_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    payload: bytes
    content_type: str
    headers: _containers.RepeatedCompositeFieldContainer[_common_pb2.Header]
    tags: _containers.RepeatedScalarFieldContainer[str]
    priority: int
    delay_ms: int
    deliver_at_ms: int
    max_attempts: int
    backoff: _common_pb2.Backoff
    ordering_key: str
    fair_key: str
    limit_key: str
    unique: _common_pb2.Unique
    ttl_ms: int
    expires_at_ms: int
    result_ttl_ms: int
    correlation_id: str
    reply_to: str
    hold: bool
    depends_on: _containers.RepeatedScalarFieldContainer[str]
    depends_mode: str
    on_parent_failed: str
    queue: str
    chain: _containers.RepeatedCompositeFieldContainer[_common_pb2.Step]
    on_failure: _common_pb2.Step
    cost: int
    def __init__(self, payload: _Optional[bytes] = ..., content_type: _Optional[str] = ..., headers: _Optional[_Iterable[_Union[_common_pb2.Header, _Mapping]]] = ..., tags: _Optional[_Iterable[str]] = ..., priority: _Optional[int] = ..., delay_ms: _Optional[int] = ..., deliver_at_ms: _Optional[int] = ..., max_attempts: _Optional[int] = ..., backoff: _Optional[_Union[_common_pb2.Backoff, _Mapping]] = ..., ordering_key: _Optional[str] = ..., fair_key: _Optional[str] = ..., limit_key: _Optional[str] = ..., unique: _Optional[_Union[_common_pb2.Unique, _Mapping]] = ..., ttl_ms: _Optional[int] = ..., expires_at_ms: _Optional[int] = ..., result_ttl_ms: _Optional[int] = ..., correlation_id: _Optional[str] = ..., reply_to: _Optional[str] = ..., hold: bool = ..., depends_on: _Optional[_Iterable[str]] = ..., depends_mode: _Optional[str] = ..., on_parent_failed: _Optional[str] = ..., queue: _Optional[str] = ..., chain: _Optional[_Iterable[_Union[_common_pb2.Step, _Mapping]]] = ..., on_failure: _Optional[_Union[_common_pb2.Step, _Mapping]] = ..., cost: _Optional[int] = ...) -> None: ...

class SendGroupResponse(_message.Message):
    __slots__ = ("group", "ids", "duplicate")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    group: str
    ids: _containers.RepeatedScalarFieldContainer[str]
    duplicate: bool
    def __init__(self, group: _Optional[str] = ..., ids: _Optional[_Iterable[str]] = ..., duplicate: bool = ...) -> None: ...

class GetGroupRequest(_message.Message):
    __slots__ = ("namespace", "group", "stale")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    group: str
    stale: bool
    def __init__(self, namespace: _Optional[str] = ..., group: _Optional[str] = ..., stale: bool = ...) -> None: ...

class Group(_message.Message):
    __slots__ = ("group", "pending", "done", "dead", "callback")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    DEAD_FIELD_NUMBER: _ClassVar[int]
    CALLBACK_FIELD_NUMBER: _ClassVar[int]
    group: str
    pending: int
    done: int
    dead: int
    callback: str
    def __init__(self, group: _Optional[str] = ..., pending: _Optional[int] = ..., done: _Optional[int] = ..., dead: _Optional[int] = ..., callback: _Optional[str] = ...) -> None: ...

class GetFlowRequest(_message.Message):
    __slots__ = ("namespace", "id", "stale")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    id: str
    stale: bool
    def __init__(self, namespace: _Optional[str] = ..., id: _Optional[str] = ..., stale: bool = ...) -> None: ...

class Flow(_message.Message):
    __slots__ = ("parents", "id", "queue", "state", "reason", "chain", "on_failure", "group", "children", "truncated")
    PARENTS_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    CHAIN_FIELD_NUMBER: _ClassVar[int]
    ON_FAILURE_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CHILDREN_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    parents: _containers.RepeatedCompositeFieldContainer[FlowParent]
    id: str
    queue: str
    state: str
    reason: str
    chain: _containers.RepeatedScalarFieldContainer[str]
    on_failure: str
    group: GroupCounts
    children: _containers.RepeatedCompositeFieldContainer[FlowNode]
    truncated: bool
    def __init__(self, parents: _Optional[_Iterable[_Union[FlowParent, _Mapping]]] = ..., id: _Optional[str] = ..., queue: _Optional[str] = ..., state: _Optional[str] = ..., reason: _Optional[str] = ..., chain: _Optional[_Iterable[str]] = ..., on_failure: _Optional[str] = ..., group: _Optional[_Union[GroupCounts, _Mapping]] = ..., children: _Optional[_Iterable[_Union[FlowNode, _Mapping]]] = ..., truncated: bool = ...) -> None: ...

class FlowNode(_message.Message):
    __slots__ = ("id", "queue", "state", "reason", "chain", "on_failure", "group", "children")
    ID_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    CHAIN_FIELD_NUMBER: _ClassVar[int]
    ON_FAILURE_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CHILDREN_FIELD_NUMBER: _ClassVar[int]
    id: str
    queue: str
    state: str
    reason: str
    chain: _containers.RepeatedScalarFieldContainer[str]
    on_failure: str
    group: GroupCounts
    children: _containers.RepeatedCompositeFieldContainer[FlowNode]
    def __init__(self, id: _Optional[str] = ..., queue: _Optional[str] = ..., state: _Optional[str] = ..., reason: _Optional[str] = ..., chain: _Optional[_Iterable[str]] = ..., on_failure: _Optional[str] = ..., group: _Optional[_Union[GroupCounts, _Mapping]] = ..., children: _Optional[_Iterable[_Union[FlowNode, _Mapping]]] = ...) -> None: ...

class FlowParent(_message.Message):
    __slots__ = ("id", "queue", "state", "ended")
    ID_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    id: str
    queue: str
    state: str
    ended: str
    def __init__(self, id: _Optional[str] = ..., queue: _Optional[str] = ..., state: _Optional[str] = ..., ended: _Optional[str] = ...) -> None: ...

class GroupCounts(_message.Message):
    __slots__ = ("pending", "done", "dead")
    PENDING_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    DEAD_FIELD_NUMBER: _ClassVar[int]
    pending: int
    done: int
    dead: int
    def __init__(self, pending: _Optional[int] = ..., done: _Optional[int] = ..., dead: _Optional[int] = ...) -> None: ...
