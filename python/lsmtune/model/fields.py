"""The values of the fields of files: how each is read, and its JSON Schema.

A type here is one of Python's with pydantic's validators, which take what people write (`4MiB`,
`1h30m`, `5%`) and refuse the rest in one line. `described` says what a field is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetPydanticSchema,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue
from lsmtune.units import (
    BYTES_ALLOWED,
    UnitError,
    is_size_text,
    option_text_allowed,
    option_value,
    parse_bytes,
    parse_duration,
    parse_share,
)

T = TypeVar("T")

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


class _AsWritten(str):
    """A found value that is shown without quotes."""

    def __repr__(self) -> str:
        return str(self)


def found_text(value: object) -> object:
    """`value` as its writer would name it: `true`, not `True`; `nothing`, not `None`."""
    if value is None:
        return _AsWritten("nothing")
    if isinstance(value, bool):
        return _AsWritten(str(value).lower())
    if isinstance(value, dict):
        return _AsWritten("a mapping")
    return _AsWritten("a list") if isinstance(value, list) else value


STRICT = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


def refused(
    allowed: str, field: str = "", *, found: object = None, nearest: str = ""
) -> PydanticCustomError:
    """What a validator raises for a value, or for a `field` in it, that is not `allowed`.

    Without `found`, the value is what was found.
    """
    error = InputError("", field, found=found, allowed=allowed, nearest=nearest)
    return PydanticCustomError("refused", "{error}", {"error": error})


def refusing(read: Callable[[object], T]) -> Callable[[object], T]:
    """`read` as a validator: what it raises becomes an error at the field that it names."""

    def validate(value: object) -> T:
        try:
            return read(value)
        except InputError as error:
            raise PydanticCustomError("refused", "{error}", {"error": error}) from None

    return validate


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
    options = {}
    for name, item in value.items():
        try:
            options[str(name)] = _option(item)
        except (PydanticCustomError, UnitError) as error:
            # The error is at the option within the mapping.
            why = error if isinstance(error, UnitError) else (error.context or {})["error"]
            shown = found_text(item)
            raise refused(why.allowed, str(name), found=shown, nearest=why.nearest) from None
    return options


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
Share = Annotated[float, BeforeValidator(parse_share), WithJsonSchema(_SHARE_SCHEMA)]
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


def pairs_of(key: Any, value: Any) -> GetPydanticSchema:
    """A mapping of `key` to `value` in a document; in memory its pairs, which can be hashed."""

    def schema(_kind: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(
            lambda mapping: tuple(mapping.items()),
            handler(dict[key, value]),
            serialization=core_schema.plain_serializer_function_ser_schema(dict),
        )

    return GetPydanticSchema(schema)


@dataclass(frozen=True)
class StatedAs:
    """A document states a field as a `kind`; in memory it is what `convert` makes of that."""

    kind: Any
    convert: Callable[[Any], Any]

    def __get_pydantic_core_schema__(
        self, _source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.convert, handler(self.kind))


def described(description: str, *, omitted: object = ..., **bounds: Any) -> Any:
    """What a field is or may be, for errors and the JSON Schema, and its bounds as pydantic's.

    `omitted`: the value, its default, that leaves the field out of a document.
    """
    if omitted is not ...:
        bounds["exclude_if"] = lambda value: value == omitted
    return Field(description=description, **bounds)


class StrictModel(BaseModel):
    """No unknown fields, no conversions between types, no change after reading."""

    model_config = STRICT
