"""A whole study by RocksDB's db_bench as it is installed."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from lsmtune.cli.tune import tune_runner
from lsmtune.errors import InputError
from lsmtune.programs.find import find_program
from lsmtune.programs.registry import PROGRAMS
from lsmtune.study.build import load_spec
from patience import in_time

STUDY = """\
version: 1
name: trusted
engine: {{name: rocksdb}}
runner: {{program: rocksdb-db_bench, path: {path}}}
workload: {{name: fillrandom, num: 15000}}
objective: {{metric: throughput_ops_s}}
baseline: {{write_buffer_size: 65536}}
space:
  write_buffer_size: {{type: int, low: 64KiB, high: 64MiB, log: true}}
constraints: ['db_bytes <= 1GiB']
budget: {{trials: 4}}
proof: {{pairs: 20}}
guards: []
"""


@pytest.mark.engine
def test_a_study_searches_and_proves_with_the_program(lsmtune: Any, home: Path) -> None:
    try:
        found = find_program(PROGRAMS["rocksdb-db_bench"], "rocksdb")
    except InputError as error:
        pytest.skip(str(error))
    (home / "study.yaml").write_text(STUDY.format(path=found.path))
    folders = (f"s-{number}" for number in count())

    def is_better() -> bool:
        """Some thirty memtables of 64 KiB against one or a few: a busy machine hides that rarely.

        It does where it takes a second from some of the runs, which take a tenth.
        """
        folder = next(folders)
        said = lsmtune("tune", "study.yaml", "--dir", folder, "--json")
        assert said.status == 0, said.err
        document = said.json()
        assert document["trials"] == 4, said.err
        assert document["verdict"]["method"] == "whole"
        report = lsmtune("report", folder)
        assert report.status == 0, report.err
        return bool(document["verdict"]["outcome"] == "better")

    in_time(is_better)


def test_a_rung_that_the_program_cannot_perform_is_refused_before_any_run(tmp_path: Path) -> None:
    """The study ended in its middle, at the first trial of that size, and at every resume."""
    workload = "{{name: zippydb, num: 100000, operations: 100000, threads: 4}}"
    study = STUDY.replace("{{name: fillrandom, num: 15000}}", workload).format(path="bin/db_bench")
    path = tmp_path / "study.yaml"
    path.write_text(f"{study}pruner: {{name: hyperband, rungs: {{num: [50001, 100000]}}}}\n")
    with pytest.raises(InputError) as error:
        tune_runner(load_spec(path))
    said = str(error.value)
    refused = "pruner.rungs.num[0]: rocksdb-db_bench cannot perform zippydb of 50001 keys: "
    assert f"study.yaml:14: {refused}run: operations" in said
    assert "found 50001; allowed: a multiple of its 4 threads" in said


@pytest.mark.engine
def test_a_flag_that_lsmtune_sets_itself_is_refused_before_any_run(tmp_path: Path) -> None:
    """The last of two `--threads` counts: every run had eight, and the study said one."""
    try:
        found = find_program(PROGRAMS["rocksdb-db_bench"], "rocksdb")
    except InputError as error:
        pytest.skip(str(error))
    path = tmp_path / "study.yaml"
    stated = f"path: {found.path}, arguments: ['--threads=8']"
    path.write_text(STUDY.replace("path: {path}", stated).format())
    with pytest.raises(InputError, match=r"runner\.arguments.*--threads=8"):
        tune_runner(load_spec(path))
