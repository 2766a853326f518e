"""Frozen types to JSON values and back, so that a Measurement is kept whole.

pydantic reads them; what reads a type is built when it is first used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import PurePath
from typing import Any, TypeVar

from pydantic import TypeAdapter

Record = TypeVar("Record")


def adapter(kind: Any) -> TypeAdapter[Any]:
    """What reads values of `kind`, writes them, and knows their JSON Schema."""
    made: TypeAdapter[Any] = _adapter(kind)
    return made


_adapter = cache(TypeAdapter)


def encode(value: object) -> Any:
    """`value` in terms of dict, list, str, int, float, bool and None.

    Digests are taken of the result. pydantic would write a set as well, in no fixed order, and
    leave out what a type's serialisers leave out.

    Raises TypeError for what has no such form.
    """
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, PurePath):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: encode(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encode(item) for item in value]
    raise TypeError(f"{type(value).__name__} cannot be stored")


def decode(record: type[Record], stored: object) -> Record:
    """The `record` that `encode` turned into `stored`.

    A field that is missing takes its default. Raises ValueError when `stored` has another form.
    """
    decoded: Record = adapter(record).validate_python(stored)
    return decoded
