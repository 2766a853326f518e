"""`.properties` files of YCSB-cpp, and flags of db_bench."""

from __future__ import annotations

from pathlib import Path

import pytest
from importer_parts import collected, config, notes_of

from lsmtune.engines.formats import db_bench, export, read_config
from lsmtune.engines.formats.base import ImportRequest
from lsmtune.engines.formats.db_bench import LINE_CHARACTERS_MAX
from lsmtune.engines.formats.properties import read_given
from lsmtune.engines.properties import Property, properties_of
from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue

TABLE = "block_based_table_factory"


def properties(text: str, engine: str | None = None) -> dict[str, OptionValue]:
    return dict(config(text, "properties", engine).options)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("leveldb.compression=snappy \t", "snappy"),
        ("leveldb.compression=no", "none"),
        ("leveldb.compression=none", "none"),
        ("leveldb.compression=zstd", "none"),  # every other word means none to YCSB-cpp
        ("leveldb.block_size=4096", "none"),  # and so does no word
        ("rocksdb.compression=no", "kNoCompression"),
        ("rocksdb.compression=none", "kNoCompression"),
        ("rocksdb.compression=lz4hc", "kLZ4HCCompression"),
    ],
)
def test_compression(text: str, expected: str) -> None:
    assert properties(text)["compression"] == expected


def test_a_comment_begins_in_the_first_column_only() -> None:
    text = "#leveldb.block_size=1\n #leveldb.block_size=2\nleveldb.block_size=3\n"
    found = config(text, "properties")
    assert found.options["block_size"] == 3
    assert "file:2: #leveldb.block_size: left out" in notes_of(found)


def test_zero_leaves_the_engines_default_but_for_the_filter() -> None:
    text = "leveldb.cache_size=0\nleveldb.filter_bits=0\nleveldb.compression=snappy"
    found = config(text, "properties")
    assert found.options == {"filter_bits": 0, "compression": "snappy"}
    assert "leveldb.cache_size: 0 leaves the engine's default" in notes_of(found)
    text = "rocksdb.bloom_bits=0\nrocksdb.compression=snappy"
    assert properties(text)[f"{TABLE}.filter_policy"] == "nullptr"


def test_less_than_a_bit_is_no_filter_to_ycsb() -> None:
    """`bloomfilter:-1` was made of it, which RocksDB refuses."""
    text = "rocksdb.bloom_bits=-1\nrocksdb.compression=snappy"
    assert properties(text)[f"{TABLE}.filter_policy"] == "nullptr"
    assert properties("leveldb.filter_bits=-1")["filter_bits"] == 0


@pytest.mark.parametrize("value", ["1", "yes", "TRUE", "t"])
def test_what_is_no_truth_to_ycsb_is_none_here(value: str) -> None:
    """YCSB-cpp compares with `true` alone: its run had no direct reads, and the import had."""
    with pytest.raises(InputError, match=rf"use_direct_reads: found '{value}'; allowed: true, fal"):
        properties(f"rocksdb.use_direct_reads={value}")
    assert properties("rocksdb.use_direct_reads=true")["use_direct_reads"] is True


def test_an_options_file_stands_for_all_other_options(tmp_path: Path) -> None:
    (tmp_path / "o.ini").write_text(export("rocksdb-options", "rocksdb", {"num_levels": 5}))
    path = tmp_path / "a.properties"
    path.write_text("rocksdb.dbname=x\nrocksdb.optionsfile=o.ini\nrocksdb.write_buffer_size=1\n")
    found = read_config(path)
    assert found.options == {"num_levels": 5}
    assert "rocksdb.write_buffer_size: left out: YCSB-cpp ignores it" in notes_of(found)
    # Of LevelDB it was RocksDB's file, whose options were then taken for LevelDB's.
    found = config("leveldb.block_size=1\nleveldb.optionsfile=o.ini\n", "properties")
    assert (found.engine, found.options["block_size"]) == ("leveldb", 1)
    assert "leveldb.optionsfile: left out: YCSB-cpp has no such property" in notes_of(found)


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("dku-contest/properties/leveldb1.properties", "block_restart_interval", 16),
        ("dku-contest/properties/leveldb6.properties", "write_buffer_size", 50_000_000),
        ("dku-contest/properties/contest-default.properties", "max_file_size", 4 << 20),
        ("ycsb-cpp/leveldb.properties", "filter_bits", 10),
        ("ycsb-cpp/rocksdb.properties", "max_open_files", -1),
    ],
)
def test_the_files_of_the_contest_and_of_ycsb(name: str, option: str, value: OptionValue) -> None:
    path = collected(name)
    found = read_config(path)
    assert found.options[option] == value
    assert found.notes == ()
    again = export("properties", found.engine, found.options)
    assert config(again, "properties").options == found.options


def flags(text: str, engine: str = "rocksdb") -> dict[str, OptionValue]:
    return dict(config(text, "db_bench", engine).options)


@pytest.mark.parametrize(
    "text",
    [
        "--write_buffer_size=1 --use_fsync=true",
        "db_bench -write_buffer_size 1 --use_fsync",
        "/usr/bin/db_bench --use_fsync \\\n --write_buffer_size=1",
        "# flags\n--use_fsync=1\n'--write_buffer_size=1'\n",
    ],
)
def test_the_forms_of_a_flag(text: str) -> None:
    assert flags(text) == {"write_buffer_size": 1, "use_fsync": True}


def test_a_number_below_zero_may_stand_behind_its_flag() -> None:
    """`--open_files -1` is one flag to gflags: the import ended with "has no value"."""
    assert flags("--open_files -1 --seed -1 --use_fsync") == {
        "max_open_files": -1,
        "use_fsync": True,
    }


@pytest.mark.parametrize(
    "flag",
    [
        *("write_buffer_size=1_000", "write_buffer_size=\uff11", "bloom_bits=1_0"),
        *("memtable_bloom_size_ratio=0_1", "memtable_bloom_size_ratio=nan"),
    ],
)
def test_a_number_of_pythons_is_none_of_db_bench_and_ycsb(flag: str) -> None:
    """`1_000` was 1,000 here, 1 to YCSB-cpp, and none to gflags."""
    name, _, value = flag.partition("=")
    with pytest.raises(InputError, match=rf"--{name}: found '{value}'; allowed: a (whole )?number"):
        flags(f"--{flag}")
    with pytest.raises(InputError, match="found '1_000'; allowed: a whole number"):
        properties("rocksdb.write_buffer_size=1_000")


@pytest.mark.parametrize("flag", ["--use_fsync", "--nouse_fsync", "--use_ribbon_filter"])
def test_a_word_behind_a_truth_is_not_its_value(flag: str) -> None:
    """To gflags `--use_fsync false` is true, and `false` no flag: the import had false."""
    with pytest.raises(InputError, match="file:1: found 'false'; allowed: --name=value"):
        flags(f"{flag} false")


def test_the_last_of_two_flags_counts_and_no_turns_one_off() -> None:
    assert flags("--open_files=1 --open_files=2 --nouse_fsync") == {
        "max_open_files": 2,
        "use_fsync": False,
    }


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("--bloom_bits=0", "nullptr"),
        ("--bloom_bits=10", "bloomfilter:10"),
        ("--bloom_bits=10 --use_ribbon_filter", "ribbonfilter:10"),
        ("--bloom_bits=10 --use_ribbon_filter=false", "bloomfilter:10"),
        ("--bloom_bits=10 --use_ribbon_filter --nouse_ribbon_filter", "bloomfilter:10"),
    ],
)
def test_two_flags_make_one_filter(text: str, policy: str) -> None:
    assert flags(text) == {f"{TABLE}.filter_policy": policy}
    assert flags("--bloom_bits=-1 --open_files=1") == {"max_open_files": 1}


@pytest.mark.parametrize(
    ("engine", "text", "options"),
    [
        ("rocksdb", "--universal_min_merge_width=0 --universal_size_ratio=0", {}),
        ("rocksdb", "--rate_limiter_bytes_per_sec=0", {}),
        ("rocksdb", "--universal_max_merge_width=8 --universal_max_merge_width=0", {}),
        ("rocksdb", "--cache_size=-1", {f"{TABLE}.no_block_cache": True}),
        ("rocksdb", "--cache_size=0", {f"{TABLE}.no_block_cache": True}),
        ("leveldb", "--cache_size=-1", {}),
        ("rocksdb", "--bloom_bits=-1", {}),
    ],
)
def test_what_leaves_the_default_to_db_bench_sets_nothing(
    engine: str, text: str, options: dict[str, OptionValue]
) -> None:
    """A rate limit of 0 is none there; as an option it is a limiter that lets nothing pass.

    A cache of 0 bytes is none there, too: it was imported as a cache that holds nothing.
    """
    assert flags(text, engine) == options


def test_flags_whose_names_are_not_the_options_stand_for_them_both_ways() -> None:
    """The preset for point look-ups lost its memtable filter: db_bench had no flag, it was said."""
    options: dict[str, OptionValue] = {
        "memtable_prefix_bloom_size_ratio": 0.02,
        "max_file_opening_threads": 4,
        "compression_opts.max_dict_buffer_bytes": 65536,
        "compression_opts.use_zstd_dict_trainer": False,
    }
    said = export("db_bench", "rocksdb", options)
    for flag in ("memtable_bloom_size_ratio=0.02", "file_opening_threads=4"):
        assert f"--{flag}" in said.split()
    assert flags(said) == options


def test_the_words_of_leveldbs_db_bench() -> None:
    text = "--compression=0 --bloom_bits=10 --open_files=5 --reuse_logs=1"
    found = config(text, "db_bench", "leveldb")
    assert found.options == {"compression": "none", "filter_bits": 10, "max_open_files": 5}
    assert "--reuse_logs: left out: not the flag of an option of leveldb" in notes_of(found)


def test_no_filter_is_minus_one_to_leveldbs_db_bench() -> None:
    assert export("db_bench", "leveldb", {"filter_bits": 0}) == "--bloom_bits=-1\n"
    assert flags("--bloom_bits=-1", "leveldb") == {"filter_bits": 0}
    with pytest.raises(InputError, match="-1 for no filter"):
        flags("--bloom_bits=0", "leveldb")


def test_a_value_that_means_something_else_to_ycsb_is_refused() -> None:
    with pytest.raises(InputError, match=r"-1 to 2147483647 in a \.properties file, but not 0"):
        export("properties", "rocksdb", {"max_open_files": 0})


@pytest.mark.parametrize("flag", ["disable_wal", "sync"])
def test_durability_belongs_to_the_workload(flag: str) -> None:
    assert "durability" in notes_of(config(f"--{flag}=1", "db_bench", "rocksdb"))


def test_what_a_properties_file_says_in_vain_is_named() -> None:
    text = (
        "leveldb.compression=snapy\nleveldb.format=row\nleveldb.destroy=true\nleveldb.dbname=/x\n"
        "leveldb.cache_size=1\nleveldb.cache_size=2\nnothing\n"
    )
    notes = config(text, "properties").notes
    assert [note.split(":", 1)[1] for note in notes] == [
        "1: leveldb.compression: snapy means none to YCSB-cpp; written as such",
        "2: leveldb.format: left out: a record is one value, as with format=single",
        "6: leveldb.cache_size: replaces the value of line 5",
        "7: left out: no property, for want of a =: nothing",
    ]


def test_a_line_of_flags_has_bounds() -> None:
    """A word of 900,000 characters took `shlex` longer than anyone waits."""
    text = "--write_buffer_size=1\\\n" + "9" * LINE_CHARACTERS_MAX
    with pytest.raises(InputError, match=r"a.flags:2: a line of 65557 characters; allowed: at mos"):
        db_bench.read(ImportRequest(text, Path("a.flags"), "rocksdb"))


def test_flags_before_a_backslash_at_the_end_of_the_file_count() -> None:
    read = db_bench.read(ImportRequest("--write_buffer_size=7 \\", Path("a.flags"), "rocksdb"))
    assert read.options == {"write_buffer_size": 7}


# --- no compression in properties: `none` and `no` are read, and YCSB-cpp's `no` is written


@pytest.mark.parametrize(("engine", "option"), [("leveldb", "none"), ("rocksdb", "kNoCompression")])
@pytest.mark.parametrize("word", ["no", "none"])
def test_there_and_back(engine: str, option: str, word: str, tmp_path: Path) -> None:
    path = tmp_path / "a.properties"
    path.write_text(f"{engine}.compression={word}\n{engine}.write_buffer_size=65536\n")
    options = read_config(path).options
    assert options["compression"] == option
    text = export("properties", engine, options)
    assert f"\n{engine}.compression=no\n" in text
    path.write_text(text)
    assert read_config(path).options == options


def test_properties_from_several_places(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text("leveldb.block_size=1024\nleveldb.compression=snappy\n")
    second.write_text("leveldb.block_size=many\nleveldb.sync=true\nrecordcount=1\n")
    with pytest.raises(InputError, match=f"^{second}:1: leveldb.block_size: found 'many'"):
        read_given(properties_of([first, second], {}), "leveldb")
    found = read_given(properties_of([first, second], {"leveldb.block_size": "2048"}), "leveldb")
    assert found.options == {"block_size": 2048, "compression": "snappy"}
    assert any(note.startswith(f"{second}:2: leveldb.sync: left out") for note in found.notes)
    assert read_given({"rocksdb.cache_size": Property("1", "-p")}, "leveldb").options == {}
