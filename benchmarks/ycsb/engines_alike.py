"""The same engine options for both sides: what the driver gets, and what YCSB-cpp gets.

RocksDB takes an OPTIONS file in YCSB-cpp: it gets the one that a database of the driver wrote. The
engine does not write down the block cache, but reads it there, so its line is added. LevelDB's
options are YCSB-cpp's properties.
"""

from __future__ import annotations

import re
from pathlib import Path

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
_CAPACITY = re.compile(r"^\s+capacity : (\d+)$", re.MULTILINE)


def ycsb_cpp_properties(engine: str, database: Path, scratch: Path) -> dict[str, str]:
    """The properties by which YCSB-cpp opens databases as the driver opened `database`.

    Raises ValueError for an OPTIONS file that does not have the form of RocksDB's.
    """
    if engine == "leveldb":
        return {f"leveldb.{name}": value for name, value in ENGINE_OPTIONS[engine].items()}
    text = newest_options_file(database).read_text()
    if _TABLE_SECTION not in text or str(database) in text:
        raise ValueError(f"{database}: an OPTIONS file that cannot be used for another database")
    cache = f"{_TABLE_SECTION}\n  block_cache={BLOCK_CACHE_BYTES}"
    file = scratch / "options.ini"
    file.write_text(text.replace(_TABLE_SECTION, cache))
    return {"rocksdb.optionsfile": str(file)}


def newest_options_file(database: Path) -> Path:
    """The OPTIONS file that RocksDB wrote last. Raises ValueError where there is none."""
    return max(database.glob("OPTIONS-*"), key=lambda path: path.name)


def different_options(engine: str, ours: Path, theirs: Path) -> list[str]:
    """What the options of two databases differ in, ours and theirs, as the engine wrote them down.

    Empty for LevelDB, which writes nothing down.
    """
    if engine == "leveldb":
        return []
    one, other = _written(ours), _written(theirs)
    return [
        f"{name}: {one.get(name)} | {other.get(name)}"
        for name in sorted(one.keys() | other.keys())
        if one.get(name) != other.get(name)
    ]


def _written(database: Path) -> dict[str, str]:
    section, found = "", {}
    for line in newest_options_file(database).read_text().splitlines():
        text = line.strip()
        if text.startswith("["):
            section = text
        elif "=" in text and not text.startswith("#"):
            name, _, value = text.partition("=")
            found[f"{section}/{name}"] = value
    capacities = _CAPACITY.findall((database / "LOG").read_text())
    found["LOG/block_cache capacity"] = capacities[0] if capacities else "not said"
    return found
