from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class GetTestTimeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AdvanceTestTimeRequest(_message.Message):
    __slots__ = ("advance_ms",)
    ADVANCE_MS_FIELD_NUMBER: _ClassVar[int]
    advance_ms: int
    def __init__(self, advance_ms: _Optional[int] = ...) -> None: ...

class TestTime(_message.Message):
    __slots__ = ("now_ms", "ahead_ms")
    NOW_MS_FIELD_NUMBER: _ClassVar[int]
    AHEAD_MS_FIELD_NUMBER: _ClassVar[int]
    now_ms: int
    ahead_ms: int
    def __init__(self, now_ms: _Optional[int] = ..., ahead_ms: _Optional[int] = ...) -> None: ...
