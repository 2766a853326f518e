"""The programs that people trust, by name."""

from __future__ import annotations

from collections.abc import Mapping

from lsmtune.errors import InputError, nearest_name
from lsmtune.programs import ekvsb as ekvsb_call
from lsmtune.programs import ekvsb as program_ekvsb
from lsmtune.programs import leveldb_db_bench as leveldb_db_bench_call
from lsmtune.programs import leveldb_db_bench as program_leveldb_db_bench
from lsmtune.programs import rocksdb_db_bench as program_rocksdb_db_bench
from lsmtune.programs import rocksdb_db_bench as rocksdb_db_bench_call
from lsmtune.programs import ycsb_cpp as program_ycsb_cpp
from lsmtune.programs import ycsb_cpp as ycsb_cpp_call
from lsmtune.programs.program import Program, ProgramInfo

PROGRAM_INFOS: Mapping[str, ProgramInfo] = {
    info.name: info
    for info in (
        rocksdb_db_bench_call.INFO,
        leveldb_db_bench_call.INFO,
        ycsb_cpp_call.INFO,
        ekvsb_call.INFO,
    )
}


def info_named(
    name: str, source: str, field: str = "", *, also: tuple[str, ...] = ()
) -> ProgramInfo:
    """The program `name`.

    Raises InputError, naming `source` and `field`; `also` are names that are allowed there too.
    """
    if name not in PROGRAM_INFOS:
        known = (*also, *PROGRAM_INFOS)
        nearest = nearest_name(name, known)
        raise InputError(source, field, found=name, allowed=", ".join(known), nearest=nearest)
    return PROGRAM_INFOS[name]


# ----------
# The programs that lsmtune can perform runs with, by name: those of `programs.registry`.

PROGRAMS: Mapping[str, Program] = {
    program.name: program
    for program in (
        program_rocksdb_db_bench.PROGRAM,
        program_leveldb_db_bench.PROGRAM,
        program_ycsb_cpp.PROGRAM,
        program_ekvsb.PROGRAM,
    )
}
