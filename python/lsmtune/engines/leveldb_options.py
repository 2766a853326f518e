"""LevelDB's options, in lsmtune's spelling: the setters of `leveldb/c.h`."""

from __future__ import annotations

from collections.abc import Iterable

from lsmtune.errors import InputError, nearest_name

# `cache_size` and `filter_bits` stand for the objects that LevelDB takes in their place (an LRU
# cache of that many bytes, a Bloom filter of that many bits per key).
LEVELDB_OPTIONS = (
    "block_restart_interval",
    "block_size",
    "cache_size",
    "compression",
    "create_if_missing",
    "error_if_exists",
    "filter_bits",
    "max_file_size",
    "max_open_files",
    "paranoid_checks",
    "write_buffer_size",
)


def check_leveldb_options(names: Iterable[str], source: str) -> None:
    """Raises InputError, naming `source` and the option, for a name that LevelDB lacks."""
    for name in names:
        if name not in LEVELDB_OPTIONS:
            nearest = nearest_name(name, LEVELDB_OPTIONS)
            allowed = ", ".join(LEVELDB_OPTIONS)
            why = "no such LevelDB option"
            raise InputError(source, name, why=why, allowed=allowed, nearest=nearest)
