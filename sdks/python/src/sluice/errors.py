"""Errors, told apart by type and by ``code``.

Every error that the server answers with has a stable code (``docs/errors.md``). Each code belongs to one of
the classes below, so that a program can catch a class or compare the code.
"""

from __future__ import annotations

from collections.abc import Mapping


class SluiceError(Exception):
    """An error of the server or of the way to it."""

    def __init__(
        self,
        code: str,
        message: str,
        details: Mapping[str, str] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{message} [{code}]")
        #: Stable code in snake case.
        self.code = code
        #: Text for people.
        self.message = message
        #: The values in the message.
        self.details: dict[str, str] = dict(details or {})
        #: Seconds after which a repeat may succeed, if the server has told.
        self.retry_after = retry_after

    def __reduce__(self) -> tuple[type[SluiceError], tuple[object, ...]]:
        return type(self), (self.code, self.message, self.details, self.retry_after)


class InvalidArgument(SluiceError, ValueError):
    """The request is wrong: the same one gets the same answer again.

    With the code ``usage`` it is what a client is made with: its servers, its files, its token.
    """


class TooLarge(InvalidArgument):
    """The request, or a part of it, is larger than allowed."""


class Unauthenticated(SluiceError):
    """There are no credentials, or they are wrong, expired or revoked."""


class Forbidden(SluiceError):
    """The caller may not do this."""


class NotFound(SluiceError):
    """There is no such queue, message, document, ..."""


class Conflict(SluiceError):
    """The present state does not allow this."""


class VersionMismatch(Conflict):
    """What was to be changed has another version by now."""


class LeaseLost(Conflict):
    """The lease of a message, or the grant of a lock, is over."""


class LockHeld(Conflict):
    """Others hold the lock, and the wait was over."""


class AlreadySettled(Conflict):
    """The receipt has settled its message before."""


class Cancelled(Conflict):
    """The message was cancelled while it was leased."""


class TransactionLost(Conflict):
    """The transaction is not open any more, or was not decided in time. Begin a new one."""


class LimitReached(SluiceError):
    """A queue, a quota, a limit or the disk is full."""


class Overloaded(SluiceError):
    """The server has too much to do, or the caller asks too often: come back later."""


class Unavailable(SluiceError):
    """No server can be reached that does this now; nothing was done unless the code tells otherwise."""


class OutcomeUnknown(Unavailable):
    """Nobody knows whether the call took effect."""


class Timeout(SluiceError, TimeoutError):
    """The time for the call, or for waiting, is over."""


class ServerFailed(SluiceError):
    """The server has failed, or stored data is damaged."""


class MessageDead(SluiceError):
    """The message whose result is waited for is a dead letter."""


_CLASSES: dict[type[SluiceError], str] = {
    InvalidArgument: (
        "usage invalid_json invalid_protobuf frame_out_of_order unknown_field duplicate_field wrong_type"
        " missing_field conflicting_fields invalid_argument invalid_name invalid_message_id invalid_receipt"
        " query_too_costly incomplete_body tls_required method_not_allowed unsupported_content_encoding"
        " unsupported_transfer_encoding unsupported_media_type"
    ),
    TooLarge: "head_too_large body_too_large payload_too_large headers_too_large batch_too_large",
    Unauthenticated: "unauthenticated",
    Forbidden: "forbidden approval_needed forbidden_origin",
    Conflict: (
        "changes_forgotten wrong_state queue_closed token_exists no_cluster node_exists node_refused"
        " not_in_force not_finalized not_transferred admin_needed limit_in_use upload_offset"
        " upload_incomplete digest_mismatch patch_failed unique_key_taken namespace_exists"
        " namespace_not_empty idempotency_mismatch no_test_server"
    ),
    VersionMismatch: "version_mismatch",
    LeaseLost: "lease_lost",
    LockHeld: "lock_held",
    AlreadySettled: "already_settled",
    Cancelled: "cancelled",
    TransactionLost: "transaction_lost transaction_aborted",
    LimitReached: "queue_full quota_exceeded limit_exceeded disk_full",
    Overloaded: "overloaded rate_limited",
    Unavailable: "shutting_down not_leader no_leader in_doubt journal_failed unreachable",
    OutcomeUnknown: "outcome_unknown connection_lost",
    Timeout: "request_timeout timeout",
    ServerFailed: "payload_damaged internal",
}
_BY_CODE = {code: kind for kind, codes in _CLASSES.items() for code in codes.split()}


def error_of(
    code: str,
    message: str,
    details: Mapping[str, str] | None = None,
    retry_after: float | None = None,
) -> SluiceError:
    """The error with this code, as an instance of its class."""
    kind = NotFound if code.endswith("not_found") else _BY_CODE.get(code, SluiceError)
    return kind(code, message, details, retry_after)
