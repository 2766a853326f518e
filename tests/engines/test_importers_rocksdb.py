"""OPTIONS files and LOGs: the rules of RocksDB's own parser, and the files of real versions."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from importer_parts import GOOD, collected, config, import_file, notes_of

from lsmtune.engines.formats import export, read_config
from lsmtune.engines.formats.base import ImportedConfig
from lsmtune.engines.option_names import catalogue
from lsmtune.model.config import OptionValue

TABLE = "block_based_table_factory"


def options_file(db: str = "", family: str = "", table: str = "") -> str:
    return (
        f"[Version]\nrocksdb_version=10.2.1\n[DBOptions]\n{db}\n"
        f'[CFOptions "default"]\n{family}\n[TableOptions/BlockBasedTable "default"]\n{table}\n'
    )


def read(db: str = "", family: str = "", table: str = "", *, keep: bool = False) -> ImportedConfig:
    return config(options_file(db, family, table), "rocksdb-options", keep=keep)


def test_comments_blanks_and_escapes() -> None:
    found = read(r"  max_background_jobs = 3 # jobs", "prefix_extractor=fixed\\:8 \t")
    assert found.options == {"max_background_jobs": 3, "prefix_extractor": "fixed:8"}
    assert found.version == "10.2.1"
    found = read(r"db_log_dir=/logs/\#1")
    assert "/logs/#1 is a place on another machine" in notes_of(found)


def test_structures_become_dotted_names_and_lists_stay() -> None:
    found = read(
        family="compaction_options_universal={size_ratio=7;max_read_amp=3;}\n"
        "max_bytes_for_level_multiplier_additional=1:2:3",
        table="metadata_cache_options={partition_pinning=kAll;}",
    )
    assert found.options == {
        "compaction_options_universal.size_ratio": 7,
        "compaction_options_universal.max_read_amp": 3,
        "max_bytes_for_level_multiplier_additional": "1:2:3",
        f"{TABLE}.metadata_cache_options.partition_pinning": "kAll",
    }


def test_only_a_whole_dump_leaves_defaults_out() -> None:
    stated = "write_buffer_size=67108864\nmax_write_buffer_number=3"
    assert read(family=stated).options == {
        "write_buffer_size": 64 << 20,
        "max_write_buffer_number": 3,
    }
    dump = f"comparator=leveldb.BytewiseComparator\n{stated}"
    found = read(family=dump)
    assert found.options == {"max_write_buffer_number": 3}
    assert "1 option with the engine's default left out" in notes_of(found)
    assert read(family=dump, keep=True).options["write_buffer_size"] == 64 << 20


def test_a_default_that_changed_between_versions_is_kept() -> None:
    option = "level_compaction_dynamic_level_bytes"
    assert len(set(catalogue().options[option].defaults.values())) == 2
    for value in ("true", "false"):
        found = read(family=f"comparator=leveldb.BytewiseComparator\n{option}={value}")
        assert option in found.options


@pytest.mark.parametrize("version", ["7.8.3", "10.2.1", "10.10.1"])
def test_the_defaults_of_a_version_say_only_what_another_has_otherwise(version: str) -> None:
    sections: dict[str, list[str]] = {"DBOptions": [], "CFOptions": [], "TableOptions": []}
    for option in catalogue().options.values():
        default = option.defaults.get(version)
        if default is not None:
            sections[option.section.split("/")[0]].append(f"{option.name}={default}")
    found = read(*("\n".join(lines) for lines in sections.values()))
    assert len(found.options) < 15
    assert all("left out: " not in note for note in found.notes)


@pytest.mark.parametrize(
    ("statement", "note"),
    [
        ("merge_operator=PutOperator", "code of the program"),
        ("wal_dir=/fast", "a place on another machine"),
        ("error_if_exists=true", "how a database is opened"),
        ("made_up=1", "no option of RocksDB that lsmtune knows"),
        ("ttl=0.3B", "a fraction of a byte"),
        (r"merge_operator=a\nb", "code of the program"),
    ],
)
def test_what_another_database_cannot_have_is_said(statement: str, note: str) -> None:
    found = read(family=statement)
    assert found.options == {}
    assert note in notes_of(found)
    assert notes_of(found).startswith("file:6: ")


def test_what_changes_nothing_needs_no_word() -> None:
    found = read("db_log_dir=\nlisteners={}", "merge_operator=nullptr\ncreate_if_missing=true")
    assert (found.options, found.notes) == ({}, ())


def test_that_a_file_of_rocksdb_lacks_the_size_of_the_block_cache_is_said() -> None:
    """Unsaid, an operator's cache of 16 GiB became 32 MiB, and the gain over it was the cache."""
    written_by_rocksdb = "comparator=leveldb.BytewiseComparator"
    lacks = "block_based_table_factory.block_cache: RocksDB writes no size"
    assert lacks in notes_of(read("", written_by_rocksdb))
    stated = read("", written_by_rocksdb, "block_cache=17179869184")
    assert stated.options == {"block_based_table_factory.block_cache": 17179869184}
    assert stated.notes == ()
    assert lacks not in notes_of(read("", written_by_rocksdb, "no_block_cache=true"))
    # What somebody wrote by hand states what it means to state.
    assert read("max_background_jobs=4").notes == ()


def test_the_lookahead_of_a_skip_list_is_an_option_of_its_own() -> None:
    """RocksDB writes it into the name, which was a kind of memtable that no space has."""
    found = read("", "memtable_factory=SkipListFactory:16")
    expected = {"memtable_factory.id": "skip_list", "memtable_factory.lookahead": 16}
    assert found.options == expected
    assert read("", "memtable_factory=prefix_hash:9").options == {
        "memtable_factory.id": "prefix_hash:9"
    }


@pytest.mark.parametrize(("level", "policy"), [(0, "ribbonfilter:10"), (2, "ribbonfilter:10:2")])
def test_a_ribbon_filter_of_a_newer_version_is_the_filter_that_people_write(
    level: int, policy: str
) -> None:
    """It came in as the text of an object: outside of every space, and no flag said it."""
    text = f"{{id=ribbonfilter:10:{level};bloom_before_level={level};}}"
    found = read("", "comparator=leveldb.BytewiseComparator", f"filter_policy={text}")
    assert found.options == {f"{TABLE}.filter_policy": policy}


FILES = [
    # file, version, an option and its value, how many options at most, what is said
    ("rocksdb/option_file_example.ini", "4.3.0", "num_levels", 6, 30, "filter_deletes"),
    ("rocksdb/OPTIONS-000005", "5.14.0", "write_buffer_size", 4194000, 15, "col_fam_A"),
    ("ycsb-cpp/options.ini", "5.17.2", "max_write_buffer_number", 6, 20, "read as 0"),
    ("peer-output/OPTIONS-000007", "7.8.3", "table_cache_numshardbits", 4, 20, "listeners"),
]


@pytest.mark.parametrize(("name", "version", "option", "value", "most", "said"), FILES)
def test_the_files_of_old_versions(
    name: str, version: str, option: str, value: OptionValue, most: int, said: str
) -> None:
    path = collected(name)
    found = read_config(path)
    assert found.version == version
    assert found.options[option] == value
    assert len(found.options) <= most
    assert said in notes_of(found)
    assert all(note.startswith(f"{path}:") for note in found.notes)
    # What is kept, RocksDB's own form can say again.
    assert config(
        export("rocksdb-options", "rocksdb", found.options), "rocksdb-options"
    ).options == (found.options)


def test_a_log_says_what_the_options_file_of_the_same_database_says() -> None:
    log = read_config(GOOD / "rocksdb-log-102.LOG")
    file = read_config(GOOD / "rocksdb-options-102.ini")
    assert log.version == file.version == "10.2.1"
    both = log.options.keys() & file.options.keys()
    assert len(both) >= 18
    assert {n: log.options[n] for n in both} == {n: file.options[n] for n in both}
    # A LOG does not print these; an OPTIONS file says nothing of a cache.
    missing = {"info_log_level", "compression", "prefix_extractor", "memtable_factory.bucket_count"}
    missing |= {f"{TABLE}.{n}" for n in ("filter_policy", "optimize_filters_for_memory")}
    missing |= {f"{TABLE}.decouple_partitioned_filters"}
    missing |= {f"{TABLE}.metadata_cache_options.partition_pinning"}
    assert file.options.keys() - log.options.keys() == missing
    assert log.options.keys() - file.options.keys() == {f"{TABLE}.block_cache"}


def test_a_log_without_a_dump_is_refused_and_its_extract_is_one() -> None:
    path = collected("rocksdb/LOG-0")
    with pytest.raises(Exception, match="has no dump of options"):
        import_file(path)


def test_of_a_log_only_the_default_column_family_is_taken() -> None:
    lines = [
        "2026/01/01-00:00:00.000000 1 RocksDB version: 9.9.9",
        "2026/01/01-00:00:00.000000 1 Options.max_background_jobs: 7",
        "x --------------- Options for column family [default]:",
        "x Options.write_buffer_size: 1",
        "x Options.enable_blob_files: true",
        "x Options.use_direct_reads: 1",
        "x --------------- Options for column family [other]:",
        "x Options.write_buffer_size: 2",
        "x [default] SetOptions() on column family [default], inputs:",
    ]
    found = config("\n".join(lines), "rocksdb-log")
    assert found.options == {
        "max_background_jobs": 7,
        "write_buffer_size": 1,
        "enable_blob_files": True,
        "use_direct_reads": True,
    }
    assert "column family other: left out" in notes_of(found)
    assert "a change of options while the database was open" in notes_of(found)


@pytest.mark.parametrize("printed", [0, 1])
def test_truths_that_came_with_rocksdb_11_are_truths_in_a_log(printed: int) -> None:
    """They came in as the numbers 0 and 1, and the default 0 was kept as a choice."""
    lines = [
        "2026/01/01-00:00:00.000000 1 RocksDB version: 11.1.1",
        f"x Options.memtable_batch_lookup_optimization: {printed}",
        "x           Options.table_factory: BlockBasedTable",
        "x            table_factory options:   flush_block_policy_factory: FlushBlockBySizePolicy",
        f"  separate_key_value_in_data_block: {printed}",
    ]
    names = ("memtable_batch_lookup_optimization", f"{TABLE}.separate_key_value_in_data_block")
    found = config("\n".join(lines), "rocksdb-log").options
    assert found == (dict.fromkeys(names, True) if printed else {})
    assert all(type(value) is bool for value in found.values())


def test_a_log_that_was_cut_or_has_numbers_without_end_is_read() -> None:
    """Each of these lines was an unexpected error of Python's."""
    digits = "9" * 5000
    lines = [
        f"2026/01/01-00:00:00.000000 1 RocksDB version: {digits}.1.1",
        f"x Options.compression[{digits}]: LZ4",
        "x Options.max_background_jobs: 7",
        "x            table_factory options:   flush_block_policy_factory:",
    ]
    found = config("\n".join(lines), "rocksdb-log")
    assert (found.options, found.version) == ({"max_background_jobs": 7}, None)


def test_a_log_says_which_target_its_database_is() -> None:
    """Whoever imported one got a study of 1,000,000 records of 100 bytes, whatever they had."""

    def made(file: int, family: str = "default", records: int = 1000) -> str:
        return (
            f'x EVENT_LOG_v1 {{"time_micros": 1, "cf_name": "{family}", "job": 3, "event": '
            f'"table_file_creation", "file_number": {file}, "file_size": {512 * records}, '
            f'"table_properties": {{"data_size": 1, "raw_key_size": {28 * records}, '
            f'"raw_average_key_size": 28, "raw_value_size": {1000 * records}, '
            f'"raw_average_value_size": 1000, "num_entries": {records}, "reason": kFlush}}}}'
        )

    gone = 'x EVENT_LOG_v1 {"time_micros": 1, "event": "table_file_deletion", "file_number": 8}'
    lines = ["x Options.max_background_jobs: 7", made(7), made(8, records=500), gone]
    lines += [made(9, family="other")]
    said = notes_of(config("\n".join(lines), "rocksdb-log"))
    assert "held: about 1,000 records: -w num=1000 -w key_bytes=20 -w value_bytes=1000" in said
    # What was there when it was opened is in no event.
    lines += [
        "Cumulative WAL: 31K writes, 0 syncs, 31000.00 writes per sync, written: 0.03 GB",
        "** Compaction Stats [default] **",
        "  L0      2/0   24.00 KB   0.5      0.0     0.0",
        " Sum     12/0    1.00 GB   0.0      0.0     0.0",
        "** Compaction Stats [other] **",
        " Sum     12/0    9.00 GB   0.0      0.0     0.0",
    ]
    said = notes_of(config("\n".join(lines), "rocksdb-log"))
    assert f"it held: about {(1 << 30) // 512:,} records: " in said
    assert "by its statistics: 31K writes were logged, with 0 syncs: -w durability=none," in said
    # Those of its opening are older than its tables.
    lines += ["** Compaction Stats [default] **", " Sum      1/0    1.20 KB   0.0      0.0     0.0"]
    assert "held: about 1,000 records: " in notes_of(config("\n".join(lines), "rocksdb-log"))


OBJECTS: dict[str, OptionValue] = {
    "allow_concurrent_memtable_write": False,
    "memtable_factory.id": "prefix_hash",
    "memtable_factory.bucket_count": 4096,
    "prefix_extractor": "fixed:8",
    "compression_per_level": "kNoCompression:kLZ4Compression",
    "compaction_options_universal.size_ratio": 7,
    f"{TABLE}.block_size": 8192,
    f"{TABLE}.filter_policy": "bloomfilter:12",
}


@pytest.mark.engine
def test_what_rocksdb_makes_of_an_exported_file_is_imported_as_it_was(tmp_path: Path) -> None:
    db_bench = shutil.which("db_bench")
    if db_bench is None:
        pytest.skip("db_bench is not installed (package rocksdb-tools): make test-tools")
    path = tmp_path / "OPTIONS"
    cache = {f"{TABLE}.block_cache": 8 << 20, f"{TABLE}.block_cache.num_shard_bits": 2}
    path.write_text(export("rocksdb-options", "rocksdb", {**OBJECTS, **cache}))
    command = [db_bench, "--benchmarks=fillseq", "--num=100", f"--db={tmp_path}/db"]
    command += [f"--options_file={path}", "--prefix_size=8", "--allow_concurrent_memtable_write=0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    written = read_config(sorted((tmp_path / "db").glob("OPTIONS-*"))[-1])
    assert {name: written.options.get(name) for name in OBJECTS} == OBJECTS
    log = read_config(tmp_path / "db" / "LOG")
    assert log.options[f"{TABLE}.block_cache"] == 8 << 20
    assert log.options["compression_per_level"] == OBJECTS["compression_per_level"]
