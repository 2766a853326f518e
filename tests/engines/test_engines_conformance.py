"""LevelDB in the suite for engines that packages use; RocksDB is in the driver's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsmtune.testing.engines import EngineSuite


@pytest.mark.engine
class TestLeveldb(EngineSuite):
    name = "leveldb"
    small = ("write_buffer_size", 65536)
    mistyped = (("write_bufer_size", "write_buffer_size"), ("filter_bit", "filter_bits"))
    bad_values = (("block_size", 1023), ("compression", "lz4"))
    durabilities = ("sync", "wal")
    own_way = ("create_if_missing", "error_if_exists", "compression")

    @pytest.fixture(autouse=True)
    def _library(self, leveldb_library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(type(self), "library", lambda _self: leveldb_library)
