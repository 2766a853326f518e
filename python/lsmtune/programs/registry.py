"""The programs that people trust, by name."""

from __future__ import annotations

from collections.abc import Mapping

from lsmtune.errors import InputError, nearest_name
from lsmtune.programs import ekvsb, leveldb_db_bench, rocksdb_db_bench, ycsb_cpp
from lsmtune.programs.program import Program

PROGRAMS: Mapping[str, Program] = {
    program.name: program
    for program in (
        rocksdb_db_bench.PROGRAM,
        leveldb_db_bench.PROGRAM,
        ycsb_cpp.PROGRAM,
        ekvsb.PROGRAM,
    )
}


def program_named(
    name: str, source: str, field: str = "", *, also: tuple[str, ...] = ()
) -> Program:
    """The program `name`.

    Raises InputError, naming `source` and `field`; `also` are names that are allowed there too.
    """
    if name not in PROGRAMS:
        known = (*also, *PROGRAMS)
        nearest = nearest_name(name, known)
        raise InputError(source, field, found=name, allowed=", ".join(known), nearest=nearest)
    return PROGRAMS[name]
