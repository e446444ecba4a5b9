"""Messages to and from those of the contract."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ._fields import FAULTS, assign, invalid, made, no_text, shown
from ._otel import IS_ON, inject
from ._proto import common_pb2, messages_pb2
from ._values import Payload, encode, epoch_millis, millis, time_of
from .errors import SluiceError
from .messages import (
    Backoff,
    Message,
    Outgoing,
    Result,
    SendOptions,
    Sent,
    Step,
    StepOptions,
    To,
    Unique,
    _Result,
)

Filled = TypeVar("Filled", common_pb2.Message, common_pb2.Step, messages_pb2.GroupMessage)


def message(outgoing: Outgoing) -> common_pb2.Message:
    """A message to send."""
    return _fill(common_pb2.Message(), outgoing.payload, outgoing.options)


def group_message(to: To) -> messages_pb2.GroupMessage:
    """A message with its queue."""
    return _fill(made(messages_pb2.GroupMessage, queue=to.queue), to.payload, to.options)


def step(one: Step) -> common_pb2.Step:
    """A step of a chain."""
    target = made(common_pb2.Step, queue=one.queue)
    if isinstance(one.payload, _Result):
        _set_options(target, one.options)
        return target
    return _fill(target, one.payload, one.options)


def trace(target: common_pb2.Message | messages_pb2.GroupMessage) -> None:
    """Puts a message, with its steps, into the present trace."""
    if not IS_ON:
        return
    inject(target.headers)
    for one in target.chain:
        inject(one.headers)
    if target.HasField("on_failure"):
        inject(target.on_failure.headers)


def outgoing_of(payload: Payload | Outgoing) -> Outgoing:
    """A bare payload is one without options."""
    return payload if isinstance(payload, Outgoing) else Outgoing(payload)


def id_of(sent: str | Sent) -> str:
    """The id, given as such or as what a send has returned."""
    return sent if isinstance(sent, str) else sent.id


def _fill(target: Filled, payload: Payload, options: SendOptions | StepOptions) -> Filled:
    target.payload, target.content_type = encode(payload)
    _set_options(target, options)
    return target


def _set_options(target: Any, options: SendOptions | StepOptions) -> None:
    for name, value in options.items():
        if value is None:
            continue
        if name in _SETTERS:
            _set(target, name, value)
        elif name in _PLAIN:
            assign(target, name, value)
        else:
            raise TypeError(f"a message has no option {name!r}")


def _set(target: Any, name: str, value: Any) -> None:
    try:
        _SETTERS[name](target, value)
    except SluiceError:
        raise
    except UnicodeError as error:
        raise invalid(name, no_text(error)) from None
    except FAULTS as error:
        raise invalid(name, f"{_SHAPES.get(name, error)}, not {shown(value)}") from None


_SHAPES = {
    "headers": "expected texts by name",
    "tags": "expected a list of texts",
    "depends_on": "expected a list of ids",
    "chain": "expected a list of steps",
    "on_failure": "expected a step",
}
_PLAIN = {
    "content_type", "priority", "max_attempts", "ordering_key", "fair_key", "limit_key", "cost",
    "correlation_id", "reply_to", "hold", "depends_mode", "on_parent_failed",
}  # fmt: skip


def _headers(target: Any, value: Any) -> None:
    for name, text in value.items():
        target.headers.add(name=name, value=text)


def _backoff(target: Any, value: Any) -> None:
    target.backoff.CopyFrom(backoff(value))


def _unique(target: Any, value: Unique | str) -> None:
    unique = Unique(value) if isinstance(value, str) else value
    filled = made(common_pb2.Unique, key=unique.key, until=unique.until, on_duplicate=unique.on_duplicate)
    if unique.window is not None:
        filled.window_ms = millis(unique.window, "window")
    target.unique.CopyFrom(filled)


def _depends_on(target: Any, value: Sequence[str | Sent]) -> None:
    target.depends_on.extend(id_of(one) for one in value)


def _chain(target: Any, value: Sequence[Step]) -> None:
    target.chain.extend(step(one) for one in value)


def _setter(field: str, name: str, convert: Callable[[Any, str], Any]) -> Callable[[Any, Any], None]:
    return lambda target, value: setattr(target, field, convert(value, name))


_SETTERS: dict[str, Callable[[Any, Any], None]] = {
    "headers": _headers,
    "tags": lambda target, value: target.tags.extend(value),
    "backoff": _backoff,
    "unique": _unique,
    "depends_on": _depends_on,
    "chain": _chain,
    "on_failure": lambda target, value: target.on_failure.CopyFrom(step(value)),
    "delay": _setter("delay_ms", "delay", millis),
    "ttl": _setter("ttl_ms", "ttl", millis),
    "result_ttl": _setter("result_ttl_ms", "result_ttl", millis),
    "deliver_at": _setter("deliver_at_ms", "deliver_at", epoch_millis),
    "expires_at": _setter("expires_at_ms", "expires_at", epoch_millis),
}


def backoff(value: Any) -> common_pb2.Backoff:
    """A backoff; a duration is a fixed one, without jitter."""
    one = value if isinstance(value, Backoff) else Backoff("fixed", base=value, jitter_percent=0)
    return made(
        common_pb2.Backoff,
        kind=one.kind,
        base_ms=None if one.base is None else millis(one.base, "base"),
        cap_ms=None if one.cap is None else millis(one.cap, "cap"),
        jitter_percent=one.jitter_percent,
    )


def delivered(got: common_pb2.Delivered) -> Message:
    """A message that was received."""
    taken = object.__new__(Message)
    # A frozen class sets each of its fields by a call of its own, which would take most of the time here.
    taken.__dict__.update(
        id=got.id,
        receipt=got.receipt,
        queue=got.queue,
        payload=got.payload,
        content_type=got.content_type,
        headers={header.name: header.value for header in got.headers},
        tags=list(got.tags),
        priority=got.priority,
        attempt=got.attempt,
        max_attempts=got.max_attempts,
        deliveries=got.deliveries,
        sent_at=time_of(got.sent_at_ms),
        lease_until=time_of(got.lease_until_ms),
        correlation_id=got.correlation_id,
        reply_to=got.reply_to,
        from_queue=got.from_queue,
        reason=got.reason,
        checkpoint=got.checkpoint if got.HasField("checkpoint") else None,
    )
    return taken


def result(got: messages_pb2.AwaitResultResponse) -> Result:
    """What became of a message."""
    progress = (got.progress.percent, got.progress.note) if got.HasField("progress") else None
    return Result(
        state=got.state,
        payload=got.result,
        content_type=got.result_content_type,
        reason=got.reason,
        progress=progress,
    )
