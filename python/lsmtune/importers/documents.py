"""JSON, JSON with comments, and YAML: data, and the line of every field.

Comments and trailing commas are what MLOS (JSON5) and editors (JSONC) add to JSON. Lines come from
YAML's parser, of whose language JSON is a part, so that a note can point at its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from lsmtune.errors import InputError, is_utf8

_CHARACTERS_MAX = 1 << 20
_NODES_MAX = 100_000  # an alias can make ten lines into a billion
# What is not closed is matched to its end all the same, so that no text is scanned twice.
_STRING = r'"(?:[^"\\\n]|\\(?:.|\Z))*(?:"|$)'
_STRING_OR_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?(?:\*/|\Z)", re.S | re.M)
_STRING_OR_TRAILING_COMMA = re.compile(rf"{_STRING}|,(?=\s*[\]}}])", re.S | re.M)


@dataclass(frozen=True)
class Document:
    """A mapping, and the lines of its fields by path: `("space", "a", 1)`."""

    source: str
    data: dict[str, Any]
    lines: dict[tuple[str | int, ...], int]

    def line(self, *path: str | int) -> int | None:
        """The line of a field, or of the nearest field that holds it."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return None

    def error(
        self,
        path: tuple[str | int, ...],
        *,
        found: object = None,
        allowed: str = "",
        nearest: str = "",
        why: str = "",
    ) -> InputError:
        """An InputError at `path`: `file:line: field: ...`."""
        if found is None and not why:
            why = "is missing"
        line = self.line(*path)
        source = self.source if line is None else f"{self.source}:{line}"
        field = field_name(*path)
        return InputError(source, field, found=found, allowed=allowed, nearest=nearest, why=why)


def field_name(*path: str | int) -> str:
    """`a.b[1]` for ("a", "b", 1)."""
    name = ""
    for part in path:
        name += f"[{part}]" if isinstance(part, int) else f".{part}" if name else part
    return name


def without_comments(text: str) -> str:
    """`text` with comments and trailing commas made blank; every line stays where it is."""

    def blank(match: re.Match[str]) -> str:
        found = match.group()
        return found if found.startswith('"') else re.sub(r"[^\n]", " ", found)

    return _STRING_OR_TRAILING_COMMA.sub(blank, _STRING_OR_COMMENT.sub(blank, text))


def json_document(text: str, source: str) -> Document:
    """`text`, JSON with comments, as a Document. Raises InputError with the line for all else."""
    _check_size(text, source)
    plain = without_comments(text)
    try:
        data = json.loads(plain, parse_constant=_refuse_constant, object_pairs_hook=_no_repeats)
    except json.JSONDecodeError as error:
        said = f"{error.msg[:1].lower()}{error.msg[1:]}"
        raise InputError(f"{source}:{error.lineno}", why=f"not JSON: {said}") from None
    except RecursionError:
        raise InputError(source, why="not JSON: nested too deeply") from None
    except ValueError as error:
        raise InputError(source, why=f"not JSON: {error}") from None
    if not isinstance(data, dict):
        found = type(data).__name__
        raise InputError(source, why=f"holds a {found}", allowed="an object: {...}")
    if not is_utf8(json.dumps(data, ensure_ascii=False)):
        raise InputError(source, why="holds half of a surrogate pair", allowed="text in UTF-8")
    return Document(source, data, _lines(plain.replace("\t", " "), source))


def _check_size(text: str, source: str) -> None:
    if len(text) > _CHARACTERS_MAX:
        allowed = f"at most {_CHARACTERS_MAX} characters"
        raise InputError(source, why=f"is too large: {len(text)} characters", allowed=allowed)


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not a number")


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name!r} is given twice")
        found[name] = value
    return found


def yaml_document(text: str, source: str) -> Document:
    """`text`, one YAML mapping, as a Document. Raises InputError with the line for all else."""
    _check_size(text, source)
    try:
        data = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = source if mark is None else f"{source}:{mark.line + 1}"
        said = ", ".join(part for part in (error.context, error.problem) if part)
        raise InputError(place, why=f"not YAML: {said}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(source, why=f"not YAML: {error}") from None
    except RecursionError:
        raise InputError(source, why="not YAML: nested too deeply") from None
    if not isinstance(data, dict):
        found = "nothing" if data is None else f"a {type(data).__name__}"
        raise InputError(source, why=f"holds {found}", allowed="a mapping of fields")
    return Document(source, data, _lines(text, source))


def _lines(text: str, source: str) -> dict[tuple[str | int, ...], int]:
    lines: dict[tuple[str | int, ...], int] = {}
    try:
        for path, line in _walk(yaml.compose(text, Loader=yaml.SafeLoader), ()):
            lines[path] = line
            if len(lines) > _NODES_MAX:
                raise InputError(source, why=f"holds more than {_NODES_MAX} values")
    except (yaml.YAMLError, RecursionError):
        return {}  # JSON that YAML's parser does not take: notes then name the field alone
    return lines


def _walk(
    node: yaml.Node | None, path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], int]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = (*path, str(key.value))
            yield inner, key.start_mark.line + 1
            yield from _walk(value, inner)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield (*path, index), item.start_mark.line + 1
            yield from _walk(item, (*path, index))
