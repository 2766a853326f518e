"""Which option of an engine a foreign name means: the option itself, or a flag of its db_bench."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from lsmtune.engines.catalogue import OptionInfo, option_catalogue
from lsmtune.engines.exporters.db_bench import LEVELDB_FLAGS, ROCKSDB_FLAGS, same_name_flag
from lsmtune.engines.exporters.spelling import Spelling
from lsmtune.engines.option_names import LEVELDB_OPTIONS, catalogue, written_options


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


@functools.cache
def flags(engine: str) -> Mapping[str, KnownOption]:
    """The flags of the engine's db_bench that stand for an option, by their name."""
    known = known_options(engine)
    spellings = list(LEVELDB_FLAGS.items())
    if engine == "rocksdb":
        own = [(option.dotted, same_name_flag(option)) for option in catalogue()[0].values()]
        spellings = [(name, spelling) for name, spelling in own if spelling is not None]
        spellings += ROCKSDB_FLAGS.items()
    return {s.name: replace(known[name], spelling=s) for name, s in spellings}


def find_option(engine: str, name: str) -> KnownOption | None:
    """The option that `name` means: by its own name, a db_bench flag, or the end of its name."""
    known = known_options(engine)
    option = known.get(name) or flags(engine).get(name)
    if option is not None:
        return option
    ends = [option for option in known.values() if option.name.rpartition(".")[2] == name]
    return ends[0] if len(ends) == 1 else None
