"""Durations, times and payloads, as Python has them and as the server has them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

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


def encode(payload: Payload) -> tuple[bytes, str]:
    """The bytes of a payload, and its media type; none of bytes."""
    if isinstance(payload, (bytes, bytearray, memoryview)):
        return bytes(payload), ""
    if isinstance(payload, str):
        return payload.encode(), TEXT_TYPE
    value = payload.value if isinstance(payload, Json) else payload
    return to_json(value).encode(), JSON_TYPE


def decode(data: bytes, content_type: str) -> Any:
    """The value of bytes, by their media type: of JSON, a text, or bytes."""
    kind = content_type.split(";", 1)[0].strip().lower()
    if kind == JSON_TYPE or kind.endswith("+json"):
        return json.loads(data)
    return data.decode() if kind.startswith("text/") else data


def to_json(value: Any) -> str:
    """JSON without blanks."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def millis(duration: Duration) -> int:
    """Milliseconds, rounded."""
    seconds = duration.total_seconds() if isinstance(duration, timedelta) else duration
    return round(seconds * 1000)


def seconds_of(duration: Duration) -> float:
    """Seconds."""
    return duration.total_seconds() if isinstance(duration, timedelta) else float(duration)


def epoch_millis(time: Time) -> int:
    """Milliseconds since 1970; a datetime without a zone is one of this machine."""
    return round((time.timestamp() if isinstance(time, datetime) else time) * 1000)


def time_of(milliseconds: int) -> datetime:
    """The time, in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
