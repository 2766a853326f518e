"""The catalogues of engine options, files of the folder `options`, and how such files are read.

A catalogue maps an option's name to its attributes, in the order in which they are listed to
people. Sizes may be written with units (`64KiB`). `parse_catalogue` checks everything that later
code relies on, so that a slip in a data file is one clear line and not a strange search.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import BeforeValidator, Field, ValidationError

from lsmtune.engines.library import ENGINE_KINDS, PLUGIN_ENGINES, listed_options, version_key
from lsmtune.errors import InputError, by_name, check_name, is_utf8, nearest_name
from lsmtune.model.codec import adapter
from lsmtune.model.config import OptionValue
from lsmtune.model.fields import STRICT, pairs_of
from lsmtune.space.parameter import (
    Condition,
    Parameter,
    is_option_name,
    make_categorical,
    make_number,
    same_value,
)
from lsmtune.space.range import Range
from lsmtune.units import option_value

Record = TypeVar("Record")


def read_data(file_name: str) -> str:
    """The text of a data file of the folder `options`."""
    data = resources.files("lsmtune.engines") / "options" / file_name
    return data.read_text(encoding="utf-8")


def read_entries(text: str, source: str) -> dict[str, Any]:
    """The named entries in `text` (YAML). Raises InputError, naming `source`, for anything else."""
    try:
        document = yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise InputError(source, why=f"not YAML: {error}") from error
    if not isinstance(document, dict) or not document:
        raise InputError(source, allowed="a mapping from names to their attributes")
    return {str(name): entry for name, entry in document.items()}


class _Loader(yaml.CSafeLoader):
    """The safe loader, which takes a key that is given twice for the mistake that it is."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for index, key in enumerate(keys):
            if key in keys[:index]:
                raise yaml.MarkedYAMLError(problem=f"{key} twice", problem_mark=node.start_mark)
        return super().construct_mapping(node, deep)


def read_entry(kind: type[Record], raw: object, name: str, source: str) -> Record:
    """The entry `name` as a `kind`. Raises InputError for the first thing that is wrong in it."""
    named = {"name": name, **raw} if isinstance(raw, dict) else raw
    try:
        entry: Record = adapter(kind).validate_json(json.dumps(named, default=str))
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join([name, *(str(part) for part in problem["loc"])])
        value = problem["input"] if isinstance(problem["input"], str | int | float) else None
        raise InputError(source, place, found=value, why=problem["msg"]) from None
    return entry


# An option's value as people write it: `4MiB` is a number of bytes.
Value = Annotated[OptionValue, BeforeValidator(option_value)]
Number = Annotated[int | float, BeforeValidator(option_value)]


# --- What the catalogue knows of one engine option, and its Parameter.


OptionType = Literal["int", "float", "bool", "enum", "text"]
Scope = Literal["db", "column_family", "table"]
Effect = Literal["layout", "runtime"]
Unit = Literal["", "bytes", "bits", "s", "ms", "us", "bytes/s", "%"]
ScalesWith = Literal["", "data", "memory", "cores"]
Risk = Literal["durability", "data_loss", "space", "memory", "correctness"]


def _version(value: object) -> object:
    if not isinstance(value, str) or re.fullmatch(r"\d+\.\d+(\.\d+)?", value) is None:
        raise ValueError("allowed: a version in quotes, such as '8.4'")
    return value


_LISTED = BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else (value,))
Version = Annotated[str, BeforeValidator(_version)]


@dataclass(frozen=True, kw_only=True)
class OptionInfo:
    """One option of an engine.

    Args:
        default: The engine's in the newest version covered; None for one that is no value.
        low, high: The range worth searching, in `unit`, of a number; the engine takes more.
        choices: The values worth searching of an enumeration or a text.
        specials: Values outside the range that mean something of their own, with that meaning.
        condition: The option does something only while each named option has one of the values.
        constraint: Expressions over option names that must hold, or the engine refuses the options
            or changes them.
        effect: `layout` where the files of a loaded and settled database depend on the option.
        mutable: An open database can change it, in every version.
        mutable_since: In place of `mutable`: it can from this version on.
        least: Of an option that scales with the data: the smallest value that is not raised.
        since, until: The first and the last version with the option; empty where it is older than
            all versions covered, or still there.
        older_defaults: The last version with another default, and that default; oldest first.
        choices_since: The first version with a choice that came later than the option.
        older_constraint: The last version with other constraints, and those; oldest first.
    """

    __pydantic_config__ = STRICT

    name: str
    type: OptionType
    default: Value | None = None
    unit: Unit = ""
    low: Number | None = None
    high: Number | None = None
    log: bool = False
    step: Number | None = None
    choices: tuple[Value, ...] = ()
    specials: Annotated[tuple[tuple[int | float, str], ...], pairs_of(Number, str)] = ()
    condition: Mapping[str, Annotated[tuple[Value, ...], _LISTED]] = field(default_factory=dict)
    constraint: tuple[str, ...] = ()
    scope: Scope
    effect: Effect
    mutable: bool = False
    mutable_since: Version = ""
    scales_with: ScalesWith = ""
    least: Number | None = None
    risk: tuple[Risk, ...] = ()
    since: Version = ""
    until: Version = ""
    trade_off: Annotated[str, Field(min_length=20, pattern=r"^\S.*\.$")]
    source: Annotated[str, Field(min_length=1)]
    older_defaults: Annotated[tuple[tuple[str, OptionValue], ...], pairs_of(Version, Value)] = ()
    choices_since: Mapping[str, Version] = field(default_factory=dict)
    older_constraint: Annotated[
        tuple[tuple[str, tuple[str, ...]], ...], pairs_of(Version, tuple[str, ...])
    ] = ()

    @property
    def searchable(self) -> bool:
        """Whether the option has values that a search can try."""
        return self.low is not None or bool(self.choices)

    def exists_in(self, version: str) -> bool:
        """Whether the engine's `version` (`10.2.1`) has the option."""
        if self.since and version_key(version) < version_key(self.since):
            return False
        return not self.until or _is_up_to(version, self.until)

    def mutable_in(self, version: str) -> bool:
        """Whether an open database of `version` can change the option."""
        return self.mutable and version_key(version) >= version_key(self.mutable_since)

    def default_in(self, version: str | None) -> OptionValue | None:
        """The engine's default in `version`, which must have the option; None is the newest."""
        if version is None:
            return self.default
        return in_version(version, self.older_defaults, self.default)

    def parameter(self) -> Parameter:
        """The option as a Parameter over its sensible range.

        Raises what `make_number` and `make_categorical` raise, as for one that is not `searchable`.
        """
        conditions = [Condition(name, values) for name, values in self.condition.items()]
        if self.low is not None and self.high is not None:
            return make_number(
                self.name,
                Range(self.low, self.high, self.log, self.step, integer=self.type == "int"),
                unit="bytes" if self.unit == "bytes" else "",
                specials=[(value, None) for value, _ in self.specials],
                conditions=conditions,
                default=self.default,
            )
        return make_categorical(
            self.name, self.choices, conditions=conditions, default=self.default
        )


def _is_up_to(version: str, last: str) -> bool:
    """Whether `version` (10.2.1) is no later than `last`, which may be a whole series (10.2)."""
    return version_key(version)[: len(version_key(last))] <= version_key(last)


def in_version(version: str, older: tuple[tuple[str, Record], ...], newest: Record) -> Record:
    """The first of `older`, each with its last version, that `version` has; else `newest`."""
    return next((value for last, value in older if _is_up_to(version, last)), newest)


@functools.cache
def option_catalogue(engine: str) -> Mapping[str, OptionInfo]:
    """Option name -> OptionInfo, in the order of the data file.

    A plugin's engine has the options that its library lists. Raises InputError for a name that is
    no engine with a catalogue.
    """
    if engine not in ENGINE_KINDS and engine in PLUGIN_ENGINES:
        return listed_catalogue(by_name(PLUGIN_ENGINES, engine, "engine").library())
    check_name(engine, ENGINE_KINDS, "engine")
    file_name = f"{engine}.yaml"
    return parse_catalogue(read_data(file_name), file_name)


def has_catalogue(engine: str | None) -> bool:
    """Whether the options of `engine` are known: `option_catalogue` has them."""
    return engine in ENGINE_KINDS or engine in PLUGIN_ENGINES


def listed_catalogue(library: Path) -> Mapping[str, OptionInfo]:
    """The options that a library of `driver/include/lsmtune_engine.h` lists.

    Raises InputError, naming the library and the field, for the first thing that is wrong.
    """
    source = str(library)
    try:
        listed = json.loads(listed_options(library))
    except ValueError as error:
        raise InputError(source, why=f"lists its options in what is not JSON: {error}") from error
    if not isinstance(listed, dict) or not all(isinstance(raw, dict) for raw in listed.values()):
        raise InputError(source, why="lists its options otherwise", allowed="an object of objects")
    if not is_utf8(json.dumps(listed, ensure_ascii=False)):
        raise InputError(source, why="lists its options with half of a surrogate pair")
    known = {"scope": "db", "effect": "layout", "source": library.name}
    for_the_driver = ("least", "most")
    whole = {
        name: {**known, **{key: raw[key] for key in raw if key not in for_the_driver}}
        for name, raw in listed.items()
    }
    return _checked_catalogue(whole, source)


def parse_catalogue(text: str, source: str) -> Mapping[str, OptionInfo]:
    """The catalogue in `text` (YAML).

    Raises InputError, naming `source` and the field, for the first thing that is wrong.
    """
    return _checked_catalogue(read_entries(text, source), source)


def _checked_catalogue(listed: Mapping[str, object], source: str) -> Mapping[str, OptionInfo]:
    """The catalogue of what is `listed` by name. Raises InputError as `parse_catalogue` does."""
    catalogue: dict[str, OptionInfo] = {}
    for name, raw in listed.items():
        if not is_option_name(name):
            raise InputError(source, name, why="not an option's name")
        info = read_entry(OptionInfo, raw, name, source)
        _check_shape(info, source)
        info = replace(info, mutable=info.mutable or bool(info.mutable_since))
        catalogue[name] = replace(info, choices=(False, True)) if info.type == "bool" else info
    for info in catalogue.values():
        _check_condition(info, catalogue, source)
        if not info.searchable:
            continue
        try:
            parameter = info.parameter()
        except InputError as error:
            field = error.field.removeprefix("space.")
            raise error.but(source=source, field=field, nearest="") from error
        for _, older in info.older_defaults:
            if not parameter.contains(older):
                field = f"{info.name}.older_defaults"
                raise InputError(source, field, found=older, allowed=parameter.describe())
    return MappingProxyType(catalogue)


def _check_shape(info: OptionInfo, source: str) -> None:
    """What a type needs and what it must not have."""
    is_number = info.type in ("int", "float")
    has_range = info.low is not None and info.high is not None
    if is_number != has_range:
        allowed = "low and high for int and float, and for them alone"
        raise InputError(source, f"{info.name}.low", found=info.low, allowed=allowed)
    if not is_number and (info.specials or info.log or info.step is not None):
        allowed = "specials, log and step for int and float only"
        raise InputError(source, info.name, found=info.type, allowed=allowed)
    if bool(info.choices) != (info.type == "enum") and info.type != "text":
        allowed = "choices for enum, and for enum and text alone"
        raise InputError(source, f"{info.name}.choices", found=info.type, allowed=allowed)
    choices = [str(choice) for choice in info.choices]
    for choice in info.choices_since:
        check_name(choice, choices, source, f"{info.name}.choices_since")
    for part in ("older_defaults", "older_constraint"):
        versions = [version_key(version) for version, _ in getattr(info, part)]
        if versions != sorted(versions):
            raise InputError(source, f"{info.name}.{part}", allowed="versions, oldest first")


def _check_condition(info: OptionInfo, catalogue: Mapping[str, OptionInfo], source: str) -> None:
    for name, values in info.condition.items():
        field = f"{info.name}.condition.{name}"
        parent = catalogue.get(name)
        if parent is None or parent is info:
            nearest = nearest_name(name, catalogue)
            raise InputError(source, field, why="no such other option", nearest=nearest)
        if not parent.choices:
            raise InputError(source, field, found=name, allowed="an option with choices")
        for value in values:
            if not any(same_value(value, choice) for choice in parent.choices):
                allowed = ", ".join(map(str, parent.choices))
                raise InputError(source, field, found=value, allowed=allowed)


# --- The defaults of an engine's options, for all who ask what an option has that nothing sets.


@functools.cache
def catalogue_defaults(engine: str | None, version: str | None = None) -> Mapping[str, OptionValue]:
    """Option to default, of the options of `version` of which the catalogue knows one.

    None stands for the newest version that the catalogue knows. Empty for an engine without a
    catalogue.
    """
    if engine is None or not has_catalogue(engine):
        return MappingProxyType({})
    defaults = {
        name: info.default_in(version)
        for name, info in option_catalogue(engine).items()
        if version is None or info.exists_in(version)
    }
    known = {name: value for name, value in defaults.items() if value is not None}
    return MappingProxyType(known)
