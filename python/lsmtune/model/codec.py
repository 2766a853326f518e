"""Frozen types to JSON values and back: what is stored, and what other programs send.

pydantic reads them; what reads a type is built when it is first used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import PurePath
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, SchemaValidator

from lsmtune.errors import LsmtuneError, nearest_name

T = TypeVar("T")


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


def decode(kind: type[T], stored: object) -> T:
    """The `kind` that `encode` turned into `stored`.

    A field that is missing takes its default. Raises ValueError when `stored` has another form.
    """
    decoded: T = adapter(kind).validate_python(stored)
    return decoded


# --- JSON values of another program, read strictly
#
# Every field must be there, no other may be, and each must have its declared type: a default in a
# dataclass is for those who build it in code, not for a sender that forgot a field.

_ALLOWED = {
    "bool_type": "true or false",
    "dataclass_type": "an object",
    "dict_type": "an object",
    "float_type": "a number",
    "int_from_float": "an integer",
    "int_type": "an integer",
    "string_type": "text",
    "tuple_type": "an array",
}
_KINDS = {dict: "an object", list: "an array", type(None): "null"}
_UNKNOWN = "unexpected_keyword_argument"


class ProtocolError(LsmtuneError):
    """The other side of the protocol said something that is not in it; `str()` names the field."""


def read(kind: type[T], data: object, where: str, *, optional: frozenset[str] = frozenset()) -> T:
    """`data`, as parsed from JSON, as the dataclass `kind`.

    `where` is the path that errors start with. The fields in `optional` need not be in `data`; they
    keep their defaults then. Raises ProtocolError that names the first field that is wrong.
    """
    try:
        made: T = _validator(cast("Any", kind), optional).validate_python(data)
    except ValidationError as error:
        details = error.errors(include_url=False)
        first = min(details, key=lambda detail: detail["type"] != _UNKNOWN)
        raise ProtocolError(_problem(first, kind, where)) from None
    return made


@cache
def _validator(kind: Any, optional: frozenset[str]) -> SchemaValidator:
    return SchemaValidator(_strict(adapter(kind).core_schema, optional))


def _strict(schema: Any, optional: frozenset[str]) -> Any:
    """pydantic's `schema` of dataclasses without the defaults of fields that are not `optional`.

    Numbers and texts have to be what they are; objects, arrays and texts become dataclasses, tuples
    and enumerations, which JSON does not have.
    """
    if isinstance(schema, list):
        return [_strict(item, optional) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _strict(item, optional) for key, item in schema.items()}
    match made.get("type"):
        case "dataclass-field" if made["schema"]["type"] == "default":
            if made["name"] not in optional:
                made["schema"] = made["schema"]["schema"]
        case "dataclass-args":
            made["extra_behavior"] = "forbid"
        case "bool" | "int" | "float" | "str":
            made["strict"] = True
    return made


def _problem(detail: ErrorDetails, kind: type[Any], where: str) -> str:
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in detail["loc"]]
    place, problem, found = f"{where}{''.join(parts)}", detail["type"], detail["input"]
    if problem == "missing":
        return f"{place}: missing field"
    if problem == _UNKNOWN:
        near = nearest_name(str(detail["loc"][-1]), [field.name for field in fields(kind)])
        return f"{place}: unknown field{f'; did you mean {near}?' if near else ''}"
    if problem == "enum":
        allowed = detail["ctx"]["expected"].replace("'", "").replace(" or ", ", ")
        return f"{place}: found {found!r}; allowed: {allowed}"
    shown = _KINDS.get(type(found)) or repr(found)[:80]
    return f"{place}: found {shown}; allowed: {_ALLOWED.get(problem, detail['msg'])}"
