"""Frozen dataclasses to JSON values and back, so that a Measurement is kept whole."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

Record = TypeVar("Record")


def encode(value: object) -> Any:
    """`value` in terms of dict, list, str, int, float, bool and None.

    Raises TypeError for what has no such form.
    """
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: encode(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encode(item) for item in value]
    raise TypeError(f"{type(value).__name__} cannot be stored")


def decode(record: type[Record], stored: object) -> Record:
    """The `record` that `encode` turned into `stored`.

    A field that is missing takes its default, so that records written before a field was added
    can still be read. Raises TypeError or ValueError when `stored` has another form.
    """
    decoded: Record = _decode(record, stored)
    return decoded


def _decode(hint: Any, stored: Any) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _decode_union(arguments, stored)
    if is_dataclass(hint) and isinstance(hint, type):
        return _decode_dataclass(hint, stored)
    if origin is tuple:
        return tuple(_decode(arguments[0], item) for item in stored)
    if origin is not None and issubclass(origin, Mapping):
        return {key: _decode(arguments[1], item) for key, item in stored.items()}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint(stored)
    if hint is float and isinstance(stored, int) and not isinstance(stored, bool):
        return float(stored)
    if not isinstance(stored, hint):
        raise TypeError(f"expected {hint.__name__}, found {type(stored).__name__}")
    return stored


def _decode_union(members: tuple[Any, ...], stored: Any) -> Any:
    if stored is None and type(None) in members:
        return None
    wanted = [member for member in members if member is not type(None)]
    # Several plain types (an option's value): JSON has told them apart already.
    return stored if type(stored) in wanted else _decode(wanted[0], stored)


def _decode_dataclass(hint: type, stored: Any) -> Any:
    if not isinstance(stored, Mapping):
        raise TypeError(f"expected an object for {hint.__name__}, found {type(stored).__name__}")
    hints = _hints(hint)
    return hint(**{name: _decode(hints[name], stored[name]) for name in hints if name in stored})


@cache
def _hints(hint: type) -> dict[str, Any]:
    return get_type_hints(hint)
