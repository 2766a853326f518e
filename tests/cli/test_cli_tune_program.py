"""A whole study by RocksDB's db_bench as it is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lsmtune.errors import InputError
from lsmtune.programs.find import find_program
from lsmtune.programs.registry import PROGRAMS

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
"""


@pytest.mark.engine
def test_a_study_searches_and_proves_with_the_program(lsmtune: Any, home: Path) -> None:
    try:
        found = find_program(PROGRAMS["rocksdb-db_bench"], "rocksdb")
    except InputError as error:
        pytest.skip(str(error))
    (home / "study.yaml").write_text(STUDY.format(path=found.path))
    said = lsmtune("tune", "study.yaml", "--json")
    assert said.status == 0, said.err
    document = said.json()
    assert document["trials"] == 4, said.err
    # Some thirty memtables of 64 KiB against one or a few: no machine hides that.
    assert document["verdict"]["outcome"] == "better", document["verdict"]
    assert document["verdict"]["method"] == "whole"
    report = lsmtune("report", "study.yaml")
    assert report.status == 0, report.err
