"""Errors out of gRPC statuses."""

from __future__ import annotations

from typing import Any

import grpc
import grpc.aio

from ._proto import common_pb2, status_pb2
from .errors import SluiceError, error_of

DETAILS = "grpc-status-details-bin"
#: Beginnings of texts about a server that is not there, or whose name says nothing: nothing was sent.
NEVER_CONNECTED = ("failed to connect", "errors resolving", "dns resolution failed")
_BY_STATUS = {
    grpc.StatusCode.INVALID_ARGUMENT: "invalid_argument",
    grpc.StatusCode.UNAUTHENTICATED: "unauthenticated",
    grpc.StatusCode.PERMISSION_DENIED: "forbidden",
    grpc.StatusCode.UNIMPLEMENTED: "method_not_allowed",
    grpc.StatusCode.DEADLINE_EXCEEDED: "timeout",
    grpc.StatusCode.RESOURCE_EXHAUSTED: "body_too_large",
}


def from_rpc(error: grpc.aio.AioRpcError) -> SluiceError:
    """The error of a call: what the server says, or else what became of the connection."""
    trailers: Any = error.trailing_metadata() or ()
    for name, value in trailers:
        if name == DETAILS and isinstance(value, bytes):
            found = from_details(value)
            if found is not None:
                return found
    return _of_connection(error.code(), error.details() or "")


def from_details(value: bytes) -> SluiceError | None:
    """The error in a google.rpc.Status, if it is one of the server's."""
    status = status_pb2.Status.FromString(value)
    info, retry_after = None, None
    for detail in status.details:
        if detail.type_url.endswith("google.rpc.ErrorInfo"):
            info = status_pb2.ErrorInfo.FromString(detail.value)
        elif detail.type_url.endswith("google.rpc.RetryInfo"):
            delay = status_pb2.RetryInfo.FromString(detail.value).retry_delay
            retry_after = delay.seconds + delay.nanos / 1e9
    if info is None or info.domain != "sluice":
        return None
    return error_of(info.reason, status.message, dict(info.metadata), retry_after)


def from_item(error: common_pb2.Error) -> SluiceError:
    """The error of one item of a list, or of a frame."""
    return error_of(error.code, error.message, dict(error.details))


def _of_connection(status: grpc.StatusCode, text: str) -> SluiceError:
    if status == grpc.StatusCode.UNAVAILABLE:
        # gRPC tells only by its text whether a connection was ever made.
        never = text.lower().startswith(NEVER_CONNECTED) and "reset" not in text.lower()
        return error_of("unreachable" if never else "connection_lost", text)
    code = _BY_STATUS.get(status)
    return error_of(code or "connection_lost", f"{text or 'the call has ended'} ({status.name})")
