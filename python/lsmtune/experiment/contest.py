"""What the teams of a contest hand in, and the rules that every entry has to meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from lsmtune.engines.catalogue import catalogue_defaults, option_catalogue
from lsmtune.engines.importers.base import Document, read_text, yaml_document
from lsmtune.engines.library import ENGINE_KINDS, ENGINE_NAMES
from lsmtune.engines.memory_model import memory_model
from lsmtune.engines.memory_options import ModelOptions, model_options
from lsmtune.errors import InputError, is_utf8, nearest_name
from lsmtune.model.config import Config, OptionValue
from lsmtune.space.constraint import Constraint, make_constraint

FILE = "FILE"
_NAME_LENGTH_MAX = 80


@dataclass(frozen=True)
class Named:
    """A text of the command line as a team's name and what it handed in."""

    name: str
    text: str


@dataclass(frozen=True)
class Entry:
    """What the team `name` handed in; `source` is the file or text that it came from."""

    name: str
    source: str
    config: Config


def named(text: str) -> Named:
    """`NAME=WHAT`, or a file (or another name of a configuration), which names the team.

    Raises InputError for a name that is empty, too long, or not one line of text.
    """
    name, equals, what = text.partition("=")
    if equals and not Path(text).is_file():
        return Named(_checked(name.strip(), text), what.strip())
    path = Path(text)
    # OPTIONS-000007 has no suffix to lose; a.properties has.
    return Named(_checked(path.stem if path.is_file() else text, text), text)


def _checked(name: str, text: str) -> str:
    if not name or len(name) > _NAME_LENGTH_MAX or not name.isprintable() or not is_utf8(name):
        allowed = f"NAME=FILE with a name of at most {_NAME_LENGTH_MAX} characters"
        raise InputError(FILE, found=text, why="names no team", allowed=allowed)
    return name


def all_named(texts: Sequence[str]) -> list[Named]:
    """Each of `texts` as `named`. Raises InputError for a name that two of them have."""
    found: dict[str, Named] = {}
    for text in texts:
        each = named(text)
        if each.name in found:
            why = f"two teams are named {each.name}: {found[each.name].text} and {each.text}"
            raise InputError(FILE, found=text, why=why, allowed="NAME=FILE for each")
        found[each.name] = each
    return list(found.values())


# --- The rules of a contest: expressions over engine options that every entry has to meet.
#
# A rules file is YAML: `version: 1`, and under `rules` each rule by name, with `rule` (an
# expression, or one for each engine by name) and optionally `about`, a line for people.

BUILT_IN = "built in"
_VERSION = 1
_TOP_FIELDS = ("version", "rules")
_RULE_FIELDS = ("rule", "about")
_MEMORY_MODEL = "memory_model_bytes"
# RocksDB spells its size in several ways, and `no_block_cache` makes it none.
_BLOCK_CACHE = "block_based_table_factory.block_cache"


@dataclass(frozen=True)
class Rule:
    """A rule for one engine."""

    name: str
    constraint: Constraint
    about: str = ""

    @property
    def text(self) -> str:
        """The expression, in one line."""
        return self.constraint.text


@dataclass(frozen=True)
class Rules:
    """All rules for `engine`; `source` is the file, or `BUILT_IN`.

    `elsewhere` names the rules that are for other engines only.
    """

    engine: str
    source: str
    rules: tuple[Rule, ...]
    elsewhere: tuple[str, ...] = ()


@dataclass(frozen=True)
class Broken:
    """A rule that an entry breaks: `figures` are the values of what the rule names.

    `violation` is by how much, as a share of the limit.
    """

    rule: str
    text: str
    about: str
    figures: Mapping[str, OptionValue]
    violation: float


def built_in_rules(engine: str) -> Rules:
    """The restrictions of the contest, for `engine`."""
    return parse_rules(built_in_text(), BUILT_IN, engine)


def built_in_text() -> str:
    """The rules file that is used where the user gives none."""
    return (resources.files("lsmtune.experiment") / "contest_rules.yaml").read_text(
        encoding="utf-8"
    )


def load_rules(path: Path, engine: str) -> Rules:
    """The rules in the file at `path`, for `engine`. Raises InputError for what is wrong in it."""
    return parse_rules(read_text(path), str(path), engine)


def parse_rules(text: str, source: str, engine: str) -> Rules:
    """The rules in `text`, for `engine`; `source` names it in errors.

    Raises InputError with file, line and field for the first thing that is wrong, a name that is no
    option of the engine included. Expressions of other engines are not looked at.
    """
    document = yaml_document(text, source)
    _check_fields(document, (), document.data, _TOP_FIELDS)
    if document.data.get("version") != _VERSION or document.data.get("version") is True:
        found = document.data.get("version")
        raise document.error(("version",), found=found, allowed=str(_VERSION))
    written = document.data.get("rules")
    if not isinstance(written, dict) or not written:
        raise document.error(("rules",), why="is no rule", allowed="rules by name")
    made = [_rule(document, str(name), raw, engine) for name, raw in written.items()]
    return Rules(
        engine,
        source,
        tuple(rule for rule in made if isinstance(rule, Rule)),
        tuple(name for name in made if isinstance(name, str)),
    )


def _rule(document: Document, name: str, raw: object, engine: str) -> Rule | str:
    """The rule `name` for `engine`; its name alone where it is for other engines."""
    place: tuple[str, ...] = ("rules", name)
    if not isinstance(raw, dict):
        raise document.error(place, why="is no rule", allowed="a mapping with `rule`")
    _check_fields(document, place, raw, _RULE_FIELDS)
    about = raw.get("about", "")
    if not isinstance(about, str):
        raise document.error((*place, "about"), found=about, allowed="text")
    text, place = raw.get("rule"), (*place, "rule")
    if isinstance(text, dict):
        for other in text:
            if other not in ENGINE_NAMES:
                nearest = nearest_name(str(other), ENGINE_NAMES)
                allowed = ", ".join(ENGINE_NAMES)
                raise document.error(
                    (*place, str(other)), why="no such engine", allowed=allowed, nearest=nearest
                )
        if engine not in text:
            return name
        text, place = text[engine], (*place, engine)
    if not isinstance(text, str):
        allowed = "a condition such as write_buffer_size <= 1GiB, or one for each engine"
        raise document.error(place, found=text, allowed=allowed)
    return Rule(name, _constraint(document, place, text, engine), " ".join(about.split()))


def _constraint(
    document: Document, place: tuple[str | int, ...], text: str, engine: str
) -> Constraint:
    options: Sequence[str] = ()
    if engine in ENGINE_KINDS:
        options = list(option_catalogue(engine))
    # For the place in the file, which the expression itself does not know.
    where = document.error(place, why="")
    constraint = make_constraint(text, options, (), (_MEMORY_MODEL,), where.source, where.field)
    for name in sorted(constraint.option_names - catalogue_defaults(engine).keys()):
        why = f"{name} has no value that is known here where an entry leaves it alone"
        raise document.error(place, why=why, allowed="options with a default")
    return constraint


def _check_fields(
    document: Document, place: tuple[str | int, ...], raw: Mapping[str, Any], known: Sequence[str]
) -> None:
    for name in raw:
        if name not in known:
            nearest = nearest_name(str(name), known)
            raise document.error(
                (*place, str(name)),
                why="no such field",
                allowed=", ".join(known),
                nearest=nearest,
            )
    for name in known[:1]:
        if name not in raw:
            raise document.error((*place, name), allowed=f"{', '.join(known)}")


def broken_rules(
    rules: Rules, config: Config, source: str, version: str | None = None
) -> list[Broken]:
    """The rules that `config` breaks; `source` names it in errors.

    What it leaves alone has the default of the engine's `version`, of the newest one known when
    None. Raises InputError for a value that a rule cannot compute with.
    """
    if not rules.rules:
        return []
    values = _values(rules, config, source, version)
    found = []
    for rule in rules.rules:
        violation = rule.constraint.violation(values)
        if violation > 0:
            names = sorted(rule.constraint.full_names.values())
            figures = {name: values[name] for name in names if name in values}
            found.append(Broken(rule.name, rule.text, rule.about, figures, violation))
    return found


def _values(
    rules: Rules, config: Config, source: str, version: str | None
) -> dict[str, OptionValue]:
    """What the rules may name: defaults, the entry's own options, the memory model."""
    read = model_options(rules.engine, config.options, version or "", source)
    values = {**catalogue_defaults(rules.engine, version), **read.given}
    wanted = {name for rule in rules.rules for name in rule.constraint.option_names}
    for name in (wanted - {_BLOCK_CACHE}) & read.given.keys():
        values[name] = _typed(rules.engine, name, read)
    facts = {name for rule in rules.rules for name in rule.constraint.fact_names}
    if _MEMORY_MODEL in facts or _BLOCK_CACHE in wanted:
        model = memory_model(rules.engine, config.options, version=version or "", source=source)
        values[_MEMORY_MODEL] = model.total_bytes
        if _BLOCK_CACHE in wanted:
            values[_BLOCK_CACHE] = model.parts["block_cache"]
    return values


def _typed(engine: str, name: str, read: ModelOptions) -> OptionValue:
    """The option as a number or truth where it is one: an engine's own `64M` is one, too."""
    kind = option_catalogue(engine)[name].type
    if kind == "int":
        return read.whole(name, low=-(2**63))
    if kind == "float":
        return read.number(name)
    return read.truth(name) if kind == "bool" else read.value(name)
