"""The same engine options for both sides: what the driver gets, and what YCSB-cpp gets.

RocksDB takes an OPTIONS file in YCSB-cpp: it gets the one that a database of the driver wrote. The
engine does not write down the block cache, but reads it there, so its line is added. LevelDB's
options are YCSB-cpp's properties.
"""

from __future__ import annotations

import sys
from pathlib import Path

# Both comparisons of the driver share what is there.
sys.path.append(str(Path(__file__).resolve().parents[1] / "driver"))

from db_bench_peer import different

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


def different_options(engine: str, ours: Path, theirs: Path) -> list[str]:
    """What the options of two databases differ in, ours and theirs, as the engine wrote them down.

    Empty for LevelDB, which writes nothing down.
    """
    return [] if engine == "leveldb" else different(ours, theirs)
