"""The programs that people trust, by name: those that lsmtune knows, and those of plugins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lsmtune import plugins

if TYPE_CHECKING:
    from lsmtune.programs.program import Program

ROCKSDB_NAME, LEVELDB_NAME, YCSB_CPP_NAME = "rocksdb-db_bench", "leveldb-db_bench", "ycsb-cpp"

# Where each one is; loaded when the program is used, because it takes the option catalogue.
_PLACES: Mapping[str, Program | str] = {
    ROCKSDB_NAME: "lsmtune.programs.db_bench:ROCKSDB_PROGRAM",
    LEVELDB_NAME: "lsmtune.programs.db_bench:LEVELDB_PROGRAM",
    YCSB_CPP_NAME: "lsmtune.programs.ycsb_cpp:PROGRAM",
    "ekvsb": "lsmtune.programs.ekvsb:PROGRAM",
}

PROGRAMS: plugins.Plugins[Program] = plugins.Plugins(plugins.PROGRAMS, _PLACES)
