"""What differs between two configurations of an engine, with both values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lsmtune.engines.catalogue import (
    OptionInfo,
    catalogue_defaults,
    has_catalogue,
    option_catalogue,
)
from lsmtune.engines.formats.base import values_of
from lsmtune.engines.option_names import find_written, split_structure
from lsmtune.model.config import OptionValue
from lsmtune.space.parameter import same_value
from lsmtune.units import option_value


@dataclass(frozen=True)
class Difference:
    """An option that two configurations give different values.

    A value is None where a configuration leaves the engine's default, and that is not known;
    `set_here` and `set_there` tell whether a configuration states its value. `unit` is the
    catalogue's.
    """

    option: str
    here: OptionValue | None
    there: OptionValue | None
    set_here: bool
    set_there: bool
    unit: str = ""


def differences(
    engine: str,
    version: str | None,
    here: Mapping[str, OptionValue],
    there: Mapping[str, OptionValue],
) -> tuple[Difference, ...]:
    """The options that `here` and `there` leave or set to different values, in order of names.

    Defaults are those of the engine's `version`, or of the newest one known. Raises InputError for
    an unknown option.
    """
    ours, theirs = values_of(engine, here), values_of(engine, there)
    infos: Mapping[str, OptionInfo] = option_catalogue(engine) if has_catalogue(engine) else {}
    found = []
    for name in sorted({*ours, *theirs}):
        default = default_of(engine, version, name)
        one = option_value(ours[name]) if name in ours else default
        other = option_value(theirs[name]) if name in theirs else default
        if one is None or other is None or not same_value(one, other):
            unit = infos[name].unit if name in infos else ""
            found.append(Difference(name, one, other, name in ours, name in theirs, unit))
    return tuple(found)


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
