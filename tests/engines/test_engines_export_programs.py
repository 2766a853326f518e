"""Exported flags and properties are those of the real programs: each runs with them.

A program that is not there is named, and its test skipped. YCSB-cpp and ekvsb are in no registry:
build one and put it on PATH (`docs/programs.md`).
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

import export_parts
import pytest
from engine_parts import rocksdb_db_bench
from export_parts import DEBIAN, check_took, most, run, used_by, version_of
from option_cases import batches, cases_of, rules_of

from lsmtune.engines.catalogue import option_catalogue
from lsmtune.engines.formats import exported
from lsmtune.engines.formats.base import ExportRequest
from lsmtune.engines.option_names import TABLE_OPTION
from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue
from lsmtune.programs.find import find_program
from lsmtune.programs.registry import PROGRAMS

OPERATIONS = 300
# What no OPTIONS file of these programs tells: db_bench makes an object of the size, and RocksDB
# writes only the kind of a filter that was made in C.
UNTOLD = (*export_parts.UNTOLD, "db_write_buffer_size", f"{TABLE_OPTION}.filter_policy")


def program(name: str, engine: str) -> Path:
    """The program that lsmtune would run; the test is skipped without it."""
    try:
        return find_program(PROGRAMS[name], engine).path
    except InputError as error:
        pytest.skip(str(error))


def said_of(
    name: str, options: Mapping[str, OptionValue], version: str
) -> tuple[str, dict[str, OptionValue]]:
    """What `name` writes of `options`, and those of them that must be in the OPTIONS file then."""
    made = exported(name, ExportRequest("rocksdb", options, version))
    unsaid = {each.option for each in made.left_out}
    said = {name: value for name, value in options.items() if name not in unsaid}
    return made.text, {n: value for n, value in said.items() if not n.startswith(UNTOLD)}


# --- db_bench


@pytest.mark.engine
def test_db_bench_sets_every_value_that_can_be_exported(tmp_path: Path) -> None:
    rules, program = rules_of(option_catalogue("rocksdb"), DEBIAN), rocksdb_db_bench()
    cases = [case for info in rules.catalogue.values() for case in cases_of(rules, info)]
    count = 0
    for number, together in enumerate(batches(rules, cases)):
        options = {name: value for case in together for name, value in case.options.items()}
        text, said = said_of("db_bench", options, DEBIAN)
        database = tmp_path / str(number)
        run(program, "--benchmarks=fillseq", "--num=10", f"--db={database}", *shlex.split(text))
        check_took(database, said)
        count += len(said)
    assert count > 300


# --- YCSB-cpp


def ycsb(engine: str, folder: Path, *properties: Path | str) -> Path:
    """The database that YCSB-cpp loaded and worked on with `properties`, files and settings."""
    database = folder / "db"
    settings = [f"{engine}.dbname={database}", f"recordcount={OPERATIONS}"]
    settings += [f"operationcount={OPERATIONS}", "workload=com.yahoo.ycsb.workloads.CoreWorkload"]
    words = [w for p in properties for w in ("-P" if isinstance(p, Path) else "-p", str(p))]
    words += [word for setting in settings for word in ("-p", setting)]
    for phase, done in (("-load", "Load throughput"), ("-run", "Run throughput")):
        # It ends well after a mistake, too.
        assert done in run(program("ycsb-cpp", engine), phase, "-db", engine, *words)
    return database


@pytest.mark.engine
def test_ycsb_sets_the_exported_properties_of_rocksdb(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    version = version_of(ycsb("rocksdb", tmp_path / "plain"))
    text, said = said_of("properties", most(version), version)
    assert len(said) >= 10
    path = tmp_path / "lsmtune.properties"
    path.write_text(text)
    check_took(ycsb("rocksdb", tmp_path, path), said)


@pytest.mark.engine
def test_ycsb_takes_all_options_from_an_exported_file_that_creates_a_database(
    tmp_path: Path,
) -> None:
    (tmp_path / "plain").mkdir()
    version = version_of(ycsb("rocksdb", tmp_path / "plain"))
    options: dict[str, OptionValue] = {"ttl": 60, "num_levels": 5, "create_if_missing": True}
    path = tmp_path / "OPTIONS"
    path.write_text(said_of("rocksdb-options", options, version)[0])
    database = ycsb("rocksdb", tmp_path, f"rocksdb.optionsfile={path}")
    check_took(database, {"ttl": 60, "num_levels": 5})


@pytest.mark.engine
def test_ycsb_takes_the_exported_properties_of_leveldb(tmp_path: Path) -> None:
    made = exported("properties", ExportRequest("leveldb", export_parts.LEVELDB))
    assert made.left_out == ()
    path = tmp_path / "lsmtune.properties"
    path.write_text(made.text)
    assert (ycsb("leveldb", tmp_path, path) / "CURRENT").is_file()


# --- ekvsb


@pytest.mark.engine
def test_ekvsb_sets_the_exported_flags(tmp_path: Path) -> None:
    executable = program("ekvsb", "rocksdb")
    tasks = [{"PUT": {"key": f"{n:010}", "value": {"size": 100}}} for n in range(OPERATIONS)]

    def run_with(folder: str, *flags: str) -> Path:
        command = (executable, "run", "rocksdb", *flags, tmp_path / folder)
        assert len(json.loads(run(*command, said=json.dumps(tasks)))) == OPERATIONS
        return tmp_path / folder

    version = version_of(run_with("plain"))
    options = {**most(version), "level0_file_num_compaction_trigger": -1}
    text, said = said_of("ekvsb", options, version)
    assert len(said) >= 20
    check_took(run_with("tuned", *shlex.split(text)), said)


# --- benchmark.sh, which comes with the source of the crate rocksdb

TEST = "overwrite"
CRATE = Path(__file__).parent / "bindings" / "rust" / "Cargo.toml"


def benchmark_sh() -> Path:
    """RocksDB's own script; the test is skipped without it, or without what it calls."""
    # What other platforms need was not fetched.
    here = f"--filter-platform={platform.machine()}-unknown-linux-gnu"
    command = ("cargo", "metadata", "--offline", "--locked", "--format-version=1", here)
    try:
        text = run(*command, "--manifest-path", CRATE)
    except (FileNotFoundError, AssertionError):
        pytest.skip("no source of the crate rocksdb: make test-tools")
    if not os.access("/usr/bin/time", os.X_OK):
        pytest.skip("no /usr/bin/time (package time): make test-tools")
    found = {each["name"]: Path(each["manifest_path"]) for each in json.loads(text)["packages"]}
    return found["librocksdb-sys"].parent / "rocksdb" / "tools" / "benchmark.sh"


def benchmarked(folder: Path, text: str, script: Path) -> Path:
    """The database that benchmark.sh filled, after a shell sourced `text`."""
    folder.mkdir()
    (folder / "db_bench").symlink_to(rocksdb_db_bench())
    (folder / "benchmark.env").write_text(text)
    # It ends what these measure by their names, also where it did not begin them.
    for name in ("iostat", "vmstat", "killall"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    places = {"DB_DIR": "db", "WAL_DIR": "db", "OUTPUT_DIR": "out"}
    environment = {name: str(folder / place) for name, place in places.items()}
    environment |= {"PATH": f"{folder}:{os.environ['PATH']}", "NUM_KEYS": str(OPERATIONS)}
    environment |= {"NUM_THREADS": "1", "DB_BENCH_NO_SYNC": "1"}
    # Filling has settings of its own.
    tests = [f"bash {script} {name} $BENCHMARK_FLAGS" for name in ("fillseq_disable_wal", TEST)]
    command = " && ".join((". ./benchmark.env", *tests))
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Completed {TEST}" in done.stdout, done.stdout + done.stderr
    return folder / "db"


@pytest.mark.engine
def test_benchmark_sh_sets_what_was_exported(tmp_path: Path) -> None:
    script = benchmark_sh()
    text, said = said_of("benchmark.sh", most(DEBIAN), DEBIAN)
    assert len(said) >= 80
    check_took(benchmarked(tmp_path / "tuned", text, script), said)


@pytest.mark.engine
def test_benchmark_sh_runs_the_default_but_for_what_is_said(tmp_path: Path) -> None:
    script = benchmark_sh()
    made = exported("benchmark.sh", ExportRequest("rocksdb", {}, DEBIAN))
    used = used_by(benchmarked(tmp_path / "default", made.text, script))
    plain = tmp_path / "plain"
    run(rocksdb_db_bench(), "--benchmarks=fillseq", "--num=100", f"--db={plain}")
    default = used_by(plain)
    differing = {name for name in default if used.get(name) != default[name]}
    assert differing == {each.option for each in made.left_out}
