"""A YAML file that people write: its data, the line of every field, its type.

Ours are stricter than YAML 1.1, where `no` and `off` are booleans, `010` is eight, and an alias can
make ten lines into a billion: only true and false are booleans, numbers are decimal, and anchors,
aliases and tags are errors. A key that is given twice is one in files of other programs, too.
"""

from __future__ import annotations

import json
import math
import re
import types
from collections.abc import Iterator
from dataclasses import InitVar, dataclass, is_dataclass
from functools import cache
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import yaml
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from lsmtune.errors import InputError, nearest_name
from lsmtune.model import text
from lsmtune.model.codec import adapter
from lsmtune.model.fields import StatedAs, found_text
from lsmtune.model.yaml_text import BoundedLoader, RefusedError, yaml_errors
from lsmtune.units import DIGITS_MAX, UnitError

Model = TypeVar("Model")

FILE_BYTES_MAX = 2**20
_NAME_CHARACTERS_MAX = 1000  # of a field: a list repeats its own name for every item
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)", re.ASCII)
FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
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
    """A file's mapping and, by `field_name` (`space.a.choices[1]`), the line of each field."""

    source: str
    data: dict[str, Any]
    lines: dict[str, int]

    def line(self, *path: str | int) -> int | None:
        """The line of the field at `path`, or of the nearest field that holds it."""
        field = field_name(*path)
        while field and field not in self.lines:
            cut = max(field.rfind("."), field.rfind("["))
            field = field[:cut] if cut > 0 else ""
        return self.lines[field] if field else None

    def where(self, *path: str | int) -> str:
        """`source:line` of the field at `path`, or of the nearest field that holds it."""
        line = self.line(*path)
        return self.source if line is None else f"{self.source}:{line}"

    def error(
        self, path: tuple[str | int, ...], *, found: object = None, why: str = "", **parts: Any
    ) -> InputError:
        """An InputError at `path`, which "is missing" where neither `found` nor `why` is given."""
        why = why or ("is missing" if found is None else "")
        return InputError(self.where(*path), field_name(*path), found=found, why=why, **parts)

    def located(self, error: InputError) -> InputError:
        """`error` of a field of this file, with its line."""
        return error.but(source=self.where(error.field))

    def stated(self, field: str) -> Any:
        """The text, number or truth of `field`, as the file has it; None for all else."""
        return next((value for name, value in _scalars(self.data) if name == field), None)


def field_name(*path: str | int) -> str:
    """`a.b[1]` for ("a", "b", 1)."""
    name = ""
    for part in path:
        name += f"[{part}]" if isinstance(part, int) else f".{part}" if name else f"{part}"
    return name


def _scalars(value: object, *path: str | int) -> Iterator[tuple[str, Any]]:
    """All that is no mapping and no list in `value`, each with the name of its field."""
    if isinstance(value, dict | list):
        for part, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _scalars(inner, *path, part)
    else:
        yield field_name(*path), value


def read_text(path: Path, kind: FileKind = STUDY_FILE) -> str:
    """The text of a file of `kind`. Raises `InputError` for all that is not a small UTF-8 file."""
    return text.read_text(path, kind.article, bytes_max=FILE_BYTES_MAX, made_by=kind.made_by)


class _StrictLoader(BoundedLoader):
    """Types plain scalars by `_scalar`'s rules; refuses anchors, aliases and tags."""

    # Without resolvers every plain scalar stays text.
    yaml_implicit_resolvers = {}  # noqa: RUF012 -- a class attribute of the base class

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()
        problem = ""
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            problem = "anchors and aliases are not allowed"
        elif getattr(event, "tag", None) is not None:
            problem = "tags are not allowed"
        if problem:
            raise RefusedError(problem, event)
        return super().compose_node(parent, index)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> object:
        if isinstance(node, yaml.MappingNode):
            return {key.value: self.construct_object(value, deep) for key, value in node.value}
        if isinstance(node, yaml.SequenceNode):
            return [self.construct_object(item, deep) for item in node.value]
        return _scalar(node)


def parse_document(
    written: str,
    source: str,
    kind: FileKind = STUDY_FILE,
    loader: type[BoundedLoader] = _StrictLoader,
) -> Document:
    """What is `written` as one YAML mapping. Raises `InputError` with the line for all else.

    `loader` says what a plain scalar is, and what of YAML is refused.
    """
    with yaml_errors(written, source, f" in {kind.article}"):
        reader = loader(written)
        node = reader.get_single_node()
        if node is None:
            raise InputError(source, why="is empty", allowed="a mapping of fields")
        # Before the data: for those, merge keys (`<<`) are replaced in the node itself.
        lines = lines_of(node, source)
        data = reader.construct_document(node)
    if not isinstance(data, dict):
        place = f"{source}:{node.start_mark.line + 1}"
        raise InputError(place, why=f"is not a {kind.noun}", allowed="a mapping of fields")
    return Document(source, data, lines)


def lines_of(node: yaml.Node | None, source: str, field: str = "") -> dict[str, int]:
    """The line of each field below `node`, which is the value of `field`, by `field_name`.

    Raises InputError for a key that is given twice or is not text, RefusedError for a long name.
    """
    if not isinstance(node, yaml.CollectionNode):
        return {}
    lines: dict[str, int] = {}
    below: dict[str, int] = {}
    is_mapping = isinstance(node, yaml.MappingNode)
    pairs = node.value if is_mapping else [(item, item) for item in node.value]
    for index, (at, value) in enumerate(pairs):
        line = at.start_mark.line + 1
        place = f"{source}:{line}"
        if is_mapping and not isinstance(at, yaml.ScalarNode):
            raise InputError(place, field, why="a key that is not text")
        inner = field_name(field, at.value if is_mapping else index)
        if len(inner) > _NAME_CHARACTERS_MAX:
            problem = f"names of more than {_NAME_CHARACTERS_MAX} characters are not allowed"
            raise RefusedError(problem, at)
        if inner in lines:
            raise InputError(place, inner, why=f"given twice, first on line {lines[inner]}")
        lines[inner] = line
        below |= lines_of(value, source, inner)
    return below | lines


def _scalar(node: yaml.Node) -> str | int | float | bool | None:
    text = str(node.value)
    if getattr(node, "style", None):  # quoted, or a block of text
        return text
    if text in _NULLS:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    # What is longer fails as text where a number is wanted.
    if len(text) > DIGITS_MAX or _LEADING_ZERO.fullmatch(text):
        return text
    if _INTEGER.fullmatch(text):
        return int(text)
    if FLOAT.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    return text


# --- From the file's data to a type, and from pydantic's errors to the one line of an InputError.

_ALLOWED = {
    "bool_type": "true or false",
    "dict_type": "a mapping of fields",
    "dataclass_type": "a mapping of fields",
    "float_type": "a number",
    "int_from_float": "a whole number",
    "int_type": "a whole number",
    "list_type": "a list",
    "model_type": "a mapping of fields",
    "model_attributes_type": "a mapping of fields",
    "string_too_short": "text that is not empty",
    "string_type": "text",
    "tuple_type": "a list",
}
_BOUNDS = {
    "greater_than": ("more than {}", "gt"),
    "greater_than_equal": ("at least {}", "ge"),
    "less_than": ("less than {}", "lt"),
    "less_than_equal": ("at most {}", "le"),
    "string_too_long": ("at most {} characters", "max_length"),
}
# These stand in the file one level higher than in the type: `space.<name>`.
_INLINE = ["space", "parameters"]


class _Field(NamedTuple):
    """A field of a type, and what a file may say there in a few words."""

    hint: Any
    description: str


def read_as(kind: type[Model], document: Document) -> Model:
    """The `kind` that `document` states.

    Raises `InputError` with the line of the first problem, as `first_problem` says.
    """
    try:
        # As JSON, because pydantic's strict mode takes texts for enumerations there, and mappings
        # for dataclasses.
        made: Model = adapter(kind).validate_json(json.dumps(document.data))
    except ValidationError as error:
        raise document.located(first_problem(error, document, kind)) from None
    return made


def first_problem(error: ValidationError, document: Document, kind: type[Any]) -> InputError:
    """The problem nearest to the start of `document`, which is no `kind`, without its line.

    A version comes before all: what a file of another version has and lacks, ours does not know.
    """
    details = error.errors(include_url=False)
    places = {detail["loc"][:length] for detail in details for length in range(len(detail["loc"]))}
    # An array is too short for pydantic, too, where its items are wrong.
    details = [d for d in details if d["type"] != "too_short" or d["loc"] not in places]
    # What a mapping lacks may be what it has misspelt.
    misspelt = {d["loc"][:-1] for d in details if d["type"] in _UNKNOWN}
    details = [d for d in details if d["type"] != "missing" or d["loc"][:-1] not in misspelt]

    def order(detail: ErrorDetails) -> tuple[bool, int]:
        line = document.lines.get(_place(detail, kind).field, 0)
        return detail["loc"] != ("version",), line

    first = min(details, key=order)
    return _problem(first, document.source, kind)


def json_schema(kind: type[Any]) -> dict[str, Any]:
    """The JSON Schema (Draft 2020-12) of files that state a `kind`."""
    schema = adapter(kind).json_schema(mode="validation")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def fields_of(kind: Any) -> dict[str, _Field]:
    """The fields of a pydantic model or dataclass, by their names in files; empty for others."""
    return _fields_of(kind) if isinstance(kind, type) else {}


@cache  # a file may have a problem on each of 100,000 lines
def _fields_of(kind: type[Any]) -> dict[str, _Field]:
    if issubclass(kind, BaseModel):
        return {
            info.alias or name: _Field(info.annotation, info.description or "")
            for name, info in kind.model_fields.items()
        }
    if not is_dataclass(kind):
        return {}
    fields = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        plain = hint.type if isinstance(hint, InitVar) else hint
        infos = [item for item in get_args(plain)[1:] if isinstance(item, FieldInfo)]
        if infos:
            fields[infos[-1].alias or name] = _Field(plain, infos[-1].description or "")
    return fields


class _Place(NamedTuple):
    """Where a problem is: the field in the file, the type whose field it is, what is expected."""

    field: str
    parts: list[int | str]
    owner: Any
    hint: Any


_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
_NO_TAG = ("union_tag_not_found", "union_tag_invalid")


def _place(detail: ErrorDetails, kind: type[Any]) -> _Place:
    loc = detail["loc"]
    if loc and loc[-1] == "[key]":  # pydantic's own word, where a mapping's key is wrong
        loc = loc[:-1]
    parts, owner, hint = _located(loc, kind)
    field, context = field_name(*parts), detail.get("ctx", {})
    error = context.get("error")
    if detail["type"] in _NO_TAG and isinstance(detail["input"], dict):
        field = f"{field}.{context['discriminator'].strip(chr(39))}"
    elif isinstance(error, InputError) and error.field:
        field = f"{field}.{error.field.lstrip('.')}".replace(".[", "[")
    return _Place(field, parts, owner, hint)


def _problem(detail: ErrorDetails, source: str, kind: type[Any]) -> InputError:
    field, parts, owner, hint = _place(detail, kind)
    problem, found = detail["type"], detail["input"]
    if problem in _NO_TAG:
        return _tag_problem(field, found, source, hint)
    known = fields_of(owner)
    description = known[str(parts[-1])].description if parts and str(parts[-1]) in known else ""
    if problem == "missing":
        return InputError(source, field, why="missing", allowed=description)
    if problem in _UNKNOWN:
        nearest = nearest_name(str(parts[-1]), known)
        allowed = ", ".join(known)
        return InputError(source, field, why="unknown field", allowed=allowed, nearest=nearest)
    error = detail.get("ctx", {}).get("error")
    if isinstance(error, InputError):
        is_whole = not error.field and not error.why and error.found is None
        shown = found_text(found) if is_whole else error.found
        return error.but(source=source, field=field, found=shown)
    allowed, nearest = _allowed(detail, description)
    return InputError(source, field, found=found_text(found), allowed=allowed, nearest=nearest)


def _tag_problem(field: str, found: object, source: str, hint: Any) -> InputError:
    """The problem of a mapping in which the field that says what it is is absent or unknown."""
    if not isinstance(found, dict):
        return InputError(source, field, found=found_text(found), allowed="a mapping of fields")
    tags = [name for member in _members(hint) for name in _tags(member)]
    allowed, tag = ", ".join(tags), field.rpartition(".")[2]
    if tag not in found:
        return InputError(source, field, why="missing", allowed=allowed)
    shown, nearest = found_text(found[tag]), nearest_name(str(found[tag]), tags)
    return InputError(source, field, found=shown, allowed=allowed, nearest=nearest)


def _allowed(detail: ErrorDetails, description: str) -> tuple[str, str]:
    """What is allowed, and the nearest right spelling if there is one."""
    kind, context = detail["type"], detail.get("ctx", {})
    unit_error = context.get("error")
    if isinstance(unit_error, UnitError):
        return unit_error.allowed, unit_error.nearest
    if kind in ("literal_error", "enum"):
        expected = [a or b for a, b in re.findall(r"'([^']*)'|(\d+)", context["expected"])]
        found = str(detail["input"])
        if found in expected:
            return f"{found} as a number, without quotes", ""
        return ", ".join(expected), nearest_name(found, expected)
    if kind in _BOUNDS:
        text, key = _BOUNDS[kind]
        return text.format(context[key]), ""
    return _ALLOWED.get(kind) or description or detail["msg"], ""


def _located(place: tuple[int | str, ...], kind: Any) -> tuple[list[int | str], Any, Any]:
    """Where `place` lies in the file, the type whose field that is, and what is expected there.

    Where a value may be of several types, pydantic adds the one that it tried; the file has no
    such part.
    """
    parts: list[int | str] = []
    owner, hint = kind, kind
    for part in place:
        members = _members(hint)
        if len(members) > 1 and not isinstance(part, int):
            lists = [member for member in members if get_origin(member) is list]
            hint = next((m for m in members if part in _tags(m)), lists[0] if lists else hint)
            continue
        parts.append(part)
        (hint,) = members[:1]
        inner = get_args(hint)
        if get_origin(hint) in (list, tuple):
            hint = inner[0]
        elif inner:
            hint = inner[1]
        elif fields_of(hint):
            owner = hint
            hint = fields_of(hint)[str(part)].hint if str(part) in fields_of(hint) else hint
    if parts[: len(_INLINE)] == _INLINE and len(parts) > len(_INLINE):
        parts[: len(_INLINE)] = _INLINE[:1]
    return parts, owner, hint


def _members(hint: Any) -> list[Any]:
    """The types that `hint` allows, without None."""
    if get_origin(hint) is Annotated:
        kind, *about = get_args(hint)
        return _members(next((each.kind for each in about if isinstance(each, StatedAs)), kind))
    if get_origin(hint) in (Union, types.UnionType):
        return [m for arm in get_args(hint) if arm is not type(None) for m in _members(arm)]
    return [hint]


def _tags(kind: Any) -> tuple[str, ...]:
    """The words that tell `kind` from its alternatives: those of its fields with one word alone."""
    hints = [field.hint for field in fields_of(kind).values()]
    plain = [get_args(hint)[0] if get_origin(hint) is Annotated else hint for hint in hints]
    literals = [get_args(hint) for hint in plain if get_origin(hint) is Literal]
    return tuple(words[0] for words in literals if len(words) == 1)
