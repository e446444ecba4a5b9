from . import common_pb2 as _common_pb2
from . import messages_pb2 as _messages_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class QueueRequest(_message.Message):
    __slots__ = ("namespace", "queue")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    queue: str
    def __init__(self, namespace: _Optional[str] = ..., queue: _Optional[str] = ...) -> None: ...

class GetQueueRequest(_message.Message):
    __slots__ = ("namespace", "queue", "stale")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    queue: str
    stale: bool
    def __init__(self, namespace: _Optional[str] = ..., queue: _Optional[str] = ..., stale: bool = ...) -> None: ...

class ListQueuesRequest(_message.Message):
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

class ListQueuesResponse(_message.Message):
    __slots__ = ("queues", "next")
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    queues: _containers.RepeatedCompositeFieldContainer[Queue]
    next: str
    def __init__(self, queues: _Optional[_Iterable[_Union[Queue, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class SetQueueRequest(_message.Message):
    __slots__ = ("namespace", "queue", "lease_ms", "max_attempts", "max_deliveries", "backoff", "paused", "closed", "ordering_retry", "on_expire", "max_messages", "max_bytes", "retain_done_ms", "retain_done_count", "limit", "dead_letter_queue", "fair_weights", "overflow", "max_age_ms", "placement", "description", "push_url", "push_secrets", "push_timeout_ms", "push_concurrency", "push_rate", "push_headers", "push_paused", "search_index")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    MAX_DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    BACKOFF_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    CLOSED_FIELD_NUMBER: _ClassVar[int]
    ORDERING_RETRY_FIELD_NUMBER: _ClassVar[int]
    ON_EXPIRE_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGES_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    RETAIN_DONE_MS_FIELD_NUMBER: _ClassVar[int]
    RETAIN_DONE_COUNT_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTER_QUEUE_FIELD_NUMBER: _ClassVar[int]
    FAIR_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    OVERFLOW_FIELD_NUMBER: _ClassVar[int]
    MAX_AGE_MS_FIELD_NUMBER: _ClassVar[int]
    PLACEMENT_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    PUSH_URL_FIELD_NUMBER: _ClassVar[int]
    PUSH_SECRETS_FIELD_NUMBER: _ClassVar[int]
    PUSH_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    PUSH_CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    PUSH_RATE_FIELD_NUMBER: _ClassVar[int]
    PUSH_HEADERS_FIELD_NUMBER: _ClassVar[int]
    PUSH_PAUSED_FIELD_NUMBER: _ClassVar[int]
    SEARCH_INDEX_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    queue: str
    lease_ms: int
    max_attempts: int
    max_deliveries: int
    backoff: _common_pb2.Backoff
    paused: bool
    closed: bool
    ordering_retry: str
    on_expire: str
    max_messages: int
    max_bytes: int
    retain_done_ms: int
    retain_done_count: int
    limit: str
    dead_letter_queue: str
    fair_weights: WeightMap
    overflow: str
    max_age_ms: int
    placement: str
    description: str
    push_url: str
    push_secrets: PushSecretList
    push_timeout_ms: int
    push_concurrency: int
    push_rate: int
    push_headers: PushHeaderMap
    push_paused: bool
    search_index: str
    def __init__(self, namespace: _Optional[str] = ..., queue: _Optional[str] = ..., lease_ms: _Optional[int] = ..., max_attempts: _Optional[int] = ..., max_deliveries: _Optional[int] = ..., backoff: _Optional[_Union[_common_pb2.Backoff, _Mapping]] = ..., paused: bool = ..., closed: bool = ..., ordering_retry: _Optional[str] = ..., on_expire: _Optional[str] = ..., max_messages: _Optional[int] = ..., max_bytes: _Optional[int] = ..., retain_done_ms: _Optional[int] = ..., retain_done_count: _Optional[int] = ..., limit: _Optional[str] = ..., dead_letter_queue: _Optional[str] = ..., fair_weights: _Optional[_Union[WeightMap, _Mapping]] = ..., overflow: _Optional[str] = ..., max_age_ms: _Optional[int] = ..., placement: _Optional[str] = ..., description: _Optional[str] = ..., push_url: _Optional[str] = ..., push_secrets: _Optional[_Union[PushSecretList, _Mapping]] = ..., push_timeout_ms: _Optional[int] = ..., push_concurrency: _Optional[int] = ..., push_rate: _Optional[int] = ..., push_headers: _Optional[_Union[PushHeaderMap, _Mapping]] = ..., push_paused: bool = ..., search_index: _Optional[str] = ...) -> None: ...

class QueueSettings(_message.Message):
    __slots__ = ("lease_ms", "max_attempts", "max_deliveries", "backoff", "paused", "closed", "ordering_retry", "on_expire", "max_messages", "max_bytes", "retain_done_ms", "retain_done_count", "limit", "dead_letter_queue", "fair_weights", "overflow", "max_age_ms", "placement", "description", "push_url", "push_secrets", "push_timeout_ms", "push_concurrency", "push_rate", "push_headers", "push_paused", "search_index")
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    MAX_DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    BACKOFF_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    CLOSED_FIELD_NUMBER: _ClassVar[int]
    ORDERING_RETRY_FIELD_NUMBER: _ClassVar[int]
    ON_EXPIRE_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGES_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    RETAIN_DONE_MS_FIELD_NUMBER: _ClassVar[int]
    RETAIN_DONE_COUNT_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTER_QUEUE_FIELD_NUMBER: _ClassVar[int]
    FAIR_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    OVERFLOW_FIELD_NUMBER: _ClassVar[int]
    MAX_AGE_MS_FIELD_NUMBER: _ClassVar[int]
    PLACEMENT_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    PUSH_URL_FIELD_NUMBER: _ClassVar[int]
    PUSH_SECRETS_FIELD_NUMBER: _ClassVar[int]
    PUSH_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    PUSH_CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    PUSH_RATE_FIELD_NUMBER: _ClassVar[int]
    PUSH_HEADERS_FIELD_NUMBER: _ClassVar[int]
    PUSH_PAUSED_FIELD_NUMBER: _ClassVar[int]
    SEARCH_INDEX_FIELD_NUMBER: _ClassVar[int]
    lease_ms: int
    max_attempts: int
    max_deliveries: int
    backoff: _common_pb2.Backoff
    paused: bool
    closed: bool
    ordering_retry: str
    on_expire: str
    max_messages: int
    max_bytes: int
    retain_done_ms: int
    retain_done_count: int
    limit: str
    dead_letter_queue: str
    fair_weights: WeightMap
    overflow: str
    max_age_ms: int
    placement: str
    description: str
    push_url: str
    push_secrets: PushSecretList
    push_timeout_ms: int
    push_concurrency: int
    push_rate: int
    push_headers: PushHeaderMap
    push_paused: bool
    search_index: str
    def __init__(self, lease_ms: _Optional[int] = ..., max_attempts: _Optional[int] = ..., max_deliveries: _Optional[int] = ..., backoff: _Optional[_Union[_common_pb2.Backoff, _Mapping]] = ..., paused: bool = ..., closed: bool = ..., ordering_retry: _Optional[str] = ..., on_expire: _Optional[str] = ..., max_messages: _Optional[int] = ..., max_bytes: _Optional[int] = ..., retain_done_ms: _Optional[int] = ..., retain_done_count: _Optional[int] = ..., limit: _Optional[str] = ..., dead_letter_queue: _Optional[str] = ..., fair_weights: _Optional[_Union[WeightMap, _Mapping]] = ..., overflow: _Optional[str] = ..., max_age_ms: _Optional[int] = ..., placement: _Optional[str] = ..., description: _Optional[str] = ..., push_url: _Optional[str] = ..., push_secrets: _Optional[_Union[PushSecretList, _Mapping]] = ..., push_timeout_ms: _Optional[int] = ..., push_concurrency: _Optional[int] = ..., push_rate: _Optional[int] = ..., push_headers: _Optional[_Union[PushHeaderMap, _Mapping]] = ..., push_paused: bool = ..., search_index: _Optional[str] = ...) -> None: ...

class PushSecretList(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, values: _Optional[_Iterable[str]] = ...) -> None: ...

class PushHeaderMap(_message.Message):
    __slots__ = ("values",)
    class ValuesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.ScalarMap[str, str]
    def __init__(self, values: _Optional[_Mapping[str, str]] = ...) -> None: ...

class WeightMap(_message.Message):
    __slots__ = ("values",)
    class ValuesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.ScalarMap[str, int]
    def __init__(self, values: _Optional[_Mapping[str, int]] = ...) -> None: ...

class Queue(_message.Message):
    __slots__ = ("name", "namespace", "settings", "counts", "blocked_by", "totals", "bytes", "created_at_ms", "redriving", "oldest_ready_age_ms")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    BLOCKED_BY_FIELD_NUMBER: _ClassVar[int]
    TOTALS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    REDRIVING_FIELD_NUMBER: _ClassVar[int]
    OLDEST_READY_AGE_MS_FIELD_NUMBER: _ClassVar[int]
    name: str
    namespace: str
    settings: QueueSettings
    counts: Counts
    blocked_by: BlockedBy
    totals: Totals
    bytes: int
    created_at_ms: int
    redriving: Redriving
    oldest_ready_age_ms: int
    def __init__(self, name: _Optional[str] = ..., namespace: _Optional[str] = ..., settings: _Optional[_Union[QueueSettings, _Mapping]] = ..., counts: _Optional[_Union[Counts, _Mapping]] = ..., blocked_by: _Optional[_Union[BlockedBy, _Mapping]] = ..., totals: _Optional[_Union[Totals, _Mapping]] = ..., bytes: _Optional[int] = ..., created_at_ms: _Optional[int] = ..., redriving: _Optional[_Union[Redriving, _Mapping]] = ..., oldest_ready_age_ms: _Optional[int] = ...) -> None: ...

class Counts(_message.Message):
    __slots__ = ("delayed", "ready", "leased", "held", "dead", "blocked", "done")
    DELAYED_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    LEASED_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    DEAD_FIELD_NUMBER: _ClassVar[int]
    BLOCKED_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    delayed: int
    ready: int
    leased: int
    held: int
    dead: int
    blocked: int
    done: int
    def __init__(self, delayed: _Optional[int] = ..., ready: _Optional[int] = ..., leased: _Optional[int] = ..., held: _Optional[int] = ..., dead: _Optional[int] = ..., blocked: _Optional[int] = ..., done: _Optional[int] = ...) -> None: ...

class BlockedBy(_message.Message):
    __slots__ = ("ordering_key", "limit", "parents", "consumer")
    ORDERING_KEY_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    PARENTS_FIELD_NUMBER: _ClassVar[int]
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    ordering_key: int
    limit: int
    parents: int
    consumer: int
    def __init__(self, ordering_key: _Optional[int] = ..., limit: _Optional[int] = ..., parents: _Optional[int] = ..., consumer: _Optional[int] = ...) -> None: ...

class Totals(_message.Message):
    __slots__ = ("sent", "delivered", "acked", "nacked", "released", "rejected", "expired", "died", "redriven", "dropped", "replies_lost", "cancelled", "moved_in", "moved_out")
    SENT_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    ACKED_FIELD_NUMBER: _ClassVar[int]
    NACKED_FIELD_NUMBER: _ClassVar[int]
    RELEASED_FIELD_NUMBER: _ClassVar[int]
    REJECTED_FIELD_NUMBER: _ClassVar[int]
    EXPIRED_FIELD_NUMBER: _ClassVar[int]
    DIED_FIELD_NUMBER: _ClassVar[int]
    REDRIVEN_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    REPLIES_LOST_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    MOVED_IN_FIELD_NUMBER: _ClassVar[int]
    MOVED_OUT_FIELD_NUMBER: _ClassVar[int]
    sent: int
    delivered: int
    acked: int
    nacked: int
    released: int
    rejected: int
    expired: int
    died: int
    redriven: int
    dropped: int
    replies_lost: int
    cancelled: int
    moved_in: int
    moved_out: int
    def __init__(self, sent: _Optional[int] = ..., delivered: _Optional[int] = ..., acked: _Optional[int] = ..., nacked: _Optional[int] = ..., released: _Optional[int] = ..., rejected: _Optional[int] = ..., expired: _Optional[int] = ..., died: _Optional[int] = ..., redriven: _Optional[int] = ..., dropped: _Optional[int] = ..., replies_lost: _Optional[int] = ..., cancelled: _Optional[int] = ..., moved_in: _Optional[int] = ..., moved_out: _Optional[int] = ...) -> None: ...

class Redriving(_message.Message):
    __slots__ = ("left", "per_second")
    LEFT_FIELD_NUMBER: _ClassVar[int]
    PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    left: int
    per_second: int
    def __init__(self, left: _Optional[int] = ..., per_second: _Optional[int] = ...) -> None: ...

class DeleteResponse(_message.Message):
    __slots__ = ("deleted",)
    DELETED_FIELD_NUMBER: _ClassVar[int]
    deleted: int
    def __init__(self, deleted: _Optional[int] = ...) -> None: ...

class PurgeResponse(_message.Message):
    __slots__ = ("purged",)
    PURGED_FIELD_NUMBER: _ClassVar[int]
    purged: int
    def __init__(self, purged: _Optional[int] = ...) -> None: ...

class ListPushesRequest(_message.Message):
    __slots__ = ("namespace", "queue", "limit")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    queue: str
    limit: int
    def __init__(self, namespace: _Optional[str] = ..., queue: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class ListPushesResponse(_message.Message):
    __slots__ = ("pushes",)
    PUSHES_FIELD_NUMBER: _ClassVar[int]
    pushes: _containers.RepeatedCompositeFieldContainer[Push]
    def __init__(self, pushes: _Optional[_Iterable[_Union[Push, _Mapping]]] = ...) -> None: ...

class Push(_message.Message):
    __slots__ = ("id", "attempt", "at_ms", "took_ms", "outcome", "status", "error", "delay_ms", "unsettled")
    ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    TOOK_MS_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    UNSETTLED_FIELD_NUMBER: _ClassVar[int]
    id: str
    attempt: int
    at_ms: int
    took_ms: int
    outcome: str
    status: int
    error: str
    delay_ms: int
    unsettled: str
    def __init__(self, id: _Optional[str] = ..., attempt: _Optional[int] = ..., at_ms: _Optional[int] = ..., took_ms: _Optional[int] = ..., outcome: _Optional[str] = ..., status: _Optional[int] = ..., error: _Optional[str] = ..., delay_ms: _Optional[int] = ..., unsettled: _Optional[str] = ...) -> None: ...

class ListDeadRequest(_message.Message):
    __slots__ = ("namespace", "queue", "cursor", "limit", "payload", "stale")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    queue: str
    cursor: str
    limit: int
    payload: bool
    stale: bool
    def __init__(self, namespace: _Optional[str] = ..., queue: _Optional[str] = ..., cursor: _Optional[str] = ..., limit: _Optional[int] = ..., payload: bool = ..., stale: bool = ...) -> None: ...

class CountDeadErrorsRequest(_message.Message):
    __slots__ = ("namespace", "queue", "cursor", "limit", "stale")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    queue: str
    cursor: str
    limit: int
    stale: bool
    def __init__(self, namespace: _Optional[str] = ..., queue: _Optional[str] = ..., cursor: _Optional[str] = ..., limit: _Optional[int] = ..., stale: bool = ...) -> None: ...

class CountDeadErrorsResponse(_message.Message):
    __slots__ = ("errors", "without_text", "with_other_texts", "scanned", "next", "with_damaged_text")
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_TEXT_FIELD_NUMBER: _ClassVar[int]
    WITH_OTHER_TEXTS_FIELD_NUMBER: _ClassVar[int]
    SCANNED_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    WITH_DAMAGED_TEXT_FIELD_NUMBER: _ClassVar[int]
    errors: _containers.RepeatedCompositeFieldContainer[DeadError]
    without_text: int
    with_other_texts: int
    scanned: int
    next: str
    with_damaged_text: int
    def __init__(self, errors: _Optional[_Iterable[_Union[DeadError, _Mapping]]] = ..., without_text: _Optional[int] = ..., with_other_texts: _Optional[int] = ..., scanned: _Optional[int] = ..., next: _Optional[str] = ..., with_damaged_text: _Optional[int] = ...) -> None: ...

class DeadError(_message.Message):
    __slots__ = ("error", "messages", "fingerprint")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    error: str
    messages: int
    fingerprint: str
    def __init__(self, error: _Optional[str] = ..., messages: _Optional[int] = ..., fingerprint: _Optional[str] = ...) -> None: ...

class RedriveRequest(_message.Message):
    __slots__ = ("namespace", "queue", "ids", "all", "per_second")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    ALL_FIELD_NUMBER: _ClassVar[int]
    PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    queue: str
    ids: _containers.RepeatedScalarFieldContainer[str]
    all: bool
    per_second: int
    def __init__(self, namespace: _Optional[str] = ..., queue: _Optional[str] = ..., ids: _Optional[_Iterable[str]] = ..., all: bool = ..., per_second: _Optional[int] = ...) -> None: ...

class RedriveResponse(_message.Message):
    __slots__ = ("redriven",)
    REDRIVEN_FIELD_NUMBER: _ClassVar[int]
    redriven: int
    def __init__(self, redriven: _Optional[int] = ...) -> None: ...

class EndRedriveResponse(_message.Message):
    __slots__ = ("left",)
    LEFT_FIELD_NUMBER: _ClassVar[int]
    left: int
    def __init__(self, left: _Optional[int] = ...) -> None: ...

class DeleteDeadRequest(_message.Message):
    __slots__ = ("namespace", "queue", "ids", "all")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    ALL_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    queue: str
    ids: _containers.RepeatedScalarFieldContainer[str]
    all: bool
    def __init__(self, namespace: _Optional[str] = ..., queue: _Optional[str] = ..., ids: _Optional[_Iterable[str]] = ..., all: bool = ...) -> None: ...

class ListDefaultsRequest(_message.Message):
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

class ListDefaultsResponse(_message.Message):
    __slots__ = ("defaults", "next")
    DEFAULTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    defaults: _containers.RepeatedCompositeFieldContainer[QueueDefaults]
    next: str
    def __init__(self, defaults: _Optional[_Iterable[_Union[QueueDefaults, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class DefaultsRequest(_message.Message):
    __slots__ = ("namespace", "pattern")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    pattern: str
    def __init__(self, namespace: _Optional[str] = ..., pattern: _Optional[str] = ...) -> None: ...

class GetDefaultsRequest(_message.Message):
    __slots__ = ("namespace", "pattern", "stale")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    pattern: str
    stale: bool
    def __init__(self, namespace: _Optional[str] = ..., pattern: _Optional[str] = ..., stale: bool = ...) -> None: ...

class PutDefaultsRequest(_message.Message):
    __slots__ = ("namespace", "pattern", "lease_ms", "max_attempts", "max_deliveries", "backoff", "paused", "closed", "ordering_retry", "on_expire", "max_messages", "max_bytes", "retain_done_ms", "retain_done_count", "limit", "dead_letter_queue", "fair_weights", "overflow", "max_age_ms", "placement", "description", "push_url", "push_secrets", "push_timeout_ms", "push_concurrency", "push_rate", "push_headers", "push_paused", "search_index")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    MAX_DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    BACKOFF_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    CLOSED_FIELD_NUMBER: _ClassVar[int]
    ORDERING_RETRY_FIELD_NUMBER: _ClassVar[int]
    ON_EXPIRE_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGES_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    RETAIN_DONE_MS_FIELD_NUMBER: _ClassVar[int]
    RETAIN_DONE_COUNT_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTER_QUEUE_FIELD_NUMBER: _ClassVar[int]
    FAIR_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    OVERFLOW_FIELD_NUMBER: _ClassVar[int]
    MAX_AGE_MS_FIELD_NUMBER: _ClassVar[int]
    PLACEMENT_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    PUSH_URL_FIELD_NUMBER: _ClassVar[int]
    PUSH_SECRETS_FIELD_NUMBER: _ClassVar[int]
    PUSH_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    PUSH_CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    PUSH_RATE_FIELD_NUMBER: _ClassVar[int]
    PUSH_HEADERS_FIELD_NUMBER: _ClassVar[int]
    PUSH_PAUSED_FIELD_NUMBER: _ClassVar[int]
    SEARCH_INDEX_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    pattern: str
    lease_ms: int
    max_attempts: int
    max_deliveries: int
    backoff: _common_pb2.Backoff
    paused: bool
    closed: bool
    ordering_retry: str
    on_expire: str
    max_messages: int
    max_bytes: int
    retain_done_ms: int
    retain_done_count: int
    limit: str
    dead_letter_queue: str
    fair_weights: WeightMap
    overflow: str
    max_age_ms: int
    placement: str
    description: str
    push_url: str
    push_secrets: PushSecretList
    push_timeout_ms: int
    push_concurrency: int
    push_rate: int
    push_headers: PushHeaderMap
    push_paused: bool
    search_index: str
    def __init__(self, namespace: _Optional[str] = ..., pattern: _Optional[str] = ..., lease_ms: _Optional[int] = ..., max_attempts: _Optional[int] = ..., max_deliveries: _Optional[int] = ..., backoff: _Optional[_Union[_common_pb2.Backoff, _Mapping]] = ..., paused: bool = ..., closed: bool = ..., ordering_retry: _Optional[str] = ..., on_expire: _Optional[str] = ..., max_messages: _Optional[int] = ..., max_bytes: _Optional[int] = ..., retain_done_ms: _Optional[int] = ..., retain_done_count: _Optional[int] = ..., limit: _Optional[str] = ..., dead_letter_queue: _Optional[str] = ..., fair_weights: _Optional[_Union[WeightMap, _Mapping]] = ..., overflow: _Optional[str] = ..., max_age_ms: _Optional[int] = ..., placement: _Optional[str] = ..., description: _Optional[str] = ..., push_url: _Optional[str] = ..., push_secrets: _Optional[_Union[PushSecretList, _Mapping]] = ..., push_timeout_ms: _Optional[int] = ..., push_concurrency: _Optional[int] = ..., push_rate: _Optional[int] = ..., push_headers: _Optional[_Union[PushHeaderMap, _Mapping]] = ..., push_paused: bool = ..., search_index: _Optional[str] = ...) -> None: ...

class QueueDefaults(_message.Message):
    __slots__ = ("pattern", "settings")
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    pattern: str
    settings: QueueSettings
    def __init__(self, pattern: _Optional[str] = ..., settings: _Optional[_Union[QueueSettings, _Mapping]] = ...) -> None: ...

class DeleteDefaultsResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
