"""JSON values into frozen dataclasses, strictly, at the one door through which they come.

Every field must be there, no other may be, and each must have its declared type: a default in a
dataclass is for those who build it in code, not for a sender that forgot a field.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from lsmtune.errors import LsmtuneError, nearest_name

T = TypeVar("T")


class ProtocolError(LsmtuneError):
    """The other side of the protocol said something that is not in it; `str()` names the field."""


def read(
    kind: type[T],
    data: object,
    where: str,
    *,
    omit: frozenset[str] = frozenset(),
    optional: frozenset[str] = frozenset(),
) -> T:
    """`data`, as parsed from JSON, as the dataclass `kind`.

    `where` is the path that errors start with. The fields in `omit` may not be in `data`, those in
    `optional` need not be; they keep their defaults then. Raises ProtocolError that names the first
    field that is wrong.
    """
    if not isinstance(data, dict):
        raise ProtocolError(f"{where}: found {_kind_of(data)}; allowed: an object")
    expected = {name: hint for name, hint in _hints(kind).items() if name not in omit}
    for name in data:
        if name not in expected:
            near = nearest_name(name, expected)
            raise ProtocolError(
                f"{where}.{name}: unknown field{f'; did you mean {near}?' if near else ''}"
            )
    values = {}
    for name, hint in expected.items():
        if name not in data and name in optional:
            continue
        if name not in data:
            raise ProtocolError(f"{where}.{name}: missing field")
        values[name] = _value(hint, data[name], f"{where}.{name}")
    return kind(**values)


def _hints(kind: type[Any]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {f.name: hints[f.name] for f in fields(kind)}


def _value(hint: Any, data: object, where: str) -> object:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return _optional(hint, data, where)
    if origin is tuple:
        return _tuple(get_args(hint)[0], data, where)
    if origin is Mapping:
        return _mapping(get_args(hint)[1], data, where)
    if is_dataclass(hint):
        return read(cast("type[object]", hint), data, where)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _enum(hint, data, where)
    return _scalar(hint, data, where)


def _optional(hint: Any, data: object, where: str) -> object:
    if data is None:
        return None
    (inner,) = (arm for arm in get_args(hint) if arm is not type(None))
    return _value(inner, data, where)


def _tuple(item: Any, data: object, where: str) -> tuple[object, ...]:
    if not isinstance(data, list):
        raise ProtocolError(f"{where}: found {_kind_of(data)}; allowed: an array")
    return tuple(_value(item, element, f"{where}[{i}]") for i, element in enumerate(data))


def _mapping(item: Any, data: object, where: str) -> dict[str, object]:
    if not isinstance(data, dict):
        raise ProtocolError(f"{where}: found {_kind_of(data)}; allowed: an object")
    return {key: _value(item, element, f"{where}.{key}") for key, element in data.items()}


def _enum(kind: type[Enum], data: object, where: str) -> Enum:
    for member in kind:
        if member.value == data:
            return member
    allowed = ", ".join(str(member.value) for member in kind)
    raise ProtocolError(f"{where}: found {data!r}; allowed: {allowed}")


def _scalar(kind: type[Any], data: object, where: str) -> object:
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    # bool is a subclass of int in Python, not in JSON.
    if not isinstance(data, kind) or (isinstance(data, bool) and kind is not bool):
        allowed = {str: "text", int: "an integer", float: "a number", bool: "true or false"}[kind]
        raise ProtocolError(f"{where}: found {_kind_of(data)}; allowed: {allowed}")
    return data


def _kind_of(data: object) -> str:
    names = {dict: "an object", list: "an array", type(None): "null"}
    return names.get(type(data)) or repr(data)[:80]
