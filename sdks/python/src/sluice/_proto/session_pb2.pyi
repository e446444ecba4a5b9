from . import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ClientFrame(_message.Message):
    __slots__ = ("number", "open", "attach", "credit", "settle", "extend", "send", "detach", "ping", "call")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    ATTACH_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    SETTLE_FIELD_NUMBER: _ClassVar[int]
    EXTEND_FIELD_NUMBER: _ClassVar[int]
    SEND_FIELD_NUMBER: _ClassVar[int]
    DETACH_FIELD_NUMBER: _ClassVar[int]
    PING_FIELD_NUMBER: _ClassVar[int]
    CALL_FIELD_NUMBER: _ClassVar[int]
    number: int
    open: Open
    attach: Attach
    credit: SetCredit
    settle: SettleMany
    extend: ExtendMany
    send: SendMany
    detach: Detach
    ping: Ping
    call: Call
    def __init__(self, number: _Optional[int] = ..., open: _Optional[_Union[Open, _Mapping]] = ..., attach: _Optional[_Union[Attach, _Mapping]] = ..., credit: _Optional[_Union[SetCredit, _Mapping]] = ..., settle: _Optional[_Union[SettleMany, _Mapping]] = ..., extend: _Optional[_Union[ExtendMany, _Mapping]] = ..., send: _Optional[_Union[SendMany, _Mapping]] = ..., detach: _Optional[_Union[Detach, _Mapping]] = ..., ping: _Optional[_Union[Ping, _Mapping]] = ..., call: _Optional[_Union[Call, _Mapping]] = ...) -> None: ...

class Open(_message.Message):
    __slots__ = ("namespace", "follows_leaders")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    FOLLOWS_LEADERS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    follows_leaders: bool
    def __init__(self, namespace: _Optional[str] = ..., follows_leaders: bool = ...) -> None: ...

class Attach(_message.Message):
    __slots__ = ("consumer", "queues", "credit", "lease_ms", "name", "grace_ms", "resume")
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    GRACE_MS_FIELD_NUMBER: _ClassVar[int]
    RESUME_FIELD_NUMBER: _ClassVar[int]
    consumer: int
    queues: _containers.RepeatedScalarFieldContainer[str]
    credit: int
    lease_ms: int
    name: str
    grace_ms: int
    resume: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, consumer: _Optional[int] = ..., queues: _Optional[_Iterable[str]] = ..., credit: _Optional[int] = ..., lease_ms: _Optional[int] = ..., name: _Optional[str] = ..., grace_ms: _Optional[int] = ..., resume: _Optional[_Iterable[str]] = ...) -> None: ...

class SetCredit(_message.Message):
    __slots__ = ("consumer", "credit")
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    consumer: int
    credit: int
    def __init__(self, consumer: _Optional[int] = ..., credit: _Optional[int] = ...) -> None: ...

class SettleMany(_message.Message):
    __slots__ = ("items", "acks")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    ACKS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[_common_pb2.Settlement]
    acks: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, items: _Optional[_Iterable[_Union[_common_pb2.Settlement, _Mapping]]] = ..., acks: _Optional[_Iterable[str]] = ...) -> None: ...

class ExtendMany(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[_common_pb2.Extension]
    def __init__(self, items: _Optional[_Iterable[_Union[_common_pb2.Extension, _Mapping]]] = ...) -> None: ...

class SendMany(_message.Message):
    __slots__ = ("queue", "messages", "idempotency_key")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    queue: str
    messages: _containers.RepeatedCompositeFieldContainer[_common_pb2.Message]
    idempotency_key: str
    def __init__(self, queue: _Optional[str] = ..., messages: _Optional[_Iterable[_Union[_common_pb2.Message, _Mapping]]] = ..., idempotency_key: _Optional[str] = ...) -> None: ...

class Detach(_message.Message):
    __slots__ = ("consumer", "grace_ms")
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    GRACE_MS_FIELD_NUMBER: _ClassVar[int]
    consumer: int
    grace_ms: int
    def __init__(self, consumer: _Optional[int] = ..., grace_ms: _Optional[int] = ...) -> None: ...

class Ping(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Call(_message.Message):
    __slots__ = ("method", "request")
    METHOD_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    method: str
    request: bytes
    def __init__(self, method: _Optional[str] = ..., request: _Optional[bytes] = ...) -> None: ...

class ServerFrame(_message.Message):
    __slots__ = ("deliveries", "result", "cancellations", "draining", "keep_alive", "detached")
    DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    CANCELLATIONS_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    KEEP_ALIVE_FIELD_NUMBER: _ClassVar[int]
    DETACHED_FIELD_NUMBER: _ClassVar[int]
    deliveries: Deliveries
    result: FrameResult
    cancellations: Cancellations
    draining: Draining
    keep_alive: KeepAlive
    detached: Detached
    def __init__(self, deliveries: _Optional[_Union[Deliveries, _Mapping]] = ..., result: _Optional[_Union[FrameResult, _Mapping]] = ..., cancellations: _Optional[_Union[Cancellations, _Mapping]] = ..., draining: _Optional[_Union[Draining, _Mapping]] = ..., keep_alive: _Optional[_Union[KeepAlive, _Mapping]] = ..., detached: _Optional[_Union[Detached, _Mapping]] = ...) -> None: ...

class Deliveries(_message.Message):
    __slots__ = ("consumer", "messages")
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    consumer: int
    messages: _containers.RepeatedCompositeFieldContainer[_common_pb2.Delivered]
    def __init__(self, consumer: _Optional[int] = ..., messages: _Optional[_Iterable[_Union[_common_pb2.Delivered, _Mapping]]] = ...) -> None: ...

class FrameResult(_message.Message):
    __slots__ = ("number", "error", "failures", "ids", "duplicate", "duplicates", "answer")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    DUPLICATES_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    number: int
    error: _common_pb2.Error
    failures: _containers.RepeatedCompositeFieldContainer[ItemFailure]
    ids: _containers.RepeatedScalarFieldContainer[str]
    duplicate: bool
    duplicates: _containers.RepeatedScalarFieldContainer[int]
    answer: bytes
    def __init__(self, number: _Optional[int] = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ..., failures: _Optional[_Iterable[_Union[ItemFailure, _Mapping]]] = ..., ids: _Optional[_Iterable[str]] = ..., duplicate: bool = ..., duplicates: _Optional[_Iterable[int]] = ..., answer: _Optional[bytes] = ...) -> None: ...

class ItemFailure(_message.Message):
    __slots__ = ("item", "already_settled", "error")
    ITEM_FIELD_NUMBER: _ClassVar[int]
    ALREADY_SETTLED_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    item: int
    already_settled: bool
    error: _common_pb2.Error
    def __init__(self, item: _Optional[int] = ..., already_settled: bool = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ...) -> None: ...

class Cancellations(_message.Message):
    __slots__ = ("consumer", "receipts")
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    RECEIPTS_FIELD_NUMBER: _ClassVar[int]
    consumer: int
    receipts: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, consumer: _Optional[int] = ..., receipts: _Optional[_Iterable[str]] = ...) -> None: ...

class Draining(_message.Message):
    __slots__ = ("grace_ms",)
    GRACE_MS_FIELD_NUMBER: _ClassVar[int]
    grace_ms: int
    def __init__(self, grace_ms: _Optional[int] = ...) -> None: ...

class KeepAlive(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Detached(_message.Message):
    __slots__ = ("consumer",)
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    consumer: int
    def __init__(self, consumer: _Optional[int] = ...) -> None: ...
