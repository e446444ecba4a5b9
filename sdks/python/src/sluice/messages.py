"""Messages as they are sent, as they are received, and what became of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict

from ._values import Duration, Payload, Time, decode

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass(frozen=True)
class Backoff:
    """The delay before another attempt: ``none``, ``fixed``, ``linear`` or ``exponential``."""

    kind: str = "exponential"
    base: Duration | None = None
    cap: Duration | None = None
    jitter_percent: int | None = None


@dataclass(frozen=True)
class Unique:
    """Allows at most one message of its queue with this key at a time."""

    key: str
    window: Duration | None = None
    #: When the key becomes free: ``gone`` or ``window``.
    until: str | None = None
    #: What a duplicate does: ``keep``, ``replace_payload`` or ``debounce``.
    on_duplicate: str | None = None


class StepOptions(TypedDict, total=False):
    """The fields of a message that a step of a chain may have."""

    #: Media type; default: ``application/json`` or ``text/plain`` by the payload, none of bytes.
    content_type: str
    headers: Mapping[str, str]
    tags: Sequence[str]
    #: 0 to 9, higher first.
    priority: int
    #: Time until the message is ready. Not together with ``deliver_at``.
    delay: Duration
    deliver_at: Time
    max_attempts: int
    #: A number is the fixed delay between two attempts.
    backoff: Backoff | Duration
    #: Messages with this key are delivered first in, first out, one of them in flight.
    ordering_key: str
    #: Messages of different keys are served in turn.
    fair_key: str
    #: Counts against the limit per key that the queue follows.
    limit_key: str
    #: Counts instead of 1 in the rates of the limit that the queue follows, with each delivery.
    cost: int
    #: The message expires after this time if it still waits. Not together with ``expires_at``.
    ttl: Duration
    expires_at: Time
    #: How long the result of the ack is kept.
    result_ttl: Duration
    correlation_id: str
    #: Queue that receives the result as a message.
    reply_to: str
    #: Held until somebody approves it.
    hold: bool


class SendOptions(StepOptions, total=False):
    """The fields of a message."""

    #: At most one message of its queue with this key at a time.
    unique: Unique | str
    #: Messages to wait for: their ids, or what their send has returned; ``#0`` is the first of this send.
    depends_on: Sequence[str | Sent]
    #: Wait for ``all`` of them or for ``any``.
    depends_mode: str
    #: What happens if they fail: ``cancel``, ``hold`` or ``run``.
    on_parent_failed: str
    #: Steps that follow when the message is done.
    chain: Sequence[Step]
    #: What is sent when the message, or a step of its chain, fails.
    on_failure: Step


class Outgoing:
    """A payload with options of its own: ``Outgoing("hello", priority=9)``."""

    def __init__(self, payload: Payload, **options: Unpack[SendOptions]) -> None:
        self.payload = payload
        self.options: SendOptions = options


class To(Outgoing):
    """A message and its queue: ``To("mail", {"to": "ann"}, delay=60)``."""

    def __init__(self, queue: str, payload: Payload, **options: Unpack[SendOptions]) -> None:
        super().__init__(payload, **options)
        self.queue = queue


class _Result:
    """Stands for the result of the step before."""


RESULT = _Result()


class Step:
    """A step of a chain. Its payload is the result of the step before, unless it has one of its own."""

    def __init__(
        self, queue: str, payload: Payload | _Result = RESULT, **options: Unpack[StepOptions]
    ) -> None:
        self.queue = queue
        self.payload = payload
        self.options: StepOptions = options


@dataclass(frozen=True)
class Sent:
    """A message that was sent."""

    id: str
    #: The same send was done before, or another message has its unique key: the id is that message's.
    duplicate: bool = False


@dataclass(frozen=True)
class SentMany:
    """Messages that were sent together."""

    #: In the order of the messages.
    ids: list[str]
    #: The same send was done before, by its idempotency key.
    duplicate: bool = False
    #: Places, from 0, of the messages that are duplicates by their unique keys.
    duplicates: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class SentGroup:
    """A group that was sent."""

    #: Id of the callback.
    id: str
    #: In the order of the messages.
    ids: list[str]
    duplicate: bool = False


class HasContent:
    """What has bytes with a media type."""

    payload: bytes
    content_type: str

    @property
    def value(self) -> Any:
        """The payload by its media type: the value of JSON, a text, or bytes."""
        return decode(self.payload, self.content_type)

    @property
    def text(self) -> str:
        """The payload as text."""
        return self.payload.decode()


@dataclass(frozen=True)
class Message(HasContent):
    """A message as its consumer receives it."""

    id: str
    #: Proof of this delivery, with which it is settled.
    receipt: str = field(repr=False)
    queue: str
    payload: bytes
    content_type: str
    headers: dict[str, str]
    tags: list[str]
    priority: int
    #: From 1.
    attempt: int
    max_attempts: int
    #: In all, with those that did not count as attempts.
    deliveries: int
    sent_at: datetime
    #: By the server's clock; moved by each extension.
    lease_until: datetime
    correlation_id: str
    reply_to: str
    #: Of a dead letter from another queue: where and why it died.
    from_queue: str
    reason: str
    #: What an earlier attempt has left with ``extend``.
    checkpoint: bytes | None


@dataclass(frozen=True)
class Result(HasContent):
    """What became of a message: ``done``, ``dead`` or, until then, ``pending``."""

    state: str
    #: The result of the ack; empty if there is none.
    payload: bytes
    content_type: str
    #: Why it is dead.
    reason: str
    #: Progress of the work: percent and a note, if the worker has reported any.
    progress: tuple[int, str] | None
