"""The values of a study file's fields: how each is read, and its JSON Schema."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from lsmtune.model.config import OptionValue
from lsmtune.model.request import LIMITS_DEFAULT
from lsmtune.units import (
    BYTES_ALLOWED,
    UnitError,
    format_bytes,
    format_duration,
    is_size_text,
    option_text_allowed,
    option_value,
    parse_bytes,
    parse_duration,
    parse_share,
)

WHOLE_ALLOWED = "a whole number, or a size such as 4MiB"
DURATION_ALLOWED = "a time above 0, largest unit first (1h30m, 90s, 500ms), or a number of seconds"
OPTION_ALLOWED = "one value: text, a number, true or false"
CONFIG_ALLOWED = (
    "default, the name of a preset, the path of an option file, or a mapping of options"
)
SPACE_WORDS = ("use", "without")

_SHARE_SCHEMA = {
    "anyOf": [
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        {"type": "string", "pattern": r"^\s*\d+(\.\d+)?\s*%?\s*$"},
    ]
}
_SIZE_SCHEMA = {
    "anyOf": [
        {"type": "integer", "minimum": 0},
        {"type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*(B|[KMGT]iB|kB|MB|GB)?\s*$"},
    ]
}
WHOLE_SCHEMA = {"anyOf": [{"type": "integer"}, _SIZE_SCHEMA["anyOf"][1]]}
_DURATION_SCHEMA = {
    "anyOf": [
        {"type": "number", "minimum": 0},
        {"type": "string", "pattern": r"^\s*([0-9]+(\.[0-9]+)?(ms|[hms])?)+\s*$"},
    ]
}
_OPTION_SCHEMA = {"type": ["string", "number", "boolean"]}


def refused(allowed: str) -> PydanticCustomError:
    """What a validator raises for a value that is not one of what is `allowed`."""
    return PydanticCustomError("refused", "{allowed}", {"allowed": allowed})


def _version(value: object) -> object:
    # To Python, and so to a Literal, `true` and `1.0` equal 1.
    if isinstance(value, bool | float):
        raise refused("1")
    return value


def _whole(value: object) -> object:
    if isinstance(value, str):
        try:
            return parse_bytes(value)
        except UnitError as error:
            if is_size_text(value):  # a right size of a wrong amount: its own error says more
                raise
            raise UnitError(value, WHOLE_ALLOWED, error.nearest) from None
    if isinstance(value, bool) or not isinstance(value, int):
        raise refused(WHOLE_ALLOWED)
    return value


def _size(value: object) -> int:
    size = parse_bytes(value)
    if size == 0:
        raise UnitError(value, f"more than 0: {BYTES_ALLOWED}")
    return size


def _duration(value: object) -> float:
    try:
        duration_s = parse_duration(value)
    except UnitError:
        raise UnitError(value, DURATION_ALLOWED) from None
    if duration_s <= 0:
        raise UnitError(value, DURATION_ALLOWED)
    return duration_s


def _share(value: object) -> float:
    return parse_share(value)


def _option(value: object) -> OptionValue:
    if not isinstance(value, str | int | float | bool):
        raise refused(OPTION_ALLOWED)
    if isinstance(value, str):
        allowed = option_text_allowed(value)
        if allowed:
            raise refused(allowed)
    return option_value(value)


def _condition(value: object) -> OptionValue | list[OptionValue]:
    return [_option(item) for item in value] if isinstance(value, list) else _option(value)


def special_parts(value: object) -> object:
    """A special value as a mapping, also where it stands alone."""
    return value if isinstance(value, dict) else {"value": value}


def _config(value: object) -> object:
    if isinstance(value, str) and value.strip():
        return value
    if not isinstance(value, dict):
        raise refused(CONFIG_ALLOWED)
    return {str(name): _named_option(str(name), item) for name, item in value.items()}


def _named_option(name: str, value: object) -> OptionValue:
    """As `_option`, its errors at the option within the mapping."""
    try:
        return _option(value)
    except PydanticCustomError as error:
        context = {**(error.context or {}), "field": name, "found": value}
        raise PydanticCustomError("refused", "{allowed}", context) from None
    except UnitError as error:
        context = {"allowed": error.allowed, "nearest": error.nearest}
        context |= {"field": name, "found": value}
        raise PydanticCustomError("refused", "{allowed}", context) from None


def _names(value: object) -> object:
    return [value] if isinstance(value, str) else value


def space_parts(value: object) -> object:
    """A ready space's name, or a mapping in which `use` and `without` are not parameters."""
    if isinstance(value, str | list):
        return {"use": value}
    if not isinstance(value, dict):
        raise refused("a mapping of option name to parameter, or the name of a ready space")
    own = {key: item for key, item in value.items() if key not in SPACE_WORDS}
    return {**{key: value[key] for key in SPACE_WORDS if key in value}, "parameters": own}


def special_schema(number: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a special value that is a `number`, alone or with its weight."""
    weighted = {
        "type": "object",
        "properties": {
            "value": number,
            "weight": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        },
        "required": ["value"],
        "additionalProperties": False,
    }
    return {"anyOf": [number, weighted]}


Version = Annotated[Literal[1], BeforeValidator(_version)]
Size = Annotated[int, BeforeValidator(_size), WithJsonSchema(_SIZE_SCHEMA)]
Whole = Annotated[int, BeforeValidator(_whole), WithJsonSchema(WHOLE_SCHEMA)]
Duration = Annotated[float, BeforeValidator(_duration), WithJsonSchema(_DURATION_SCHEMA)]
Share = Annotated[float, BeforeValidator(_share), WithJsonSchema(_SHARE_SCHEMA)]
Option = Annotated[Any, BeforeValidator(_option), WithJsonSchema(_OPTION_SCHEMA)]
When = Annotated[
    Any,
    BeforeValidator(_condition),
    WithJsonSchema(
        {"anyOf": [_OPTION_SCHEMA, {"type": "array", "items": _OPTION_SCHEMA, "minItems": 1}]}
    ),
]
ConfigFields = Annotated[
    Any,
    BeforeValidator(_config),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "minLength": 1},
                {"type": "object", "additionalProperties": _OPTION_SCHEMA},
            ]
        }
    ),
]
Names = Annotated[list[str], BeforeValidator(_names)]


class StrictModel(BaseModel):
    """No unknown fields, no conversions between types, no change after reading."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class LimitsModel(StrictModel):
    """When a run is killed."""

    deadline: Duration = Field(
        default=LIMITS_DEFAULT.deadline_s,
        description=f"time for one run; {format_duration(LIMITS_DEFAULT.deadline_s)}",
    )
    memory: Size = Field(
        default=LIMITS_DEFAULT.memory_bytes,
        description=f"resident memory of one run; {format_bytes(LIMITS_DEFAULT.memory_bytes)}",
    )
    disk: Size = Field(
        default=LIMITS_DEFAULT.disk_bytes,
        description=f"disk space of one run; {format_bytes(LIMITS_DEFAULT.disk_bytes)}",
    )
