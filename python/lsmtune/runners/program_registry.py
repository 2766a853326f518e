"""The programs that lsmtune can perform runs with, by name: those of `programs.registry`."""

from __future__ import annotations

from collections.abc import Mapping

from lsmtune.runners import (
    program_ekvsb,
    program_leveldb_db_bench,
    program_rocksdb_db_bench,
    program_ycsb_cpp,
)
from lsmtune.runners.program import Program

PROGRAMS: Mapping[str, Program] = {
    program.name: program
    for program in (
        program_rocksdb_db_bench.PROGRAM,
        program_leveldb_db_bench.PROGRAM,
        program_ycsb_cpp.PROGRAM,
        program_ekvsb.PROGRAM,
    )
}
