"""TiKV's configuration: what is written is TOML, and says what was asked for."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from lsmtune.engines.formats import IMPORTERS, export, read_config
from lsmtune.engines.formats.base import ImportRequest
from lsmtune.errors import InputError
from lsmtune.testing.exporters import ExporterSuite
from lsmtune.testing.importers import ImporterSuite

FILE = Path(__file__).with_name("tikv.toml")


class TestTikv(ExporterSuite):
    name = "tikv"

    def read(self, text: str) -> object:
        return tomllib.loads(text)


class TestTikvImported(ImporterSuite):
    name, files = "tikv", (FILE,)


def test_a_file_gives_the_options_of_its_default_column_family(tmp_path: Path) -> None:
    found = read_config(FILE)
    assert found.options == {
        "max_background_jobs": 8,
        "max_open_files": 40960,
        "max_manifest_file_size": 128 << 20,
        "write_buffer_size": 128 << 20,
        "compression": "kLZ4Compression",
        "bottommost_compression": "kZSTD",
        "compaction_pri": "kMinOverlappingRatio",
        "level_compaction_dynamic_level_bytes": True,
        "block_based_table_factory.block_size": 32 << 10,
        "block_based_table_factory.block_cache": 1 << 30,
        "block_based_table_factory.filter_policy": "bloomfilter:10",
    }
    assert [note.partition(": ")[2].partition(":")[0] for note in found.notes] == [
        "server grpc-concurrency",
        "rocksdb.writecf write-buffer-size",
    ]
    again = tmp_path / "tikv.toml"
    again.write_text(export("tikv", "rocksdb", found.options))
    assert read_config(again).options == found.options


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[rocksdb]\nmax-open-files = ", "tikv.toml: not TOML: Invalid value"),
        ("[rocksdb]\nmax-open-files = 'many'", "max-open-files: found 'many'; allowed: a whole"),
        ("[rocksdb.defaultcf]\ncompaction-pri = 9", "compaction-pri: found 9; allowed: 0, 1, 2"),
    ],
)
def test_what_is_wrong_in_a_file_is_one_line(text: str, line: str) -> None:
    with pytest.raises(InputError, match=line):
        IMPORTERS["tikv"].read(ImportRequest(text, Path("tikv.toml")))


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
    with pytest.raises(InputError, match="TiKV has no such field: ttl"):
        export("tikv", "rocksdb", {"ttl": 60})
