"""Presets: named configurations with their source, each the options that it sets.

The data is `presets.yaml`. Options hold what the engine can be told by name and value; what a
preset does beyond that, and what it costs, is in its notes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from lsmtune.engines.names import engine_kind
from lsmtune.engines.options.data_file import Value, checked, entries, read_data
from lsmtune.errors import InputError, nearest_name
from lsmtune.records.config import OptionValue
from lsmtune.space import is_option_name

_FILE = "presets.yaml"


@dataclass(frozen=True)
class Preset:
    """A named configuration of `engine`: `options` is what differs from the engine's defaults.

    `source` says where the values are from, `notes` what cannot be said in options and what the
    user should know before using them.
    """

    name: str
    engine: str
    options: Mapping[str, OptionValue]
    summary: str
    source: str
    notes: tuple[str, ...]


class _Entry(BaseModel):
    """One entry of the data file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    engine: str
    summary: Annotated[str, Field(min_length=10)]
    source: Annotated[str, Field(min_length=10)]
    options: dict[str, Value]
    notes: list[str] = Field(default_factory=list)


def parse_presets(text: str, source: str) -> Mapping[str, Preset]:
    """The presets in `text` (YAML) by name, in their order.

    Raises InputError, naming `source` and the preset, for the first entry that is not right.
    """
    found = {name: _preset(name, raw, source) for name, raw in entries(text, source).items()}
    return MappingProxyType(found)


def _preset(name: str, raw: object, source: str) -> Preset:
    entry = checked(_Entry, raw, name, source)
    engine = engine_kind(entry.engine, source).name
    if not name.startswith(f"{engine}-"):
        raise InputError(source, name, allowed=f"a name that begins with {engine}-")
    for option in entry.options:
        if not is_option_name(option):
            raise InputError(source, f"{name}.options", found=option, why="not an option's name")
    options = MappingProxyType(entry.options)
    return Preset(name, engine, options, entry.summary, entry.source, tuple(entry.notes))


# Every preset by name, in the order of the data file.
PRESETS: Mapping[str, Preset] = parse_presets(read_data(_FILE), _FILE)


def preset(name: str, source: str = "preset", field: str = "") -> Preset:
    """The preset `name`. Raises InputError, naming `source` and `field`, for any other name."""
    if name not in PRESETS:
        nearest = nearest_name(name, PRESETS)
        allowed = "those of `lsmtune options --presets`"
        why = "no such preset"
        raise InputError(source, field, found=name, why=why, allowed=allowed, nearest=nearest)
    return PRESETS[name]
