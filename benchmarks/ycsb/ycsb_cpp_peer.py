"""YCSB-cpp as the peer: one process per load or run, with its own HDR histograms on.

Both sides have the same engine options. RocksDB takes an OPTIONS file in YCSB-cpp: it gets the one
that a database of the driver wrote. The engine does not write down the block cache, but reads it
there, so its line is added. LevelDB's options are YCSB-cpp's properties.

YCSB-cpp counts opening and closing the database as part of its runtime, which the driver does not.
`opening_s` measures both with a call that does next to nothing, so that they can be taken off.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lsmtune.programs.ycsb_cpp_output import YcsbPhase, parse_ycsb_log

BLOCK_CACHE_BYTES = 32 << 20
# Values as random as YCSB's do not compress; without compression both sides write the same bytes.
ENGINE_OPTIONS = {
    "rocksdb": {
        "compression": "kNoCompression",
        "block_based_table_factory.block_cache": str(BLOCK_CACHE_BYTES),
        "block_based_table_factory.filter_policy": "bloomfilter:10:false",
    },
    "leveldb": {
        "compression": "no",
        "cache_size": str(BLOCK_CACHE_BYTES),
        "filter_bits": "10",
        "max_file_size": str(2 << 20),
        "max_open_files": "1000",
        "write_buffer_size": str(4 << 20),
        "block_size": "4096",
        "block_restart_interval": "16",
    },
}
_TABLE_SECTION = '[TableOptions/BlockBasedTable "default"]'
# Types that YCSB-cpp files an operation under whose key was not there.
_FAILED = "-FAILED"
_LOOKUPS = ("READ", "UPDATE")  # an update begins with a lookup; a read-modify-write is one of each
# With -s the counts are printed when a phase begins and ends; nothing in between.
_NO_STATUS_BETWEEN_S = "100000"


def ycsb_cpp_properties(engine: str, database: Path, scratch: Path) -> dict[str, str]:
    """The properties by which YCSB-cpp opens databases as the driver opened `database`.

    Raises ValueError for an OPTIONS file that does not have the form of RocksDB's.
    """
    if engine == "leveldb":
        return {f"leveldb.{name}": value for name, value in ENGINE_OPTIONS[engine].items()}
    text = max(database.glob("OPTIONS-*"), key=lambda path: path.name).read_text()
    if _TABLE_SECTION not in text or str(database) in text:
        raise ValueError(f"{database}: an OPTIONS file that cannot be used for another database")
    cache = f"{_TABLE_SECTION}\n  block_cache={BLOCK_CACHE_BYTES}"
    file = scratch / "options.ini"
    file.write_text(text.replace(_TABLE_SECTION, cache))
    return {"rocksdb.optionsfile": str(file)}


@dataclass(frozen=True)
class YcsbCpp:
    """The program, the engine that it was built with, and what it is to open databases with.

    `properties` are `rocksdb.*` or `leveldb.*`, without the database's folder.
    """

    binary: Path
    engine: str
    properties: Mapping[str, str]

    def load(self, database: Path, workload: Path, properties: Mapping[str, str]) -> YcsbPhase:
        """Loads an empty `database`. Raises CalledProcessError, InputError for its output."""
        return self._call("-load", database, workload, properties)

    def run(self, database: Path, workload: Path, properties: Mapping[str, str]) -> YcsbPhase:
        """Runs on a loaded `database`. Raises as `load`."""
        return self._call("-run", database, workload, properties)

    def opening_s(self, database: Path, workload: Path, properties: Mapping[str, str]) -> float:
        """Seconds that opening and closing take, where a run does nothing between them.

        By one thread: one of several that has nothing to do closes the database under the others.
        """
        none = {**properties, "operationcount": "0", "threadcount": "1"}
        return self._call("-run", database, workload, none).elapsed_s

    def _call(
        self, what: str, database: Path, workload: Path, properties: Mapping[str, str]
    ) -> YcsbPhase:
        given = {
            **self.properties,
            f"{self.engine}.dbname": str(database),
            f"{self.engine}.destroy": "false",
            "status.interval": _NO_STATUS_BETWEEN_S,
            **properties,
        }
        settings = [word for name, value in given.items() for word in ("-p", f"{name}={value}")]
        command = [str(self.binary), what, "-db", self.engine, "-P", str(workload), "-s", *settings]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return parse_ycsb_log(done.stdout, self.binary.name).phases[-1]


def lookups(phase: YcsbPhase) -> tuple[int, int]:
    """Keys that lookups of `phase` found, and keys that they did not find."""
    counts = {name: latency.count for name, latency in phase.by_type.items()}
    found = sum(counts.get(name, 0) for name in _LOOKUPS)
    return found, sum(counts.get(name + _FAILED, 0) for name in _LOOKUPS)
