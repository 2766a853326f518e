"""A study whose runs a program that people trust performs: `runner: {program: ...}`."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsmtune.errors import InputError
from lsmtune.records.program import ProgramSpec
from lsmtune.spec import load_spec

STUDY = """\
version: 1
name: trusted
engine: {name: rocksdb}
runner: {program: rocksdb-db_bench, path: bin/db_bench, arguments: [--statistics=true]}
workload: {name: fillrandom, num: 1000}
objective: {metric: throughput_ops_s}
space:
  write_buffer_size: {type: int, low: 64KiB, high: 16MiB}
budget: {trials: 2}
"""


def write(folder: Path, old: str = "", new: str = "") -> Path:
    assert old in STUDY
    path = folder / "study.yaml"
    path.write_text(STUDY.replace(old, new) if old else STUDY)
    return path


def test_the_program_is_found_from_where_the_study_lies(tmp_path: Path) -> None:
    spec = load_spec(write(tmp_path))
    assert spec.program == ProgramSpec(
        "rocksdb-db_bench", tmp_path / "bin" / "db_bench", ("--statistics=true",)
    )
    assert spec.command is None
    assert spec.engine_name == "rocksdb"
    assert "rocksdb-db_bench" in str(spec.comparable_parts()["runner"])


def test_without_a_path_it_is_looked_for(tmp_path: Path) -> None:
    program = load_spec(write(tmp_path, "path: bin/db_bench, ", "")).program
    assert program is not None
    assert program.path is None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("rocksdb-db_bench", "rocksdb-dbbench", "study.yaml:4: runner.program: found"),
        ("name: rocksdb}", "name: leveldb}", "engine.name: found 'leveldb'; allowed: rocksdb, of"),
        ("name: rocksdb}", "name: rocksdb, library: a.so}", "engine.library: has no effect with"),
        ("fillrandom", "readhot", "workload: rocksdb-db_bench cannot perform readhot: "),
        (
            "metric: throughput_ops_s",
            "metric: sustained_throughput_ops_s",
            "study.yaml:6: objective.metric: rocksdb-db_bench cannot tell it; found",
        ),
        ("objective: {metric: throughput_ops_s}\n", "", "objective.metric: rocksdb-db_bench cann"),
        ("path: bin/db_bench", "command: [x]", "runner.command: stands beside program"),
        ("path: bin/db_bench", "results: {json_lines: stdout}", "runner.results: stands beside"),
        ("program: rocksdb-db_bench", "program: ", "runner"),
    ],
)
def test_what_cannot_be_is_one_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        load_spec(write(tmp_path, old, new))
    assert said in str(error.value)
    assert "\n" not in str(error.value)
