"""A YAML file read strictly: data, and the line of every field.

Stricter than YAML 1.1, where `no` and `off` are booleans, `010` is eight, a key given twice counts
once, and an alias can make ten lines into a billion. Here only true and false are booleans, numbers
are decimal, and repeated keys, anchors, aliases and tags are errors.
"""

from __future__ import annotations

import math
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from lsmtune.errors import InputError, nearest_name
from lsmtune.units import UnitError

FILE_BYTES_MAX = 2**20
_DEPTH_MAX = 20
_DIGITS_MAX = 30  # longer "numbers" stay text, and fail as such where a number is wanted
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+", re.ASCII)
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})


@dataclass(frozen=True)
class FileKind:
    """What a file is called in errors: `noun`, and what makes one, if there is such a command."""

    noun: str
    made_by: str = ""

    @property
    def article(self) -> str:
        """`a study file`."""
        return f"a {self.noun} file"


STUDY_FILE = FileKind("study", "`lsmtune init` writes one")


@dataclass(frozen=True)
class Document:
    """The file's mapping and, by dotted field name (`space.a.choices[1]`), its lines.

    `scalars` holds the values that are not mappings or lists, as the file has them.
    """

    source: str
    data: dict[str, Any]
    lines: dict[str, int]
    scalars: dict[str, Any]

    def where(self, field: str) -> str:
        """`source:line` of `field`, or of the nearest field that holds it."""
        while field and field not in self.lines:
            cut = max(field.rfind("."), field.rfind("["))
            field = field[:cut] if cut > 0 else ""
        return f"{self.source}:{self.lines[field]}" if field else self.source


def read_text(path: Path, kind: FileKind = STUDY_FILE) -> str:
    """The text of a file of `kind`. Raises `InputError` for all that is not a small UTF-8 file."""
    source = str(path)
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise InputError(source, why="is a directory", allowed=f"{kind.article} (YAML)")
        if not stat.S_ISREG(status.st_mode):
            raise InputError(source, why="is not a regular file", allowed=f"{kind.article} (YAML)")
        if status.st_size > FILE_BYTES_MAX:
            found = f"{status.st_size} bytes"
            allowed = f"{kind.article} of at most {FILE_BYTES_MAX} bytes"
            raise InputError(source, why=f"is too large: {found}", allowed=allowed)
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        allowed = "; ".join(part for part in (kind.article, kind.made_by) if part)
        raise InputError(source, why="no such file", allowed=allowed) from None
    except UnicodeDecodeError as error:
        found = f"byte 0x{error.object[error.start]:02x} at offset {error.start}"
        raise InputError(
            source, why=f"is not text: {found}", allowed=f"{kind.article} in UTF-8"
        ) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(source, why=f"cannot be read: {reason}") from None


def parse_document(text: str, source: str, kind: FileKind = STUDY_FILE) -> Document:
    """`text` as one YAML mapping. Raises `InputError` with the line for all else."""
    try:
        node = yaml.compose(text, Loader=_StrictLoader)
    except yaml.MarkedYAMLError as error:
        line = "" if error.problem_mark is None else f":{error.problem_mark.line + 1}"
        raise InputError(f"{source}{line}", why=_yaml_problem(error, kind)) from None
    except yaml.reader.ReaderError as error:
        line_number = text.count("\n", 0, error.position) + 1
        raise InputError(
            f"{source}:{line_number}", why=f"not YAML: character U+{ord(text[error.position]):04X}"
        ) from None
    if node is None:
        raise InputError(source, why="is empty", allowed="a mapping of fields")
    if not isinstance(node, yaml.MappingNode):
        line_number = node.start_mark.line + 1
        raise InputError(
            f"{source}:{line_number}", why=f"is not a {kind.noun}", allowed="a mapping of fields"
        )
    reader = _Reader(source)
    data = reader.mapping(node, "")
    return Document(source, data, reader.lines, reader.scalars)


def _yaml_problem(error: yaml.MarkedYAMLError, kind: FileKind) -> str:
    if isinstance(error, _RefusedError):
        return f"{error.problem} in {kind.article}"
    parts = (error.context, error.problem)
    return f"not YAML: {', '.join(part for part in parts if part)}"


class _RefusedError(yaml.MarkedYAMLError):
    """YAML that is correct and refused all the same."""


class _StrictLoader(yaml.SafeLoader):
    """Composes nodes without YAML's implicit types; refuses anchors, aliases, tags, great depth."""

    # Without resolvers every plain scalar stays text; `_scalar` types it by stricter rules.
    yaml_implicit_resolvers = {}  # noqa: RUF012 -- a class attribute of the base class

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        problem = ""
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            problem = "anchors and aliases are not allowed"
        elif getattr(event, "tag", None) is not None:
            problem = "tags are not allowed"
        elif self._depth >= _DEPTH_MAX:
            problem = f"more than {_DEPTH_MAX} levels are not allowed"
        if problem:
            raise _RefusedError(None, None, problem, event.start_mark)
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1


class _Reader:
    """Turns nodes into data and notes the lines and values that it meets."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.lines: dict[str, int] = {}
        self.scalars: dict[str, Any] = {}

    def mapping(self, node: yaml.MappingNode, field: str) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            place = f"{self.source}:{line}"
            if not isinstance(key_node, yaml.ScalarNode):
                raise InputError(place, field, why="a key that is not text")
            key = str(key_node.value)
            inner = f"{field}.{key}" if field else key
            if key in data:
                raise InputError(
                    place, inner, why=f"given twice, first on line {self.lines[inner]}"
                )
            self.lines[inner] = line
            data[key] = self._value(value_node, inner)
        return data

    def _value(self, node: yaml.Node, field: str) -> Any:
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, field)
        if isinstance(node, yaml.SequenceNode):
            items = []
            for index, item in enumerate(node.value):
                self.lines[f"{field}[{index}]"] = item.start_mark.line + 1
                items.append(self._value(item, f"{field}[{index}]"))
            return items
        self.scalars[field] = _scalar(node)
        return self.scalars[field]


def _scalar(node: yaml.Node) -> str | int | float | bool | None:
    text = str(node.value)
    if getattr(node, "style", None) is not None:  # quoted, or a block of text
        return text
    if text in _NULLS:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if len(text) > _DIGITS_MAX or _LEADING_ZERO.fullmatch(text):
        return text
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    return text


# ----------
# pydantic's validation errors as the project's one-line `InputError`.

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
