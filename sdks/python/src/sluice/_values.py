"""Durations, times and payloads, as Python has them and as the server has them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from ._fields import invalid, no_text, shown

#: A duration: seconds, or a timedelta.
Duration = float | timedelta
#: A point in time: seconds since 1970, or a datetime.
Time = float | datetime
JSON_TYPE = "application/json"
TEXT_TYPE = "text/plain; charset=utf-8"


@dataclass(frozen=True)
class Json:
    """A value that is sent as JSON, where a bare one would not be: a text."""

    value: Any


_Plain = str | int | float | bool | None
#: What can be sent: bytes as they are, a text as UTF-8, anything else as JSON.
Payload = bytes | bytearray | memoryview | _Plain | Json | Mapping[str, Any] | Sequence[Any]


#: Seconds that the fields of the contract can hold.
_SECONDS_MAX = 9.2e15


def encode(payload: Payload, field: str = "payload") -> tuple[bytes, str]:
    """The bytes of a payload, and its media type; none of bytes.

    :class:`InvalidArgument`: neither JSON nor UTF-8 can hold it.
    """
    if isinstance(payload, (bytes, bytearray, memoryview)):
        return bytes(payload), ""
    if isinstance(payload, str):
        return _utf8(payload, field), TEXT_TYPE
    value = payload.value if isinstance(payload, Json) else payload
    return _utf8(_json(value, field), field), JSON_TYPE


def decode(data: bytes, content_type: str) -> Any:
    """The value of bytes, by their media type: of JSON, a text, or bytes."""
    kind = content_type.split(";", 1)[0].strip().lower()
    if kind == JSON_TYPE or kind.endswith("+json"):
        return json.loads(data)
    return data.decode() if kind.startswith("text/") else data


def to_json(value: Any, field: str) -> str:
    """JSON without blanks. :class:`InvalidArgument`: JSON cannot hold the value."""
    text = _json(value, field)
    _utf8(text, field)
    return text


def _json(value: Any, field: str) -> str:
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise invalid(field, f"no JSON can be made of it: {error}") from error


def _utf8(text: str, field: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise invalid(field, no_text(error)) from None


def millis(duration: Duration, field: str) -> int:
    """Milliseconds, rounded. :class:`InvalidArgument`: the field cannot hold them."""
    return _millis(seconds_of(duration, field), field, duration, "seconds")


def seconds_of(duration: Duration, field: str) -> float:
    """Seconds. :class:`InvalidArgument`: no number."""
    seconds = _number(duration.total_seconds() if isinstance(duration, timedelta) else duration)
    if seconds is None:
        raise invalid(field, f"expected a number of seconds or a timedelta, not {shown(duration)}")
    return seconds


def epoch_millis(time: Time, field: str) -> int:
    """Milliseconds since 1970; a datetime without a zone is one of this machine.

    :class:`InvalidArgument`: the field cannot hold them.
    """
    seconds = _number(time.timestamp() if isinstance(time, datetime) else time)
    if seconds is None:
        raise invalid(field, f"expected seconds since 1970 or a datetime, not {shown(time)}")
    return _millis(seconds, field, time, "seconds since 1970")


def _number(value: Any) -> float | None:
    try:
        number = float(value) if not isinstance(value, (str, bytes)) else math.nan
    except (TypeError, ValueError, OverflowError):
        return None
    return None if math.isnan(number) else number


def _millis(seconds: float, field: str, given: Any, unit: str) -> int:
    if not 0 <= seconds <= _SECONDS_MAX:
        raise invalid(field, f"expected from 0 to {_SECONDS_MAX:.1e} {unit}, not {shown(given)}")
    return round(seconds * 1000)


def time_of(milliseconds: int) -> datetime:
    """The time, in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
