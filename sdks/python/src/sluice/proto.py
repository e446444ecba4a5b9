"""The messages of the contract, for calls by ``client.stubs``."""

from ._proto import (
    attachments_pb2,
    bulks_pb2,
    common_pb2,
    consumers_pb2,
    documents_pb2,
    events_pb2,
    limits_pb2,
    locks_pb2,
    messages_pb2,
    namespaces_pb2,
    queues_pb2,
    schedules_pb2,
    session_pb2,
    transactions_pb2,
)

__all__ = [
    "attachments_pb2",
    "bulks_pb2",
    "common_pb2",
    "consumers_pb2",
    "documents_pb2",
    "events_pb2",
    "limits_pb2",
    "locks_pb2",
    "messages_pb2",
    "namespaces_pb2",
    "queues_pb2",
    "schedules_pb2",
    "session_pb2",
    "transactions_pb2",
]
