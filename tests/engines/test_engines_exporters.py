"""Exports say the whole Config, in the words of the program that reads them, or refuse."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from engine_parts import rocksdb_db_bench
from hypothesis import given
from hypothesis import strategies as st

from lsmtune.engines.catalogue import option_catalogue
from lsmtune.engines.differences import Difference
from lsmtune.engines.formats import EXPORTERS, export, exported
from lsmtune.engines.formats.base import Exported, ExportRequest
from lsmtune.engines.option_names import TABLE_OPTION, TABLE_SECTION, catalogue, split_structure
from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue

OPTIONS, NEWEST = catalogue()


def parse_options_file(text: str) -> dict[str, dict[str, str]]:
    sections: dict[str, dict[str, str]] = {}
    current: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("["):
            current = sections.setdefault(line.strip("[]").split(' "')[0], {})
        elif "=" in line and not line.startswith("#"):
            name, value = line.strip().split("=", 1)
            current[name] = value
    return sections


def run_db_bench(folder: Path, *flags: str) -> dict[str, dict[str, str]]:
    """Run db_bench with `flags`; the options that it really used."""
    command = [str(rocksdb_db_bench()), "--benchmarks=fillseq", "--num=100", f"--db={folder}/db"]
    done = subprocess.run([*command, *flags], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fillseq" in done.stdout, done.stdout + done.stderr
    written = sorted((folder / "db").glob("OPTIONS-*"))[-1]
    return parse_options_file(written.read_text())


ROCKSDB: dict[str, OptionValue] = {
    "write_buffer_size": 4 << 20,
    "max_background_jobs": 4,
    "compression": "kNoCompression",
    "optimize_filters_for_hits": True,
    "compaction_style": "kCompactionStyleUniversal",
    "compaction_options_universal.size_ratio": 7,
    "max_open_files": 500,
    f"{TABLE_OPTION}.block_size": 8192,
    f"{TABLE_OPTION}.block_cache": 16 << 20,
    f"{TABLE_OPTION}.filter_policy": "bloomfilter:10:false",
}


def check_effect(used: Mapping[str, Mapping[str, str]]) -> None:
    assert used["DBOptions"]["max_background_jobs"] == "4"
    assert used["DBOptions"]["max_open_files"] == "500"
    families = used["CFOptions"]
    assert families["write_buffer_size"] == str(4 << 20)
    assert families["compression"] == "kNoCompression"
    assert families["optimize_filters_for_hits"] == "true"
    assert families["compaction_style"] == "kCompactionStyleUniversal"
    assert split_structure(families["compaction_options_universal"])["size_ratio"] == "7"
    assert used[TABLE_SECTION]["block_size"] == "8192"
    assert used[TABLE_SECTION]["filter_policy"].startswith("bloomfilter:10")


@pytest.mark.engine
def test_db_bench_runs_with_an_exported_options_file(tmp_path: Path) -> None:
    path = tmp_path / "OPTIONS"
    path.write_text(export("rocksdb-options", "rocksdb", ROCKSDB))
    check_effect(run_db_bench(tmp_path, f"--options_file={path}"))


@pytest.mark.engine
def test_db_bench_runs_with_the_options_file_of_the_default(tmp_path: Path) -> None:
    path = tmp_path / "OPTIONS"
    path.write_text(export("rocksdb-options", "rocksdb", {}))
    run_db_bench(tmp_path, f"--options_file={path}")


@pytest.mark.engine
def test_db_bench_runs_with_exported_flags(tmp_path: Path) -> None:
    check_effect(run_db_bench(tmp_path, *shlex.split(export("db_bench", "rocksdb", ROCKSDB))))


def debian_defaults() -> dict[str, OptionValue]:
    """Every option of db_bench's own RocksDB with the default that version wrote."""
    command = [rocksdb_db_bench(), "--version"]
    banner = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"version (\d+\.\d+)", banner.stdout)
    if found is None or not found.group(1).startswith("7.8"):
        pytest.skip(f"the catalogue has no column for this db_bench: {banner.stdout.strip()}")
    return {o.dotted: o.defaults.get("7.8.3") for o in OPTIONS.values() if o.defaults.get("7.8.3")}


@pytest.mark.engine
def test_db_bench_accepts_every_option_of_the_catalogue(tmp_path: Path) -> None:
    defaults = debian_defaults()
    assert len(defaults) > 150
    path = tmp_path / "OPTIONS"
    path.write_text(export("rocksdb-options", "rocksdb", defaults))
    run_db_bench(tmp_path, f"--options_file={path}")


@given(st.sets(st.sampled_from(sorted(OPTIONS)), max_size=20))
def test_every_option_lands_once_and_in_its_own_section(names: set[str]) -> None:
    given_options = {OPTIONS[n].dotted: OPTIONS[n].default or "8388608" for n in names}
    sections = parse_options_file(export("rocksdb-options", "rocksdb", given_options))
    assert sections.pop("Version")["rocksdb_version"] == NEWEST
    found = {name: section for section, options in sections.items() for name in options}
    assert found == {n: OPTIONS[n].section for n in names}


def test_a_structure_whole_or_by_its_fields_is_the_same() -> None:
    whole = {"compaction_options_universal": "{size_ratio=7;min_merge_width=3;}"}
    fields = {
        "compaction_options_universal.size_ratio": 7,
        "compaction_options_universal.min_merge_width": 3,
    }
    table = {TABLE_OPTION: "{block_size=8192;filter_policy=bloomfilter:10:false;}"}
    assert export("rocksdb-options", "rocksdb", whole) == export(
        "rocksdb-options", "rocksdb", fields
    )
    exported = parse_options_file(export("rocksdb-options", "rocksdb", table))
    assert exported[TABLE_SECTION] == {
        "block_size": "8192",
        "filter_policy": "bloomfilter:10:false",
    }


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("write_bufer_size", 1, "did you mean write_buffer_size"),
        ("block_size", 1, f"did you mean {TABLE_OPTION}.block_size"),
        (f"{TABLE_OPTION}.write_buffer_size", 1, "did you mean write_buffer_size"),
        ("compaction_options_universal.size_rato", 1, "did you mean size_ratio"),
        ("write_buffer_size.x", 1, "has no fields"),
        ("compaction_options_universal", "{size_ratio}", "not name=value"),
        ("compaction_options_universal", "{a={b=1;}", "unbalanced braces"),
        ("db_log_dir", "a\nb=c", "line ends"),
        ("db_log_dir", "a # b", "without #"),
    ],
)
def test_what_an_options_file_cannot_say_is_refused(
    name: str, value: OptionValue, message: str
) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        export("rocksdb-options", "rocksdb", {name: value})


@pytest.mark.parametrize(
    "options",
    [
        {f"{TABLE_OPTION}.block_cache.capacity": "8M"},
        {f"{TABLE_OPTION}.block_cache": "{capacity=8M;}"},
        {TABLE_OPTION: "{block_cache={capacity=8M;};}"},
    ],
)
def test_a_block_cache_by_its_capacity_is_exported(options: dict[str, OptionValue]) -> None:
    """RocksDB, the driver and a study took it, and no export: its study had no OPTIONS file."""
    plain = {f"{TABLE_OPTION}.block_cache": "8M"}
    for name in ("rocksdb-options", "properties", "db_bench", "c++", "rust", "benchmark.sh"):
        assert said_of(name, options) == said_of(name, plain)
    assert ExportRequest("rocksdb", options, other=plain).differences() == ()


def test_an_option_given_whole_and_by_a_field_is_refused() -> None:
    options = {"compaction_options_universal": "{size_ratio=7;}"}
    twice = {**options, "compaction_options_universal.size_ratio": 8}
    with pytest.raises(InputError, match="given twice"):
        export("rocksdb-options", "rocksdb", twice)


def properties(text: str) -> dict[str, str]:
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def test_leveldb_properties_use_the_words_of_ycsb() -> None:
    options: dict[str, OptionValue] = {
        "write_buffer_size": 64 << 20,
        "max_file_size": 64 << 20,
        "max_open_files": 1000,
        "compression": "none",
        "cache_size": 128 << 20,
        "filter_bits": 10,
        "block_size": 4096,
        "block_restart_interval": 16,
    }
    # The keys are those of YCSB-cpp's own leveldb.properties.
    assert properties(export("properties", "leveldb", options)) == {
        "leveldb.dbname": "/tmp/ycsb-leveldb",
        "leveldb.format": "single",
        "leveldb.destroy": "false",
        "leveldb.write_buffer_size": "67108864",
        "leveldb.max_file_size": "67108864",
        "leveldb.max_open_files": "1000",
        "leveldb.compression": "no",
        "leveldb.cache_size": "134217728",
        "leveldb.filter_bits": "10",
        "leveldb.block_size": "4096",
        "leveldb.block_restart_interval": "16",
    }


def test_compression_is_always_said_because_ycsb_has_another_default() -> None:
    assert properties(export("properties", "leveldb", {}))["leveldb.compression"] == "snappy"
    assert properties(export("properties", "rocksdb", {}))["rocksdb.compression"] == "snappy"


def test_rocksdb_properties_use_the_words_of_ycsb() -> None:
    options: dict[str, OptionValue] = {
        "compression": "kZSTD",
        "use_direct_io_for_flush_and_compaction": True,
        f"{TABLE_OPTION}.block_cache": "8M",
        f"{TABLE_OPTION}.filter_policy": "bloomfilter:10:false",
        "compaction_pri": "kRoundRobin",
    }
    found = properties(export("properties", "rocksdb", options))
    assert found["rocksdb.compression"] == "zstd"
    assert found["rocksdb.use_direct_io_for_flush_compaction"] == "true"
    assert found["rocksdb.cache_size"] == "8388608"
    assert found["rocksdb.bloom_bits"] == "10"
    assert found["rocksdb.compaction_pri"] == "4"


@pytest.mark.parametrize(
    ("engine", "options", "message"),
    [
        ("leveldb", {"paranoid_checks": True}, "no such property: paranoid_checks"),
        ("leveldb", {"cache_size": 0}, "1 to"),
        ("leveldb", {"compression": "zstd"}, "allowed: none, no, snappy"),
        ("leveldb", {"bloom_bits": 1}, "no such LevelDB option"),
        ("rocksdb", {"num_levels": 5}, "YCSB-cpp has no such property: num_levels"),
        ("rocksdb", {"write_buffer_size": 1 << 31}, "1 to 2147483647"),
        ("rocksdb", {f"{TABLE_OPTION}.filter_policy": "ribbonfilter:10:-1"}, "bloomfilter:BITS"),
        # A digit that is no number was an unexpected error, of `int`.
        ("rocksdb", {f"{TABLE_OPTION}.filter_policy": "bloomfilter:²:false"}, "bloomfilter:BITS"),
    ],
)
def test_what_properties_cannot_say_is_refused(
    engine: str, options: dict[str, OptionValue], message: str
) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        export("properties", engine, options)


def test_leveldb_flags_are_those_of_its_db_bench() -> None:
    options: dict[str, OptionValue] = {
        "filter_bits": 10,
        "compression": "none",
        "max_file_size": 4 << 20,
        "max_open_files": 100,
    }
    expected = "--bloom_bits=10 --compression=0 --max_file_size=4194304 --open_files=100\n"
    assert export("db_bench", "leveldb", options) == expected
    with pytest.raises(InputError, match="no such flag: block_restart_interval, paranoid_checks"):
        export("db_bench", "leveldb", {"block_restart_interval": 1, "paranoid_checks": True})
    with pytest.raises(InputError, match="0 to 2147483647"):
        export("db_bench", "leveldb", {"cache_size": 1 << 31})


def test_flags_with_unordered_writes_turn_off_what_db_bench_has_on() -> None:
    """db_bench pipelines writes by its own default, and RocksDB refuses the two together."""
    flags = export("db_bench", "rocksdb", {"unordered_write": True})
    assert flags == "--unordered_write=true --enable_pipelined_write=false\n"
    assert "pipelined" not in export("db_bench", "rocksdb", {"unordered_write": False})


def test_each_reason_for_which_options_cannot_be_said_stands_once() -> None:
    with pytest.raises(InputError, match=r"benchmark.sh sets 8: num_levels; .*no such flag: ttl"):
        export("benchmark.sh", "rocksdb", {"num_levels": 5, "ttl": 60})


def said_of(name: str, options: Mapping[str, OptionValue], version: str = NEWEST) -> Exported:
    return exported(name, ExportRequest("rocksdb", options, version, "a study.yaml#3"))


def test_the_documents_name_every_format_and_its_engines() -> None:
    page = (Path(__file__).parents[2] / "docs" / "exporting.md").read_text()
    table = page.partition("| format | engines | what it is |")[2].partition("\n\n")[0]
    rows = [[cell.strip(" `") for cell in line.split("|")[1:3]] for line in table.splitlines()[2:]]
    shown = {"rocksdb": "RocksDB", "leveldb": "LevelDB"}
    known = {
        name: {shown[engine] for engine in format_.engines} or {"all"}
        for name, format_ in EXPORTERS.items()
    }
    assert {name: set(engines.split(", ")) for name, engines in rows} == known


# What a format cannot say stands in its comments; flags and JSON have none.
@pytest.mark.parametrize(
    ("name", "options", "lines"),
    [
        ("properties", {"ttl": 60}, ["# left out: ttl=60: YCSB-cpp has no such property"]),
        (
            "python",
            {f"{TABLE_OPTION}.no_block_cache": True},
            [f"# left out: {TABLE_OPTION}.no_block_cache=true: the binding puts a block cache"],
        ),
        (  # to RocksDB the same; it was written into the file, which the binding's cache outweighs
            "python",
            {f"{TABLE_OPTION}.no_block_cache": 1},
            [f"# left out: {TABLE_OPTION}.no_block_cache=1: the binding puts a block cache"],
        ),
        (
            "rust",
            {f"{TABLE_OPTION}.block_cache": 1, f"{TABLE_OPTION}.block_cache.num_shard_bits": 2},
            [f"// left out: {TABLE_OPTION}.block_cache.num_shard_bits=2: the binding puts"],
        ),
        (
            "benchmark.sh",
            {"num_levels": 5, "compaction_style": "kCompactionStyleFIFO"},
            [
                "# left out: num_levels=5: benchmark.sh sets 8",
                "# left out: compaction_style=kCompactionStyleFIFO: benchmark.sh has no such style",
            ],
        ),
        ("set-options", {"num_levels": 5}, ["// left out: num_levels=5: RocksDB takes it when"]),
        ("db_bench", {"ttl": 60}, []),
        ("ekvsb", {"ttl": 60}, []),
    ],
)
def test_what_is_left_out_is_said_beside_the_text(
    name: str, options: dict[str, OptionValue], lines: list[str]
) -> None:
    made = said_of(name, options)
    head = made.text.splitlines()[: 1 + len(made.left_out)]
    assert {each.option for each in made.left_out} >= {
        line.split("=")[0].split()[-1] for line in lines
    }
    assert all(any(line.startswith(start) for line in head) for start in lines), head
    assert made.left_out
    if not lines:
        assert "ttl" not in made.text
    with pytest.raises(InputError, match="|".join(each.option for each in made.left_out)):
        export(name, "rocksdb", options)


def test_a_name_cannot_end_a_comment() -> None:
    for label in ("a\nb = 1;", "ends in \\", "\\u000a b"):
        made = exported("java", ExportRequest("rocksdb", {}, None, label))
        first, second = made.text.splitlines()[:2]
        assert first.startswith("// Written by lsmtune")
        assert "\\" not in first
        assert second == "import java.util.Properties;"


def test_text_with_quotes_stays_one_value() -> None:
    options: dict[str, OptionValue] = {"db_host_id": 'a""" "b'}
    assert said_of("java", options).text.count(r'"a\"\"\" \"b"') == 1
    module: dict[str, str] = {}
    text = said_of("python", options).text
    exec(text[text.index("OPTIONS =") : text.index("def ")], module)
    assert '  db_host_id=a""" "b\n' in module["OPTIONS"]


@given(st.sets(st.sampled_from(sorted(option_catalogue("rocksdb"))), max_size=12))
def test_set_options_says_what_it_changes_and_how_to_go_back(names: set[str]) -> None:
    infos = option_catalogue("rocksdb")
    options = {name: infos[name].choices[-1] if infos[name].choices else 7 for name in names}
    made = said_of("set-options", options)
    forward, _, back = made.text.partition("// The way back.")
    left_out = {each.option for each in made.left_out}
    for name in names - left_out:
        assert infos[name].mutable or options[name] == infos[name].default
    for name in left_out - {"bytes_per_sync"}:
        known = infos[name].exists_in(NEWEST) and infos[name].default is not None
        assert not infos[name].mutable_in(NEWEST) or not known
    said = re.compile(r'\{"([a-z0-9_]+)", "')
    assert said.findall(forward) == said.findall(back)


def test_what_an_open_database_takes_depends_on_its_version() -> None:
    option = f"{TABLE_OPTION}.format_version"
    old = said_of("set-options", {option: 4}, "7.8.3")
    assert [each.option for each in old.left_out] == [option]
    assert "since 9.8, and this is 7.8.3" in old.left_out[0].why
    new = said_of("set-options", {option: 4}, "10.2.1")
    assert new.left_out == ()
    assert '{"block_based_table_factory", "{format_version=4;}"}' in new.text


def test_set_options_go_back_to_another_configuration() -> None:
    request = ExportRequest(
        "rocksdb", {"write_buffer_size": 1 << 20}, NEWEST, other={"write_buffer_size": 2 << 20}
    )
    forward, _, back = exported("set-options", request).text.partition("// The way back.")
    assert '{"write_buffer_size", "1048576"}' in forward
    assert '{"write_buffer_size", "2097152"}' in back


def shell(text: str) -> dict[str, str]:
    """The variables that a shell has after it read `text`."""
    done = subprocess.run(
        ["bash", "-euc", f"set -a; {text} set"], capture_output=True, text=True, env={}, check=True
    )
    lines = (line.partition("=") for line in done.stdout.splitlines())
    return {name: value for name, _, value in lines}


def test_benchmark_sh_is_told_of_all_that_it_would_set_otherwise() -> None:
    said = shell(said_of("benchmark.sh", ROCKSDB).text)
    assert (said["COMPACTION_STYLE"], said["UNIVERSAL_SIZE_RATIO"]) == ("universal", "7")
    assert (said["WRITE_BUFFER_SIZE_MB"], said["CACHE_SIZE"]) == ("4", str(16 << 20))
    assert said["COMPRESSION_TYPE"] == "none"
    # benchmark.sh has 1 GiB, and 8 of them.
    assert said["MAX_BYTES_FOR_LEVEL_BASE_MB"] == "256"
    assert "--max_write_buffer_number=2" in said["BENCHMARK_FLAGS"]
    odd = shell(said_of("benchmark.sh", {"write_buffer_size": 1_000_000}).text)
    assert "WRITE_BUFFER_SIZE_MB" not in odd
    assert "--write_buffer_size=1000000" in odd["BENCHMARK_FLAGS"]


@pytest.mark.parametrize("on", [True, 1, "1", "true"])
def test_benchmark_sh_is_told_a_truth_however_it_is_spelled(on: OptionValue) -> None:
    """`allow_trivial_move=1` was left out, and nothing said so."""
    style: OptionValue = "kCompactionStyleUniversal"
    moves = {"compaction_options_universal.allow_trivial_move": on, "compaction_style": style}
    assert shell(said_of("benchmark.sh", moves).text)["UNIVERSAL_ALLOW_TRIVIAL_MOVE"] == "1"
    # What benchmark.sh sets itself in leveled compaction, which is then no loss.
    dynamic = said_of("benchmark.sh", {"level_compaction_dynamic_level_bytes": on})
    assert "level_compaction_dynamic_level_bytes" not in str(dynamic.left_out)


@pytest.mark.engine
def test_db_bench_takes_the_flags_for_benchmark_sh(tmp_path: Path) -> None:
    flags = shell(said_of("benchmark.sh", ROCKSDB).text)["BENCHMARK_FLAGS"].strip("'")
    used = run_db_bench(tmp_path, *flags.split())
    assert used["DBOptions"]["max_open_files"] == "500"
    assert used["CFOptions"]["max_write_buffer_number"] == "2"


def test_only_what_differs_is_a_difference() -> None:
    block = f"{TABLE_OPTION}.block_size"
    here: dict[str, OptionValue] = {"write_buffer_size": 64 << 20, block: 8192, "ttl": 60}
    there: dict[str, OptionValue] = {TABLE_OPTION: "{block_size=8192;}", "num_levels": 5, "ttl": 9}
    request = ExportRequest("rocksdb", here, NEWEST, other=there)
    found = {each.option: each for each in request.differences()}
    assert found.keys() == {"num_levels", "ttl"}  # 64 MiB is the default
    assert found["ttl"] == Difference("ttl", 60, True, 9, True, "s")
    assert found["num_levels"] == Difference("num_levels", 7, False, 5, True)


@given(st.dictionaries(st.sampled_from(sorted(option_catalogue("leveldb"))), st.integers(1, 2**30)))
def test_no_option_is_ever_left_out_in_silence(options: dict[str, OptionValue]) -> None:
    options = {**options, **({"compression": "snappy"} if "compression" in options else {})}
    for name in ("properties", "db_bench"):
        try:
            text = export(name, "leveldb", options)
        except InputError:
            continue
        values = {str(v) for n, v in options.items() if n != "compression"}
        assert values <= set(re.findall(r"=(\S+)", text))


def test_unknown_formats_and_engines_are_refused() -> None:
    with pytest.raises(InputError, match="did you mean properties"):
        export("propertys", "leveldb", {})
    with pytest.raises(InputError, match="cannot be written for leveldb"):
        export("rocksdb-options", "leveldb", {})
    assert [name for name, each in EXPORTERS.items() if "leveldb" in each.engines] == [
        *("properties", "db_bench", "c++", "python")
    ]
