"""Which option of an engine a foreign name means: the option itself, or a flag of its db_bench."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lsmtune.engines.catalogue import OptionInfo, option_catalogue
from lsmtune.engines.exporters.db_bench import LEVELDB_FLAGS, ROCKSDB_FLAGS, same_name_flag
from lsmtune.engines.exporters.spelling import Spelling
from lsmtune.engines.option_names import LEVELDB_OPTIONS, catalogue, written_options


@dataclass(frozen=True)
class KnownOption:
    """An option of an engine as importers need it; `info` where the catalogue describes it.

    `type` is `int`, `float`, `bool`, or empty for a word, a text and what is not known.
    """

    name: str
    type: str = ""
    info: OptionInfo | None = None

    @property
    def in_bytes(self) -> bool:
        """Whether its values are sizes."""
        return self.info is not None and self.info.unit == "bytes"


@dataclass(frozen=True)
class Meaning:
    """What a foreign name means: an option, and the spelling of its values where that differs."""

    option: KnownOption
    spelling: Spelling | None = None


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


@functools.cache
def flags(engine: str) -> Mapping[str, Meaning]:
    """The flags of the engine's db_bench that stand for an option, by their name."""
    known = known_options(engine)
    if engine == "leveldb":
        return {s.name: Meaning(known[name], s) for name, s in LEVELDB_FLAGS.items()}
    meanings = {
        option.name: Meaning(known[option.dotted], spelling)
        for option in catalogue()[0].values()
        if (spelling := same_name_flag(option)) is not None
    }
    meanings |= {s.name: Meaning(known[name], s) for name, s in ROCKSDB_FLAGS.items()}
    return MappingProxyType(meanings)


def find_option(engine: str, name: str) -> Meaning | None:
    """The option that `name` means: by its own name, a db_bench flag, or the end of its name."""
    known = known_options(engine)
    if name in known:
        return Meaning(known[name])
    if name in flags(engine):
        return flags(engine)[name]
    ends = [option for option in known.values() if option.name.rpartition(".")[2] == name]
    return Meaning(ends[0]) if len(ends) == 1 else None
