from . import common_pb2 as _common_pb2
from . import documents_pb2 as _documents_pb2
from . import locks_pb2 as _locks_pb2
from . import messages_pb2 as _messages_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CommitTransactionRequest(_message.Message):
    __slots__ = ("namespace", "operations", "idempotency_key")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    operations: _containers.RepeatedCompositeFieldContainer[TransactionOperation]
    idempotency_key: str
    def __init__(self, namespace: _Optional[str] = ..., operations: _Optional[_Iterable[_Union[TransactionOperation, _Mapping]]] = ..., idempotency_key: _Optional[str] = ...) -> None: ...

class TransactionOperation(_message.Message):
    __slots__ = ("send", "settle", "put", "patch", "delete", "acquire", "release", "check", "get", "attach", "delete_attachment", "namespace")
    SEND_FIELD_NUMBER: _ClassVar[int]
    SETTLE_FIELD_NUMBER: _ClassVar[int]
    PUT_FIELD_NUMBER: _ClassVar[int]
    PATCH_FIELD_NUMBER: _ClassVar[int]
    DELETE_FIELD_NUMBER: _ClassVar[int]
    ACQUIRE_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    CHECK_FIELD_NUMBER: _ClassVar[int]
    GET_FIELD_NUMBER: _ClassVar[int]
    ATTACH_FIELD_NUMBER: _ClassVar[int]
    DELETE_ATTACHMENT_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    send: _messages_pb2.GroupMessage
    settle: _common_pb2.Settlement
    put: TransactionPut
    patch: TransactionPatch
    delete: TransactionDelete
    acquire: TransactionAcquire
    release: TransactionRelease
    check: TransactionCheck
    get: TransactionGet
    attach: TransactionAttach
    delete_attachment: TransactionDeleteAttachment
    namespace: str
    def __init__(self, send: _Optional[_Union[_messages_pb2.GroupMessage, _Mapping]] = ..., settle: _Optional[_Union[_common_pb2.Settlement, _Mapping]] = ..., put: _Optional[_Union[TransactionPut, _Mapping]] = ..., patch: _Optional[_Union[TransactionPatch, _Mapping]] = ..., delete: _Optional[_Union[TransactionDelete, _Mapping]] = ..., acquire: _Optional[_Union[TransactionAcquire, _Mapping]] = ..., release: _Optional[_Union[TransactionRelease, _Mapping]] = ..., check: _Optional[_Union[TransactionCheck, _Mapping]] = ..., get: _Optional[_Union[TransactionGet, _Mapping]] = ..., attach: _Optional[_Union[TransactionAttach, _Mapping]] = ..., delete_attachment: _Optional[_Union[TransactionDeleteAttachment, _Mapping]] = ..., namespace: _Optional[str] = ...) -> None: ...

class TransactionAttach(_message.Message):
    __slots__ = ("key", "name", "upload", "bytes", "sha256", "if_version", "if_etag", "if_exists", "if_absent", "token")
    KEY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    UPLOAD_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    IF_ETAG_FIELD_NUMBER: _ClassVar[int]
    IF_EXISTS_FIELD_NUMBER: _ClassVar[int]
    IF_ABSENT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    key: str
    name: str
    upload: str
    bytes: int
    sha256: str
    if_version: int
    if_etag: str
    if_exists: bool
    if_absent: bool
    token: str
    def __init__(self, key: _Optional[str] = ..., name: _Optional[str] = ..., upload: _Optional[str] = ..., bytes: _Optional[int] = ..., sha256: _Optional[str] = ..., if_version: _Optional[int] = ..., if_etag: _Optional[str] = ..., if_exists: bool = ..., if_absent: bool = ..., token: _Optional[str] = ...) -> None: ...

class TransactionDeleteAttachment(_message.Message):
    __slots__ = ("key", "name", "if_version", "if_etag", "token")
    KEY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    IF_ETAG_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    key: str
    name: str
    if_version: int
    if_etag: str
    token: str
    def __init__(self, key: _Optional[str] = ..., name: _Optional[str] = ..., if_version: _Optional[int] = ..., if_etag: _Optional[str] = ..., token: _Optional[str] = ...) -> None: ...

class TransactionPut(_message.Message):
    __slots__ = ("key", "content", "content_type", "attributes", "ttl_ms", "history", "if_version", "if_etag", "if_exists", "if_absent", "token")
    class AttributesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    KEY_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    IF_ETAG_FIELD_NUMBER: _ClassVar[int]
    IF_EXISTS_FIELD_NUMBER: _ClassVar[int]
    IF_ABSENT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    key: str
    content: bytes
    content_type: str
    attributes: _containers.ScalarMap[str, str]
    ttl_ms: int
    history: int
    if_version: int
    if_etag: str
    if_exists: bool
    if_absent: bool
    token: str
    def __init__(self, key: _Optional[str] = ..., content: _Optional[bytes] = ..., content_type: _Optional[str] = ..., attributes: _Optional[_Mapping[str, str]] = ..., ttl_ms: _Optional[int] = ..., history: _Optional[int] = ..., if_version: _Optional[int] = ..., if_etag: _Optional[str] = ..., if_exists: bool = ..., if_absent: bool = ..., token: _Optional[str] = ...) -> None: ...

class TransactionPatch(_message.Message):
    __slots__ = ("key", "merge_patch", "json_patch", "increment", "if_version", "if_etag", "token")
    KEY_FIELD_NUMBER: _ClassVar[int]
    MERGE_PATCH_FIELD_NUMBER: _ClassVar[int]
    JSON_PATCH_FIELD_NUMBER: _ClassVar[int]
    INCREMENT_FIELD_NUMBER: _ClassVar[int]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    IF_ETAG_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    key: str
    merge_patch: str
    json_patch: str
    increment: _containers.RepeatedCompositeFieldContainer[_documents_pb2.DocumentIncrement]
    if_version: int
    if_etag: str
    token: str
    def __init__(self, key: _Optional[str] = ..., merge_patch: _Optional[str] = ..., json_patch: _Optional[str] = ..., increment: _Optional[_Iterable[_Union[_documents_pb2.DocumentIncrement, _Mapping]]] = ..., if_version: _Optional[int] = ..., if_etag: _Optional[str] = ..., token: _Optional[str] = ...) -> None: ...

class TransactionDelete(_message.Message):
    __slots__ = ("key", "if_version", "if_etag", "token")
    KEY_FIELD_NUMBER: _ClassVar[int]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    IF_ETAG_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    key: str
    if_version: int
    if_etag: str
    token: str
    def __init__(self, key: _Optional[str] = ..., if_version: _Optional[int] = ..., if_etag: _Optional[str] = ..., token: _Optional[str] = ...) -> None: ...

class TransactionCheck(_message.Message):
    __slots__ = ("key", "if_version", "if_etag", "if_exists", "if_absent", "token")
    KEY_FIELD_NUMBER: _ClassVar[int]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    IF_ETAG_FIELD_NUMBER: _ClassVar[int]
    IF_EXISTS_FIELD_NUMBER: _ClassVar[int]
    IF_ABSENT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    key: str
    if_version: int
    if_etag: str
    if_exists: bool
    if_absent: bool
    token: str
    def __init__(self, key: _Optional[str] = ..., if_version: _Optional[int] = ..., if_etag: _Optional[str] = ..., if_exists: bool = ..., if_absent: bool = ..., token: _Optional[str] = ...) -> None: ...

class TransactionAcquire(_message.Message):
    __slots__ = ("key", "keys", "owner", "mode", "holders", "ttl_ms", "if_absent")
    KEY_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    HOLDERS_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    IF_ABSENT_FIELD_NUMBER: _ClassVar[int]
    key: str
    keys: _containers.RepeatedScalarFieldContainer[str]
    owner: str
    mode: str
    holders: int
    ttl_ms: int
    if_absent: bool
    def __init__(self, key: _Optional[str] = ..., keys: _Optional[_Iterable[str]] = ..., owner: _Optional[str] = ..., mode: _Optional[str] = ..., holders: _Optional[int] = ..., ttl_ms: _Optional[int] = ..., if_absent: bool = ...) -> None: ...

class TransactionRelease(_message.Message):
    __slots__ = ("token",)
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    token: str
    def __init__(self, token: _Optional[str] = ...) -> None: ...

class TransactionGet(_message.Message):
    __slots__ = ("key",)
    KEY_FIELD_NUMBER: _ClassVar[int]
    key: str
    def __init__(self, key: _Optional[str] = ...) -> None: ...

class BeginTransactionRequest(_message.Message):
    __slots__ = ("namespace", "ttl_ms")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    ttl_ms: int
    def __init__(self, namespace: _Optional[str] = ..., ttl_ms: _Optional[int] = ...) -> None: ...

class BeginTransactionResponse(_message.Message):
    __slots__ = ("transaction", "expires_at_ms")
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_MS_FIELD_NUMBER: _ClassVar[int]
    transaction: str
    expires_at_ms: int
    def __init__(self, transaction: _Optional[str] = ..., expires_at_ms: _Optional[int] = ...) -> None: ...

class StageTransactionRequest(_message.Message):
    __slots__ = ("namespace", "transaction", "operations")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    transaction: str
    operations: _containers.RepeatedCompositeFieldContainer[TransactionOperation]
    def __init__(self, namespace: _Optional[str] = ..., transaction: _Optional[str] = ..., operations: _Optional[_Iterable[_Union[TransactionOperation, _Mapping]]] = ...) -> None: ...

class StageTransactionResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[TransactionStageResult]
    def __init__(self, results: _Optional[_Iterable[_Union[TransactionStageResult, _Mapping]]] = ...) -> None: ...

class TransactionStageResult(_message.Message):
    __slots__ = ("found", "document")
    FOUND_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    found: bool
    document: TransactionDocument
    def __init__(self, found: bool = ..., document: _Optional[_Union[TransactionDocument, _Mapping]] = ...) -> None: ...

class TransactionDocument(_message.Message):
    __slots__ = ("version", "etag", "content", "content_type", "attributes")
    class AttributesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    version: int
    etag: str
    content: bytes
    content_type: str
    attributes: _containers.ScalarMap[str, str]
    def __init__(self, version: _Optional[int] = ..., etag: _Optional[str] = ..., content: _Optional[bytes] = ..., content_type: _Optional[str] = ..., attributes: _Optional[_Mapping[str, str]] = ...) -> None: ...

class CloseTransactionRequest(_message.Message):
    __slots__ = ("namespace", "transaction")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    transaction: str
    def __init__(self, namespace: _Optional[str] = ..., transaction: _Optional[str] = ...) -> None: ...

class RollbackTransactionRequest(_message.Message):
    __slots__ = ("namespace", "transaction")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    transaction: str
    def __init__(self, namespace: _Optional[str] = ..., transaction: _Optional[str] = ...) -> None: ...

class RollbackTransactionResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListOpenTransactionsRequest(_message.Message):
    __slots__ = ("namespace", "after", "limit")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    after: str
    limit: int
    def __init__(self, namespace: _Optional[str] = ..., after: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class ListOpenTransactionsResponse(_message.Message):
    __slots__ = ("transactions", "next")
    TRANSACTIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    transactions: _containers.RepeatedCompositeFieldContainer[OpenTransaction]
    next: str
    def __init__(self, transactions: _Optional[_Iterable[_Union[OpenTransaction, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class ShowOpenTransactionRequest(_message.Message):
    __slots__ = ("namespace", "name")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class OpenTransaction(_message.Message):
    __slots__ = ("name", "caller", "begun_at_ms", "expires_at_ms", "operation_count", "bytes", "committing", "operations")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CALLER_FIELD_NUMBER: _ClassVar[int]
    BEGUN_AT_MS_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_MS_FIELD_NUMBER: _ClassVar[int]
    OPERATION_COUNT_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    COMMITTING_FIELD_NUMBER: _ClassVar[int]
    OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    name: str
    caller: str
    begun_at_ms: int
    expires_at_ms: int
    operation_count: int
    bytes: int
    committing: bool
    operations: _containers.RepeatedCompositeFieldContainer[StagedOperation]
    def __init__(self, name: _Optional[str] = ..., caller: _Optional[str] = ..., begun_at_ms: _Optional[int] = ..., expires_at_ms: _Optional[int] = ..., operation_count: _Optional[int] = ..., bytes: _Optional[int] = ..., committing: bool = ..., operations: _Optional[_Iterable[_Union[StagedOperation, _Mapping]]] = ...) -> None: ...

class StagedOperation(_message.Message):
    __slots__ = ("operation", "about", "content_bytes")
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    ABOUT_FIELD_NUMBER: _ClassVar[int]
    CONTENT_BYTES_FIELD_NUMBER: _ClassVar[int]
    operation: str
    about: _containers.RepeatedScalarFieldContainer[str]
    content_bytes: int
    def __init__(self, operation: _Optional[str] = ..., about: _Optional[_Iterable[str]] = ..., content_bytes: _Optional[int] = ...) -> None: ...

class BreakOpenTransactionRequest(_message.Message):
    __slots__ = ("namespace", "name")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class BreakOpenTransactionResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListInDoubtTransactionsRequest(_message.Message):
    __slots__ = ("namespace", "after", "limit")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    after: str
    limit: int
    def __init__(self, namespace: _Optional[str] = ..., after: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class ListInDoubtTransactionsResponse(_message.Message):
    __slots__ = ("transactions", "next")
    TRANSACTIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    transactions: _containers.RepeatedCompositeFieldContainer[InDoubtTransaction]
    next: str
    def __init__(self, transactions: _Optional[_Iterable[_Union[InDoubtTransaction, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class ShowInDoubtTransactionRequest(_message.Message):
    __slots__ = ("namespace", "transaction")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    transaction: str
    def __init__(self, namespace: _Optional[str] = ..., transaction: _Optional[str] = ...) -> None: ...

class InDoubtTransaction(_message.Message):
    __slots__ = ("transaction", "state", "coordinator", "parts", "since_at_ms", "undecided_until_ms", "operation_count", "operations")
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    SINCE_AT_MS_FIELD_NUMBER: _ClassVar[int]
    UNDECIDED_UNTIL_MS_FIELD_NUMBER: _ClassVar[int]
    OPERATION_COUNT_FIELD_NUMBER: _ClassVar[int]
    OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    transaction: str
    state: str
    coordinator: str
    parts: _containers.RepeatedScalarFieldContainer[str]
    since_at_ms: int
    undecided_until_ms: int
    operation_count: int
    operations: _containers.RepeatedCompositeFieldContainer[StagedOperation]
    def __init__(self, transaction: _Optional[str] = ..., state: _Optional[str] = ..., coordinator: _Optional[str] = ..., parts: _Optional[_Iterable[str]] = ..., since_at_ms: _Optional[int] = ..., undecided_until_ms: _Optional[int] = ..., operation_count: _Optional[int] = ..., operations: _Optional[_Iterable[_Union[StagedOperation, _Mapping]]] = ...) -> None: ...

class ResolveTransactionRequest(_message.Message):
    __slots__ = ("namespace", "transaction", "force")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    transaction: str
    force: str
    def __init__(self, namespace: _Optional[str] = ..., transaction: _Optional[str] = ..., force: _Optional[str] = ...) -> None: ...

class ResolveTransactionResponse(_message.Message):
    __slots__ = ("outcome", "forced")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    FORCED_FIELD_NUMBER: _ClassVar[int]
    outcome: str
    forced: bool
    def __init__(self, outcome: _Optional[str] = ..., forced: bool = ...) -> None: ...

class CommitTransactionResponse(_message.Message):
    __slots__ = ("results", "duplicate")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[TransactionResult]
    duplicate: bool
    def __init__(self, results: _Optional[_Iterable[_Union[TransactionResult, _Mapping]]] = ..., duplicate: bool = ...) -> None: ...

class TransactionResult(_message.Message):
    __slots__ = ("id", "written", "grant")
    ID_FIELD_NUMBER: _ClassVar[int]
    WRITTEN_FIELD_NUMBER: _ClassVar[int]
    GRANT_FIELD_NUMBER: _ClassVar[int]
    id: str
    written: _documents_pb2.PutDocumentResponse
    grant: _locks_pb2.LockGrant
    def __init__(self, id: _Optional[str] = ..., written: _Optional[_Union[_documents_pb2.PutDocumentResponse, _Mapping]] = ..., grant: _Optional[_Union[_locks_pb2.LockGrant, _Mapping]] = ...) -> None: ...
