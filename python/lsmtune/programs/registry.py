"""The programs that people trust, by name."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from lsmtune.errors import InputError, nearest_name

if TYPE_CHECKING:
    from lsmtune.programs.program import Program

# The module of each; it is loaded when the program is used, because it takes the option catalogue.
_MODULES = {
    "rocksdb-db_bench": "rocksdb_db_bench",
    "leveldb-db_bench": "leveldb_db_bench",
    "ycsb-cpp": "ycsb_cpp",
    "ekvsb": "ekvsb",
}


class _Programs(Mapping[str, "Program"]):
    def __getitem__(self, name: str) -> Program:
        program: Program = importlib.import_module(f"lsmtune.programs.{_MODULES[name]}").PROGRAM
        return program

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


PROGRAMS: Mapping[str, Program] = _Programs()


def program_named(
    name: str, source: str, field: str = "", *, also: tuple[str, ...] = ()
) -> Program:
    """The program `name`.

    Raises InputError, naming `source` and `field`; `also` are names that are allowed there too.
    """
    if name not in _MODULES:
        known = (*also, *_MODULES)
        nearest = nearest_name(name, known)
        raise InputError(source, field, found=name, allowed=", ".join(known), nearest=nearest)
    return PROGRAMS[name]
