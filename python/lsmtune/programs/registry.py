"""The programs that people trust, by name."""

from __future__ import annotations

from collections.abc import Mapping

from lsmtune.errors import InputError, nearest_name
from lsmtune.programs import (
    ekvsb_call,
    leveldb_db_bench_call,
    rocksdb_db_bench_call,
    ycsb_cpp_call,
)
from lsmtune.programs.info import ProgramInfo

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
