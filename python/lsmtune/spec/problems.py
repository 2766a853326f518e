"""pydantic's validation errors as the project's one-line `InputError`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from lsmtune.errors import InputError, nearest_name
from lsmtune.spec.document import Document
from lsmtune.units import UnitError

Place = tuple[int | str, ...]

_ALLOWED = {
    "bool_type": "true or false",
    "dict_type": "a mapping of fields",
    "float_type": "a number",
    "int_from_float": "a whole number",
    "int_type": "a whole number",
    "list_type": "a list",
    "model_type": "a mapping of fields",
    "model_attributes_type": "a mapping of fields",
    "string_too_short": "text that is not empty",
    "string_type": "text",
}
_BOUNDS = {
    "greater_than": ("more than {}", "gt"),
    "greater_than_equal": ("at least {}", "ge"),
    "less_than": ("less than {}", "lt"),
    "less_than_equal": ("at most {}", "le"),
    "string_too_long": ("at most {} characters", "max_length"),
}


class _AsWritten:
    """A found value that is shown without quotes."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text


def first_problem(
    error: ValidationError,
    document: Document,
    root: type[BaseModel],
    parameters: Mapping[str, type[BaseModel]] = MappingProxyType({}),
) -> InputError:
    """The problem nearest to the start of the file, as an `InputError` without its line.

    `root` is the model that refused the file; `parameters` are the models of a space's parameters
    by their type.
    """
    details = error.errors(include_url=False)
    return min(
        (_problem(detail, document.source, root, parameters) for detail in details),
        key=lambda problem: document.lines.get(problem.field, 0),
    )


def found_text(value: object) -> object:
    """`value` as its writer would name it: `true`, not `True`; `nothing`, not `None`."""
    if value is None:
        return _AsWritten("nothing")
    if isinstance(value, bool):
        return _AsWritten(str(value).lower())
    if isinstance(value, dict):
        return _AsWritten("a mapping")
    return _AsWritten("a list") if isinstance(value, list) else value


def _problem(
    detail: ErrorDetails,
    source: str,
    root: type[BaseModel],
    parameters: Mapping[str, type[BaseModel]],
) -> InputError:
    place = _without_key_mark(detail["loc"])
    field, kind, found = _dotted(_without_tag(place)), detail["type"], detail["input"]
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        return _type_problem(field, found, source, parameters)
    if kind == "missing":
        return InputError(
            source, field, why="missing", allowed=_description(place, root, parameters)
        )
    if kind == "extra_forbidden":
        known = list(_model(place[:-1], root, parameters).model_fields)
        nearest = nearest_name(str(place[-1]), known)
        allowed = ", ".join(known)
        return InputError(source, field, why="unknown field", allowed=allowed, nearest=nearest)
    allowed, nearest = _allowed(detail, root, parameters)
    context = detail.get("ctx", {})
    if "field" in context:
        field, found = f"{field}.{context['field']}", context["found"]
    return InputError(source, field, found=found_text(found), allowed=allowed, nearest=nearest)


def _without_key_mark(place: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """Where a mapping's key is wrong, pydantic adds a part of its own."""
    return place[:-1] if place and place[-1] == "[key]" else place


def _type_problem(
    field: str, found: object, source: str, parameters: Mapping[str, type[BaseModel]]
) -> InputError:
    """The problem of a parameter of which the `type` is absent or unknown."""
    allowed = ", ".join(parameters)
    if not isinstance(found, dict):
        return InputError(source, field, found=found_text(found), allowed="a mapping of fields")
    if "type" not in found:
        return InputError(source, f"{field}.type", why="missing", allowed=allowed)
    kind = found["type"]
    return InputError(
        source,
        f"{field}.type",
        found=found_text(kind),
        allowed=allowed,
        nearest=nearest_name(str(kind), parameters),
    )


def _allowed(
    detail: ErrorDetails, root: type[BaseModel], parameters: Mapping[str, type[BaseModel]]
) -> tuple[str, str]:
    """What is allowed, and the nearest right spelling if there is one."""
    kind, context = detail["type"], detail.get("ctx", {})
    unit_error = context.get("error")
    if isinstance(unit_error, UnitError):
        return unit_error.allowed, unit_error.nearest
    if kind == "refused":
        return str(context["allowed"]), str(context.get("nearest", ""))
    if kind == "literal_error":
        expected = [a or b for a, b in re.findall(r"'([^']*)'|(\d+)", context["expected"])]
        found = str(detail["input"])
        if found in expected:
            return f"{found} as a number, without quotes", ""
        return ", ".join(expected), nearest_name(found, expected)
    if kind in _BOUNDS:
        text, key = _BOUNDS[kind]
        return text.format(context[key]), ""
    return _ALLOWED.get(kind) or _description(detail["loc"], root, parameters) or detail["msg"], ""


_PARAMETERS = ("space", "parameters")


_COMMAND = ("runner", "command")


def _without_tag(place: Place) -> Place:
    """Without what pydantic puts into a location and the file does not have.

    `parameters` and the type of a parameter; which kind of element an argument is no example of.
    """
    if place[:2] == _COMMAND:
        return tuple(part for part in place if part in _COMMAND or isinstance(part, int))
    return ("space", *place[2:3], *place[4:]) if place[:2] == _PARAMETERS else place


def _dotted(place: Place) -> str:
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in place]
    return "".join(parts).removeprefix(".")


def _description(
    place: Place, root: type[BaseModel], parameters: Mapping[str, type[BaseModel]]
) -> str:
    field = _model(place[:-1], root, parameters).model_fields.get(str(place[-1]))
    return (field.description if field is not None else None) or ""


def _model(
    place: Place, root: type[BaseModel], parameters: Mapping[str, type[BaseModel]]
) -> type[BaseModel]:
    """The innermost model at `place`."""
    model = root
    if place[:2] == _PARAMETERS and len(place) > 3:
        model, place = parameters[str(place[3])], place[4:]
    for part in place:
        field = model.model_fields.get(str(part))
        inner = _model_within(field.annotation) if field is not None else None
        model = inner or model
    return model


def _model_within(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_model_within(argument) for argument in get_args(annotation))
    return next((model for model in found if model is not None), None)
