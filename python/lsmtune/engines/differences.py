"""What differs between two configurations of an engine, with both values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lsmtune.engines.catalogue import catalogue_defaults, has_catalogue, option_catalogue
from lsmtune.engines.option_names import same_to
from lsmtune.model.config import EngineIdentity, OptionValue


@dataclass(frozen=True)
class Difference:
    """An option that two configurations give different values.

    A value is None where a configuration leaves the engine's default, and that is not known;
    `is_set` tells whether a configuration states its value. `unit` is the catalogue's.
    """

    option: str
    value: OptionValue | None
    is_set: bool
    other_value: OptionValue | None
    other_is_set: bool
    unit: str = ""


def differences(
    engine: str,
    here: Mapping[str, OptionValue],
    there: Mapping[str, OptionValue],
    defaults: Mapping[str, OptionValue],
) -> tuple[Difference, ...]:
    """The options that `here` and `there` leave or set to different values, in order of names.

    Values are those that `engine` reads: to RocksDB, `16M` is 16777216. `defaults` has what is
    known of the engine's; options that no catalogue knows are compared by what is set alone.
    """
    differing = []
    for name in sorted({*here, *there}):
        one, other = (options.get(name, defaults.get(name)) for options in (here, there))
        if one is None or other is None or not same_to(engine, one, other):
            unit = option_unit(engine, name)
            differing.append(Difference(name, one, name in here, other, name in there, unit))
    return tuple(differing)


def option_unit(engine: str, name: str) -> str:
    """The unit of the values of an option; empty where no catalogue knows the option."""
    infos = option_catalogue(engine) if has_catalogue(engine) else {}
    return infos[name].unit if name in infos else ""


def known_defaults(engine: EngineIdentity) -> Mapping[str, OptionValue]:
    """The defaults of `engine`'s version; of one of unknown version no default is known."""
    return catalogue_defaults(engine.name, engine.version) if engine.version else {}
