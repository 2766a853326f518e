"""What a format is, what it gives, and how a file is read with the line of every field.

Comments and trailing commas are what MLOS (JSON5) and editors (JSONC) add to JSON. Lines come
from YAML's parser, of whose language JSON is a part, so that a note can point at its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

import yaml

from lsmtune.engines.catalogue import catalogue_defaults, option_catalogue
from lsmtune.engines.differences import Difference, differences
from lsmtune.engines.formats.spelling import SOURCE, Spelling
from lsmtune.engines.option_names import find_written, split_structure, taken_apart
from lsmtune.errors import InputError, check_names, is_utf8, nearest_name
from lsmtune.model.config import OptionValue, option_text
from lsmtune.model.files import Document, FileKind, lines_of, parse_document
from lsmtune.model.yaml_text import BoundedLoader, RefusedError
from lsmtune.units import option_value, whole_number

TO_IMPORT = "a file to import"

# --- documents

CHARACTERS_MAX = 1 << 20
_NODES_MAX = 20_000  # an alias can make ten lines into a billion
_DEPTH_MAX = 100
# What is not closed is matched to its end all the same, so that no text is scanned twice.
_STRING = r'"(?:[^"\\\n]|\\(?:.|\Z))*(?:"|$)'
_STRING_OR_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?(?:\*/|\Z)", re.S | re.M)
_STRING_OR_TRAILING_COMMA = re.compile(rf"{_STRING}|,(?=\s*[\]}}])", re.S | re.M)


def without_comments(text: str) -> str:
    """`text` with comments and trailing commas made blank; every line stays where it is."""

    def blank(match: re.Match[str]) -> str:
        matched = match.group()
        return matched if matched.startswith('"') else re.sub(r"[^\n]", " ", matched)

    return _STRING_OR_TRAILING_COMMA.sub(blank, _STRING_OR_COMMENT.sub(blank, text))


def peek_json(text: str, word: str) -> dict[str, Any]:
    """The object that `text` holds if it is one with `word` in it; an empty one for all else."""
    if not text.lstrip().startswith(("{", "/")) or f'"{word}"' not in text:
        return {}
    try:
        data = json.loads(without_comments(text))
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def json_document(text: str, source: str) -> Document:
    """`text`, JSON with comments, as a Document. Raises InputError with the line for all else."""

    def refuse_constant(name: str) -> NoReturn:
        raise ValueError(f"{name} is not a number")

    _check_size(text, source)
    plain = without_comments(text)
    try:
        data = json.loads(plain, parse_constant=refuse_constant, parse_int=whole_number)
    except json.JSONDecodeError as error:
        problem = f"{error.msg[:1].lower()}{error.msg[1:]}"
        raise InputError(f"{source}:{error.lineno}", why=f"not JSON: {problem}") from None
    except RecursionError:
        raise InputError(source, why="not JSON: nested too deeply") from None
    except ValueError as error:
        raise InputError(source, why=f"not JSON: {error}") from None
    if not isinstance(data, dict):
        kind = type(data).__name__
        raise InputError(source, why=f"holds a {kind}", allowed="an object: {...}")
    if not is_utf8(json.dumps(data, ensure_ascii=False)):
        raise InputError(source, why="holds half of a surrogate pair", allowed="text in UTF-8")
    try:
        lines = lines_of(_Loader(plain.replace("\t", " ")).get_single_node(), source)
    except yaml.YAMLError:
        lines = {}  # JSON that YAML's parser does not take: notes then name the field alone
    return Document(source, data, lines)


def _check_size(text: str, source: str) -> None:
    if len(text) > CHARACTERS_MAX:
        allowed = f"at most {CHARACTERS_MAX} characters"
        raise InputError(source, why=f"is too large: {len(text)} characters", allowed=allowed)


class _Loader(BoundedLoader):
    """Refuses what a short text lets grow without bound: aliases within themselves, and aliases and
    merge keys (`<<: [*a, *a]`) of more than _NODES_MAX values once they are followed.
    """

    depth_max = _DEPTH_MAX

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._open: set[int] = set()
        self._sizes: dict[int, tuple[int, int]] = {}

    def get_single_node(self) -> yaml.Node | None:
        node = super().get_single_node()
        if node is None:
            return None
        values, levels = self._size(node)
        if values > _NODES_MAX:
            problem = f"holds more than {_NODES_MAX} values where aliases are followed"
            raise RefusedError(problem, node)
        if levels > _DEPTH_MAX:
            raise RefusedError(f"more than {_DEPTH_MAX} levels where aliases are followed", node)
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Names are text, also where YAML takes them for numbers, truths or dates."""
        made = super().construct_mapping(node, deep)
        return {str(name): value for name, value in made.items()}

    def _size(self, node: yaml.Node) -> tuple[int, int]:
        """The values in `node`, and how many levels there are; each node is counted once."""
        if not isinstance(node, yaml.CollectionNode):
            return 1, 1
        if id(node) in self._sizes:
            return self._sizes[id(node)]
        if id(node) in self._open:
            raise RefusedError("an alias of what it stands in", node)
        self._open.add(id(node))
        pairs = isinstance(node, yaml.MappingNode)
        parts = [part for pair in node.value for part in pair] if pairs else node.value
        sizes = [self._size(part) for part in parts]
        self._open.discard(id(node))
        values, levels = sum(v for v, _ in sizes), max((depth for _, depth in sizes), default=0)
        self._sizes[id(node)] = 1 + values, 1 + levels
        return self._sizes[id(node)]


def yaml_document(text: str, source: str) -> Document:
    """`text`, one YAML mapping, as a Document. Raises InputError with the line for all else."""
    _check_size(text, source)
    return parse_document(text, source, FileKind("configuration"), _Loader)


# --- formats

ENGINE_FLAG = "--engine"
_AFTER_ALL_LINES = 1 << 62


@dataclass(frozen=True)
class ImportRequest:
    """A file to import: its text, and what the user said of it.

    `engine` is the engine's name where the file's own form does not say it. `keep_defaults` keeps
    options of a whole dump that have the engine's default value.
    """

    text: str
    path: Path
    engine: str | None = None
    keep_defaults: bool = False

    @property
    def source(self) -> str:
        """The file as errors and notes name it."""
        return str(self.path)


@dataclass
class Notes:
    """Collects what an importer could not carry over, each `file:line: field: what and why`."""

    source: str
    lines: list[tuple[int, str]] = field(default_factory=list)

    def add(self, line: int | None, field: str, text: str, where: str = "") -> None:
        """Say `text` of `field`; `line` is None for what concerns the whole file.

        `where` is file and line, for what was put together from several files.
        """
        where = where or (self.source if line is None else f"{self.source}:{line}")
        note = " ".join(": ".join(filter(None, (where, field, text))).splitlines())
        self.lines.append((_AFTER_ALL_LINES if line is None else line, note))

    def taken(self) -> tuple[str, ...]:
        """All of them in the order of the file's lines, each once."""
        return tuple(dict.fromkeys(note for _, note in sorted(self.lines, key=lambda n: n[0])))


def like(name: str, known: Iterable[str]) -> str:
    """` (like X)` for the name among `known` that is most like `name`, or nothing."""
    nearest = nearest_name(name, known)
    return f" (like {nearest})" if nearest else ""


@dataclass(frozen=True)
class ImportedConfig:
    """Options of `engine` in lsmtune's spelling, and what could not be carried over.

    `version` is that of the engine which the file says wrote it.
    """

    engine: str
    options: Mapping[str, OptionValue]
    notes: tuple[str, ...] = ()
    version: str | None = None


@dataclass(frozen=True)
class ImportedStudy:
    """Fields of a study file (`space`, `baseline`, `sampler`, ...), and what is missing in them.

    `study` holds only what the file said: the caller adds the fields that a study needs besides.
    `comments` maps a dotted field (`space.name`) to a line about it.
    """

    study: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    comments: Mapping[str, str] = field(default_factory=dict)


Imported = ImportedConfig | ImportedStudy


@dataclass(frozen=True)
class ImportFormat:
    """A format: its name on the command line, how it is recognised, how it is read.

    `recognises` takes the file's text and must be quick and never raise. `read` raises InputError
    for a file that is not of the format.
    """

    name: str
    summary: str
    recognises: Callable[[str], bool]
    read: Callable[[ImportRequest], Imported]


@dataclass(frozen=True)
class ExportRequest:
    """What to export. `label` says where the Config came from; `version` is the engine's.

    `other` are the options of a configuration to go back to; without any, the engine's defaults.
    """

    engine_name: str
    options: Mapping[str, OptionValue]
    version: str | None = None
    label: str = "default"
    other: Mapping[str, OptionValue] = field(default_factory=dict)

    def title(self) -> str:
        """One line for a comment."""
        engine = " ".join(filter(None, (self.engine_name, self.version)))
        return f"Written by lsmtune: {engine}, configuration {self.label}"

    def values(self) -> dict[str, str]:
        """Values as text by dotted name, structures taken apart.

        Raises InputError for an unknown option; an engine without a catalogue takes any name.
        """
        if self.engine_name == "rocksdb":
            return taken_apart(self.options, SOURCE)
        if self.engine_name == "leveldb":
            known = sorted(option_catalogue("leveldb"))
            check_names(self.options, known, SOURCE, why="no such LevelDB option")
        return {name: option_text(value) for name, value in self.options.items()}

    def differences(self) -> tuple[Difference, ...]:
        """What differs from the configuration to go back to, structures taken apart.

        Defaults are those of the engine's `version`, or of the newest one known. Raises InputError
        for an unknown option.
        """
        engine, other = self.engine_name, replace(self, options=self.other)
        here = {name: option_value(text) for name, text in self.values().items()}
        there = {name: option_value(text) for name, text in other.values().items()}
        known = {name: default_of(engine, self.version, name) for name in {*here, *there}}
        defaults = {name: value for name, value in known.items() if value is not None}
        return differences(engine, here, there, defaults)


@dataclass(frozen=True)
class LeftOut:
    """An option that a format cannot say, and why; `refused` where the fault is the value's."""

    option: str
    value: str
    why: str
    refused: InputError | None = None

    @classmethod
    def of(cls, value: str, refused: InputError) -> LeftOut:
        """The option that `refused` names, whose value the format does not take."""
        allowed = f"allowed: {refused.allowed}" if refused.allowed else ""
        return cls(refused.field, value, "; ".join(filter(None, (refused.why, allowed))), refused)

    def __str__(self) -> str:
        return f"{self.option}={self.value}: {self.why}"


@dataclass(frozen=True)
class Exported:
    """The text that says a Config, and what of it the text does not say."""

    text: str
    left_out: tuple[LeftOut, ...] = ()


@dataclass(frozen=True)
class ExportFormat:
    """A format: its name on the command line, the engines it serves, the name of a file in it.

    Without `engines` it serves all, those without a catalogue too. `write` gives a file without its
    first lines. `comment` begins a line of comment there, and is empty for a format that has none.
    """

    name: str
    engines: tuple[str, ...]
    file_name: str
    write: Callable[[ExportRequest], Exported]
    comment: str = ""


def spelled(
    request: ExportRequest, spelling_of: Callable[[str], Spelling | None], lacks: str
) -> tuple[dict[str, str], tuple[LeftOut, ...]]:
    """Each option under its name in another program, with its value there; and all the rest.

    `lacks` says that the program has no word for an option.
    """
    said: dict[str, str] = {}
    left_out: list[LeftOut] = []
    for name, value in request.values().items():
        spelling = spelling_of(name)
        if spelling is None:
            left_out.append(LeftOut(name, value, lacks))
            continue
        try:
            said[spelling.name] = spelling.say(name, value)
        except InputError as error:
            left_out.append(LeftOut.of(value, error))
    return said, tuple(left_out)


def default_of(engine: str, version: str | None, name: str) -> OptionValue | None:
    """The engine's default of the option `name`; None where no catalogue knows it."""
    known = catalogue_defaults(engine, version).get(name)
    option, field = find_written(name) if engine == "rocksdb" else (None, "")
    if known is not None or option is None:
        return known
    text = option.defaults.get(version or "") or option.default or ""
    if field:
        text = split_structure(text).get(field, "") if text.startswith("{") else ""
    return option_value(text) if text else None
