"""The programs that people trust, by name."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from lsmtune.errors import InputError, nearest_name

if TYPE_CHECKING:
    from lsmtune.programs.program import Program

# Where each one is; loaded when the program is used, because it takes the option catalogue.
_PLACES = {
    "rocksdb-db_bench": ("db_bench", "ROCKSDB_PROGRAM"),
    "leveldb-db_bench": ("db_bench", "LEVELDB_PROGRAM"),
    "ycsb-cpp": ("ycsb_cpp", "PROGRAM"),
    "ekvsb": ("ekvsb", "PROGRAM"),
}


class _Programs(Mapping[str, "Program"]):
    def __getitem__(self, name: str) -> Program:
        module, attribute = _PLACES[name]
        program: Program = getattr(importlib.import_module(f"lsmtune.programs.{module}"), attribute)
        return program

    def __iter__(self) -> Iterator[str]:
        return iter(_PLACES)

    def __len__(self) -> int:
        return len(_PLACES)


PROGRAMS: Mapping[str, Program] = _Programs()


def program_named(name: str, source: str, field: str = "") -> Program:
    """The program `name`. Raises InputError, naming `source` and `field`, for one that is none."""
    if name not in _PLACES:
        nearest = nearest_name(name, _PLACES)
        raise InputError(source, field, found=name, allowed=", ".join(_PLACES), nearest=nearest)
    return PROGRAMS[name]
