"""The programs that people trust, by name: those that lsmtune knows, and those of plugins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lsmtune import plugins

if TYPE_CHECKING:
    from lsmtune.programs.program import Program

# Where each one is; loaded when the program is used, because it takes the option catalogue.
_PLACES: Mapping[str, Program | str] = {
    "rocksdb-db_bench": "lsmtune.programs.db_bench:ROCKSDB_PROGRAM",
    "leveldb-db_bench": "lsmtune.programs.db_bench:LEVELDB_PROGRAM",
    "ycsb-cpp": "lsmtune.programs.ycsb_cpp:PROGRAM",
    "ekvsb": "lsmtune.programs.ekvsb:PROGRAM",
}

PROGRAMS: plugins.Plugins[Program] = plugins.Plugins(plugins.PROGRAMS, _PLACES)
