"""What the teams of a contest hand in, and the rules that every entry has to meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator

from lsmtune.engines.catalogue import catalogue_defaults, option_catalogue
from lsmtune.engines.library import ENGINE_KINDS, ENGINE_NAMES
from lsmtune.engines.memory_model import memory_model, model_options
from lsmtune.engines.option_names import BLOCK_CACHE
from lsmtune.errors import InputError, check_names, is_utf8
from lsmtune.model.config import Config, EngineIdentity, OptionValue
from lsmtune.model.fields import STRICT, Version, described, found_text, refusing
from lsmtune.model.files import FileKind, parse_document, read_as, read_text
from lsmtune.model.text import is_file
from lsmtune.space.constraint import Constraint, make_constraint

FILE = "FILE"
_NAME_LENGTH_MAX = 80


@dataclass(frozen=True)
class Entry:
    """What the team `name` handed in; `source` is the file or text that it came from."""

    name: str
    source: str
    config: Config


def team_and_entry(text: str) -> tuple[str, str]:
    """A team's name and what it handed in, of `NAME=WHAT` or of WHAT alone.

    WHAT is a file, which names the team by its own name, or another name of a configuration. Raises
    InputError for a name that is empty, too long, or not one line of text.
    """
    name, equals, what = text.partition("=")
    path = Path(text)
    if equals and not is_file(path):
        name, what = name.strip(), what.strip()
    else:
        # OPTIONS-000007 has no suffix to lose; a.properties has.
        name, what = path.stem if is_file(path) else text, text
    return team_name(name, text), what


def team_name(name: str, text: str) -> str:
    """`name` of the team that handed in `text`.

    Raises InputError for one that is empty, too long, or not one line of text.
    """
    if not name or len(name) > _NAME_LENGTH_MAX or not name.isprintable() or not is_utf8(name):
        allowed = f"NAME=FILE with a name of at most {_NAME_LENGTH_MAX} characters"
        raise InputError(FILE, found=text, why="names no team", allowed=allowed)
    return name


def entries_by_team(texts: Sequence[str]) -> dict[str, str]:
    """What each team handed in, by name. Raises InputError for a name that two of `texts` have."""
    teams: dict[str, str] = {}
    for text in texts:
        name, what = team_and_entry(text)
        if name in teams:
            why = f"two teams are named {name}: {teams[name]} and {what}"
            raise InputError(FILE, found=text, why=why, allowed="NAME=FILE for each")
        teams[name] = what
    return teams


# --- Rules: Constraints on engine options that every entry has to meet.
#
# A rules file is YAML: `version: 1`, and under `rules` each rule by name, with `rule` (an
# expression, or one for each engine by name) and optionally `about`, a line for people.

BUILT_IN = "built in"
_KIND = FileKind("rules")
_EXPRESSION = "a condition such as write_buffer_size <= 1GiB, or one for each engine by name"
_MEMORY_MODEL = "memory_model_bytes"


def _by_engine(value: object) -> object:
    """An expression, or a mapping of engines to expressions."""
    stated = {"": value}
    if isinstance(value, dict):
        check_names(value, ENGINE_NAMES, "", why="no such engine")
        stated = value
    for name, text in stated.items():
        if not isinstance(text, str):
            raise InputError("", name, found=found_text(text), allowed=_EXPRESSION)
    return value


@dataclass(frozen=True)
class _StatedRule:
    """A rule as the file states it."""

    __pydantic_config__ = STRICT

    rule: Annotated[Any, BeforeValidator(refusing(_by_engine)), described(_EXPRESSION)]
    about: Annotated[str, described("text")] = ""


@dataclass(frozen=True)
class _RulesFile:
    """A rules file of lsmtune."""

    __pydantic_config__ = STRICT

    version: Annotated[Version, described("1")]
    rules: Annotated[
        Mapping[str, _StatedRule], described("at least one rule, by name", min_length=1)
    ]


@dataclass(frozen=True)
class Rule:
    """A rule for one engine: its expression in one line, and what it is about."""

    name: str
    text: str
    about: str = ""


@dataclass(frozen=True)
class Rules:
    """The Constraint of each rule for `engine`; `source` is the file, or `BUILT_IN`.

    `elsewhere` names the rules that are for other engines only.
    """

    engine: str
    source: str
    constraints: Mapping[Rule, Constraint]
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


@dataclass(frozen=True)
class Disqualified:
    """A team that was not run, and the rules that its entry breaks, at least one."""

    team: str
    broken: tuple[Broken, ...]


def rules_text(path: Path | None = None) -> tuple[str, str]:
    """The text of the rules file at `path`, or of the one that is built in; and its source.

    Raises InputError for what is no small text file.
    """
    if path is not None:
        return read_text(path, _KIND), str(path)
    built_in = resources.files("lsmtune.experiment") / "contest_rules.yaml"
    return built_in.read_text(encoding="utf-8"), BUILT_IN


def load_rules(engine: str, path: Path | None = None) -> Rules:
    """The rules of `rules_text` for `engine`. Raises InputError for what is wrong in them."""
    return parse_rules(*rules_text(path), engine)


def parse_rules(text: str, source: str, engine: str) -> Rules:
    """The rules in `text`, for `engine`; `source` names it in errors.

    Raises InputError with file, line and field for the first thing that is wrong, a name that is no
    option of the engine included. Of the expressions of other engines only the type is looked at.
    """
    document = parse_document(text, source, _KIND)
    constraints: dict[Rule, Constraint] = {}
    elsewhere = []
    for name, stated in read_as(_RulesFile, document).rules.items():
        expression, field = stated.rule, f"rules.{name}.rule"
        if isinstance(expression, dict):
            if engine not in expression:
                elsewhere.append(name)
                continue
            expression, field = expression[engine], f"{field}.{engine}"
        constraint = _constraint(document.where(field), field, expression, engine)
        constraints[Rule(name, constraint.text, " ".join(stated.about.split()))] = constraint
    return Rules(engine, source, constraints, tuple(elsewhere))


def _constraint(source: str, field: str, text: str, engine: str) -> Constraint:
    options = list(option_catalogue(engine)) if engine in ENGINE_KINDS else []
    constraint = make_constraint(text, options, (), (_MEMORY_MODEL,), source, field)
    for name in sorted(constraint.option_names - catalogue_defaults(engine).keys()):
        why = f"{name} has no value that is known here where an entry leaves it alone"
        raise InputError(source, field, why=why, allowed="options with a default")
    return constraint


# --- Who meets the rules.


def disqualified_entries(
    entries: Sequence[Entry], rules: Rules, engine: EngineIdentity
) -> tuple[Disqualified, ...]:
    """The entries that break a rule. Raises InputError as `broken_rules` does."""
    disqualified = []
    for entry in entries:
        broken = broken_rules(rules, entry.config, entry.source, engine.version)
        if broken:
            disqualified.append(Disqualified(entry.name, tuple(broken)))
    return tuple(disqualified)


def broken_rules(
    rules: Rules, config: Config, source: str, version: str | None = None
) -> list[Broken]:
    """The rules that `config` breaks; `source` names it in errors.

    What it leaves alone has the default of the engine's `version`, of the newest one known when
    None. Raises InputError for a value that a rule cannot compute with.
    """
    if not rules.constraints:
        return []
    values = _values(rules, config, source, version)
    broken = []
    for rule, constraint in rules.constraints.items():
        violation = constraint.violation(values)
        if violation > 0:
            names = sorted(constraint.full_names.values())
            figures = {name: values[name] for name in names if name in values}
            broken.append(Broken(rule.name, rule.text, rule.about, figures, violation))
    return broken


def _values(
    rules: Rules, config: Config, source: str, version: str | None
) -> dict[str, OptionValue]:
    """What the rules may name: defaults, the entry's own options, the memory model."""
    options = model_options(rules.engine, config.options, version, source)
    values = {**catalogue_defaults(rules.engine, version), **options.given}
    constraints = rules.constraints.values()
    named_options = {name for constraint in constraints for name in constraint.option_names}
    for name in (named_options - {BLOCK_CACHE}) & options.given.keys():
        # A number or truth where the option is one: an engine's own `64M` is one, too.
        kind = option_catalogue(rules.engine)[name].type
        if kind == "int":
            values[name] = options.whole(name, low=-(2**63))
        elif kind == "float":
            values[name] = options.number(name)
        else:
            values[name] = options.truth(name) if kind == "bool" else options.value(name)
    names_model = any(_MEMORY_MODEL in constraint.fact_names for constraint in constraints)
    if names_model or BLOCK_CACHE in named_options:
        parts = memory_model(rules.engine, config.options, version=version, source=source)
        values[_MEMORY_MODEL] = sum(parts.values())
        if BLOCK_CACHE in named_options:  # spelled in several ways; `no_block_cache` makes it none
            values[BLOCK_CACHE] = parts["block_cache"]
    return values
