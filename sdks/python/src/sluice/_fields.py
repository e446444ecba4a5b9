"""Messages of the contract out of what callers give: an error names the field that cannot hold its value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from google.protobuf.descriptor import FieldDescriptor as Field

from .errors import SluiceError, error_of

M = TypeVar("M")
P = ParamSpec("P")
#: Errors of the library for a value that a field cannot hold; by their texts alone nobody knows which field.
FAULTS = (TypeError, ValueError, AttributeError)
_NUMBERS = {
    Field.CPPTYPE_INT32: 31,
    Field.CPPTYPE_INT64: 63,
    Field.CPPTYPE_UINT32: 32,
    Field.CPPTYPE_UINT64: 64,
}
_SIGNED = (Field.CPPTYPE_INT32, Field.CPPTYPE_INT64)


def invalid(field: str, reason: str) -> SluiceError:
    """The error for a value that no server needs to see."""
    return error_of("invalid_argument", f"{field}: {reason}", {"field": field})


def made(kind: Callable[P, M], /, *args: P.args, **fields: P.kwargs) -> M:
    """A message of this kind. :class:`InvalidArgument`: a field cannot hold its value."""
    try:
        return kind(*args, **fields)
    except FAULTS as error:
        raise _fault(kind, fields) or error from None


def assign(target: Any, field: str, value: Any) -> None:
    """Sets a field. :class:`InvalidArgument`: it cannot hold the value."""
    try:
        setattr(target, field, value)
    except FAULTS as error:
        raise invalid(field, _expected(target.DESCRIPTOR.fields_by_name[field], value, error)) from None


def _fault(kind: Any, fields: dict[str, Any]) -> Exception | None:
    """The error of the first field that does not take its value alone."""
    for name, value in fields.items():
        if name not in kind.DESCRIPTOR.fields_by_name:
            return TypeError(f"there is no option {name!r}")
        try:
            kind(**{name: value})
        except FAULTS as error:
            return invalid(name, _expected(kind.DESCRIPTOR.fields_by_name[name], value, error))
    return None


def _expected(field: Field, value: Any, error: Exception) -> str:
    if isinstance(error, UnicodeError):
        return no_text(error)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return f"expected texts by name, not {shown(value)}"
    each = "a list, each " if field.is_repeated else ""
    return f"expected {each}{_kind(field)}, not {shown(value)}"


def _kind(field: Field) -> str:
    if field.cpp_type in _NUMBERS:
        most = 2 ** _NUMBERS[field.cpp_type]
        return f"a whole number from {-most if field.cpp_type in _SIGNED else 0} to {most - 1}"
    if field.cpp_type == Field.CPPTYPE_STRING:
        return "bytes" if field.type == Field.TYPE_BYTES else "a text"
    return "True or False" if field.cpp_type == Field.CPPTYPE_BOOL else "a value of another type"


def no_text(error: UnicodeError) -> str:
    """The reason why a text is refused."""
    return f"expected a text that can be written as UTF-8: {error}"


def shown(value: Any) -> str:
    """A value in a message of an error."""
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}..."
