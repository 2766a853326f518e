"""Presets, which are named configurations, and ready spaces, which are named sets of parameters.

The data is `presets.yaml` and `spaces.yaml`. The options of a preset hold what the engine can be
told by name and value; what a preset does beyond that, and what it costs, is in its notes. A
parameter of a space has the catalogue's range, choices and condition unless the space states its
own; a space has the constraints of its options in the catalogue, and those that it adds. Where a
condition names an option that the space holds still, it is settled here.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Annotated, Literal

from lsmtune.engines.catalogue import (
    Number,
    OptionInfo,
    Value,
    option_catalogue,
    read_data,
    read_entries,
    read_entry,
)
from lsmtune.engines.library import PLUGIN_ENGINES
from lsmtune.errors import InputError, by_name
from lsmtune.model.config import OptionValue
from lsmtune.model.fields import STRICT, pairs_of
from lsmtune.space.parameter import Parameter, same_value

_PRESETS_FILE = "presets.yaml"


@dataclass(frozen=True)
class Preset:
    """A named configuration of `engine`: `options` is what differs from the engine's defaults.

    `suits` are the kinds of workload for which it is worth a try without being asked for; none for
    those that need a medium or keys of their own. `source` says where the values are from, `notes`
    what cannot be said in options and what the user should know before using them.
    """

    __pydantic_config__ = STRICT

    name: str
    engine: str
    options: Mapping[str, Value]
    summary: str
    source: str
    suits: tuple[Literal["writes", "reads", "scans"], ...] = ()
    notes: tuple[str, ...] = ()


@functools.cache
def known_presets() -> Mapping[str, Preset]:
    """Every preset by name, in the order of the data file."""
    stated = read_entries(read_data(_PRESETS_FILE), _PRESETS_FILE)
    return MappingProxyType(
        {name: read_entry(Preset, raw, name, _PRESETS_FILE) for name, raw in stated.items()}
    )


# --- Ready spaces.

_SPACES_FILE = "spaces.yaml"


@dataclass(frozen=True)
class ReadySpace:
    """A space of `engine` to use by name.

    `constraints` are expressions over option names, where an option outside the space has its
    default or the value in `fixed`: options that every configuration of the space sets beside its
    parameters. `unsafe` are the options whose values a study has to allow one by one.
    """

    name: str
    engine: str
    parameters: tuple[Parameter, ...]
    constraints: tuple[str, ...]
    fixed: Mapping[str, OptionValue]
    summary: str
    unsafe: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Narrowed:
    """What a space changes of a catalogue option."""

    __pydantic_config__ = STRICT

    low: Number | None = None
    high: Number | None = None
    step: Number | None = None
    log: bool | None = None
    choices: tuple[Value, ...] | None = None
    specials: Annotated[tuple[tuple[int | float, str], ...], pairs_of(Number, str)] | None = None


@dataclass(frozen=True)
class _SpacesEntry:
    """One entry of the data file; with `leaves_out`, a space has every option but those."""

    __pydantic_config__ = STRICT

    name: str
    engine: str
    summary: str
    leaves_out: dict[str, str] | None = None
    parameters: dict[str, _Narrowed | None] = field(default_factory=dict)
    constraints: tuple[str, ...] = ()
    fixed: dict[str, Value] = field(default_factory=dict)
    unsafe: tuple[str, ...] = ()


def _space(entry: _SpacesEntry, infos: Sequence[OptionInfo]) -> ReadySpace:
    """The space of these options."""
    constraints = [text for info in infos for text in info.constraint]
    return ReadySpace(
        name=entry.name,
        engine=entry.engine,
        parameters=tuple(info.parameter() for info in infos),
        constraints=tuple(dict.fromkeys([*constraints, *entry.constraints])),
        fixed=MappingProxyType(entry.fixed),
        summary=entry.summary,
        unsafe=entry.unsafe,
    )


def _infos(entry: _SpacesEntry) -> list[OptionInfo]:
    """The options of the space, as it narrows them, with the conditions that are left open."""
    catalogue = option_catalogue(entry.engine)
    chosen = {n: _narrowed(catalogue[n], own) for n, own in entry.parameters.items()}
    if entry.leaves_out is not None:
        left_out = {*entry.fixed, *entry.leaves_out}
        # Every option, that every version covered has, with values to try.
        chosen = {
            option: chosen.get(option) or _narrowed(info, None)
            for option, info in catalogue.items()
            if option not in left_out
            and not (info.since or info.until)
            and (info.low is not None or len(_old_choices(info)) > 1)
        }
    unsearched = {n: info.default for n, info in catalogue.items()} | entry.fixed
    settled = (_settled(info, chosen, unsearched) for info in chosen.values())
    return [info for info in settled if info is not None]


def _old_choices(info: OptionInfo) -> tuple[OptionValue, ...]:
    """The choices that every version with the option has."""
    return tuple(choice for choice in info.choices if str(choice) not in info.choices_since)


def _narrowed(info: OptionInfo, own: _Narrowed | None) -> OptionInfo:
    """`info` with what the space states; else without the choices that only newer versions have."""
    stated = {} if own is None else vars(own)
    changes = {name: value for name, value in stated.items() if value is not None}
    changes.setdefault("choices", _old_choices(info))
    return replace(info, **changes)


def _settled(
    info: OptionInfo, chosen: Mapping[str, OptionInfo], unsearched: Mapping[str, OptionValue | None]
) -> OptionInfo | None:
    """`info` with the conditions that a search decides; None when one of them can never hold."""
    undecided: dict[str, tuple[OptionValue, ...]] = {}
    for parent, values in info.condition.items():
        searched = parent in chosen
        possible = chosen[parent].choices if searched else (unsearched[parent],)
        met = tuple(v for v in values if any(p is not None and same_value(p, v) for p in possible))
        if not met:
            return None
        if searched:
            undecided[parent] = met
    return replace(info, condition=MappingProxyType(undecided))


def _listed_spaces() -> Mapping[str, ReadySpace]:
    """For each engine of a plugin that can be used, all options that its library lists."""
    spaces = {}
    for engine in PLUGIN_ENGINES.usable():
        try:
            infos = [info for info in option_catalogue(engine).values() if info.searchable]
        except InputError:
            continue  # `lsmtune options` and who measures with it are told
        if infos:
            entry = _SpacesEntry(f"{engine}-all", engine, "every option that the library lists")
            spaces[entry.name] = _space(entry, infos)
    return spaces


@functools.cache
def known_spaces() -> Mapping[str, ReadySpace]:
    """Every ready space by name, in the order of the data file; then those of plugins' engines."""
    stated = read_entries(read_data(_SPACES_FILE), _SPACES_FILE)
    own = [read_entry(_SpacesEntry, raw, name, _SPACES_FILE) for name, raw in stated.items()]
    return {**{entry.name: _space(entry, _infos(entry)) for entry in own}, **_listed_spaces()}


def ready_space(name: str, source: str, field: str) -> ReadySpace:
    """The space `name`. Raises InputError, naming `source` and `field`, for any other name."""
    return by_name(known_spaces(), name, source, field, why="no such ready space")
