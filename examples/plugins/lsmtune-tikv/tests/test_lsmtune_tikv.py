"""TiKV's configuration: what is written is TOML, and says what was asked for."""

from __future__ import annotations

import tomllib

import pytest

from lsmtune.engines.formats import export
from lsmtune.errors import InputError
from lsmtune.testing.exporters import ExporterSuite


class TestTikv(ExporterSuite):
    name = "tikv"

    def read(self, text: str) -> object:
        return tomllib.loads(text)


def test_a_configuration_is_said_in_tikvs_words() -> None:
    options = {
        "max_background_jobs": 4,
        "write_buffer_size": 64 << 20,
        "compression": "kZSTD",
        "compaction_pri": "kOldestSmallestSeqFirst",
        "level_compaction_dynamic_level_bytes": True,
        "block_based_table_factory.block_size": 16384,
        "block_based_table_factory.block_cache": 1 << 30,
        "block_based_table_factory.filter_policy": "bloomfilter:10:false",
    }
    assert tomllib.loads(export("tikv", "rocksdb", options)) == {
        "rocksdb": {
            "max-background-jobs": 4,
            "defaultcf": {
                "write-buffer-size": 64 << 20,
                "compression-per-level": ["zstd"] * 7,
                "compaction-pri": 2,
                "dynamic-level-bytes": True,
                "block-size": 16384,
                "use-bloom-filter": True,
                "bloom-filter-bits-per-key": 10,
            },
        },
        "storage": {"block-cache": {"capacity": 1 << 30}},
    }
    none = {"block_based_table_factory.filter_policy": "nullptr"}
    family = tomllib.loads(export("tikv", "rocksdb", none))["rocksdb"]["defaultcf"]
    assert family == {"use-bloom-filter": False}


def test_what_tikv_has_no_field_for_is_said() -> None:
    with pytest.raises(InputError, match="TiKV has no field for ttl; next step: --format rocksdb"):
        export("tikv", "rocksdb", {"ttl": 60})
