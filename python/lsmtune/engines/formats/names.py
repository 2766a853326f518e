"""The options of an engine by every name that they have here."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lsmtune.engines.catalogue import OptionInfo, option_catalogue
from lsmtune.engines.formats.spelling import Spelling
from lsmtune.engines.option_names import LEVELDB_OPTIONS, written_options


@dataclass(frozen=True)
class KnownOption:
    """An option of an engine as importers need it; `info` where the catalogue describes it.

    `type` is `int`, `float`, `bool`, or empty for a word, a text and what is not known. `spelling`
    is that of its values under the name by which it was found, where that differs.
    """

    name: str
    type: str = ""
    info: OptionInfo | None = None
    spelling: Spelling | None = None

    @property
    def in_bytes(self) -> bool:
        """Whether its values are sizes."""
        return self.info is not None and self.info.unit == "bytes"


@functools.cache
def known_options(engine: str) -> Mapping[str, KnownOption]:
    """Every option of `engine` that has a name here, dotted where it is nested."""
    known: dict[str, KnownOption] = {}
    if engine == "leveldb":
        known = {name: KnownOption(name) for name in LEVELDB_OPTIONS}
    else:
        for option in written_options().values():
            known[option.dotted] = KnownOption(option.dotted, _type_of(option.default or ""))
            for field in option.fields():
                name = f"{option.dotted}.{field}"
                known[name] = KnownOption(name)
    for name, info in option_catalogue(engine).items():
        kind = info.type if info.type in ("int", "float", "bool") else ""
        known[name] = KnownOption(name, kind, info)
    return MappingProxyType(known)


def _type_of(default: str) -> str:
    if default in ("true", "false"):
        return "bool"
    if default.removeprefix("-").isdigit():
        return "int"
    return "float" if default.replace(".", "", 1).isdigit() else ""
