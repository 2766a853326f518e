"""Sweep files: what they may say, one line for what is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sweep_parts import cells_of

from lsmtune.errors import InputError
from lsmtune.experiment.sweep import AxisKind, built_in, load_sweep, parse_sweep
from lsmtune.model.request import DatabaseSpec, Limits

pytestmark = pytest.mark.usefixtures("in_memory")

PATH = Path("sweep.yaml")
WHOLE = """\
version: 1
name: buffers
engine: {name: leveldb, library: lib/libleveldb.so}
workloads:
  - fillrandom
  - {name: readrandom, label: few reads, reads: 10}
workload: {num: 1000, value_bytes: 1KiB}
options: {compression: none}
axes:
  workload: {key_bytes: [16, 32]}
  options:
    write_buffer_size: [1MiB, 4MiB]
    reuse_logs: [false, true]
repeats: 5
seed: 7
limits: {deadline: 1m, memory: 1GiB, disk: 2GiB}
databases: {reuse: false}
"""
LEAST = """\
version: 1
engine: {name: memory}
workloads: [fillseq]
axes: {workload: {value_bytes: [100, 200]}}
"""


def test_a_file_says_all_that_a_sweep_has(tmp_path: Path) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text(WHOLE)
    sweep = load_sweep(path)
    assert (sweep.name, sweep.engine.name, sweep.repeats, sweep.seed) == (
        "buffers",
        "leveldb",
        5,
        7,
    )
    assert sweep.library == tmp_path / "lib" / "libleveldb.so"
    assert [(w.name, w.title, dict(w.parameters)) for w in sweep.workloads] == [
        ("fillrandom", "fillrandom", {}),
        ("readrandom", "few reads", {"reads": 10}),
    ]
    assert sweep.options == {"compression": "none"}
    assert sweep.limits == Limits(60.0, 1 << 30, 2 << 30)
    assert sweep.databases == DatabaseSpec(reuse=False)
    kinds = [(axis.kind, axis.name, axis.values, axis.texts) for axis in sweep.axes]
    assert kinds == [
        (AxisKind.WORKLOAD, "key_bytes", (16, 32), ("16", "32")),
        (AxisKind.OPTION, "write_buffer_size", (1 << 20, 4 << 20), ("1MiB", "4MiB")),
        (AxisKind.OPTION, "reuse_logs", (False, True), ("false", "true")),
    ]
    assert len(cells_of(sweep)) == 16


def test_what_a_file_leaves_out_has_a_default() -> None:
    sweep = parse_sweep(LEAST, PATH)
    assert (sweep.name, sweep.repeats, sweep.seed) == ("sweep", 3, 1)
    assert sweep.databases == DatabaseSpec(reuse=True, size_bytes=20 << 30)


@pytest.mark.parametrize(
    ("was", "becomes", "line"),
    [
        ("version: 1", "version: 2", "sweep.yaml:1: version: found 2; allowed: 1"),
        ("version: 1\n", "", "sweep.yaml: version: missing; allowed: 1, the version of this"),
        ("engine: {name: memory}\n", "", "sweep.yaml: engine: missing; allowed: a mapping with"),
        ("memory", "rokcsdb", "sweep.yaml:2: engine.name: found 'rokcsdb'; allowed: "),
        (LEAST, LEAST + "repeets: 3\n", "sweep.yaml:5: repeets: unknown field; allowed: version, "),
        ("[fillseq]", "[]", "sweep.yaml:3: workloads: found a list"),
        ("[fillseq]", "[3]", "sweep.yaml:3: workloads[0]: found 3; allowed: the name of a work"),
        ("[fillseq]", "[{num: 3}]", "sweep.yaml:3: workloads[0].name: found nothing"),
        ("{value_bytes: [100, 200]}", "{value_bytes: 100}", "sweep.yaml:4: axes.workload.value_"),
        ("[100, 200]", "[100, [200]]", "sweep.yaml:4: axes.workload.value_bytes[1]: found a list"),
        ("{workload:", "{wrkload:", "sweep.yaml:4: axes.wrkload: unknown field; allowed: workload"),
        ("[100, 200]}", "[100, 200], a: *x}", "anchors and aliases are not allowed in a sweep fi"),
        (LEAST, f"{LEAST}seed: {2**53 - 1}\n", "sweep.yaml:5: seed: found 9007199254740991; "),
        (LEAST, LEAST + "repeats: 0\n", "sweep.yaml:5: repeats: found 0; allowed: at least 1"),
        # A round has the next seed, so that there has to be one.
        (LEAST, f"{LEAST}seed: {2**53 - 1}\n", "sweep.yaml:5: seed: found 9007199254740991; all"),
        (LEAST, "", "sweep.yaml: is empty"),
        (LEAST, "- a", "sweep.yaml:1: is not a sweep"),
    ],
)
def test_a_mistake_is_one_line_with_file_and_field(was: str, becomes: str, line: str) -> None:
    assert was in LEAST
    with pytest.raises(InputError) as error:
        parse_sweep(LEAST.replace(was, becomes), PATH)
    assert line in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["version: 2\n", "cells: 3\nversion: 2\n"])
def test_a_file_of_another_version_is_told_so_and_not_what_it_has_or_lacks(text: str) -> None:
    """`engine: missing` and `cells: unknown field` were said of files of a later lsmtune."""
    with pytest.raises(InputError, match=r"version: found 2; allowed: 1$"):
        parse_sweep(text, PATH)


def test_what_only_the_grid_sees_has_its_line_too() -> None:
    with pytest.raises(InputError) as error:
        cells_of(parse_sweep(LEAST.replace("100, 200", "100, 0"), PATH))
    assert str(error.value).startswith("sweep.yaml:4: axes.workload.value_bytes: found 0; allowed")


def test_an_absent_file_is_called_what_it_should_have_been(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.yaml: no such file; allowed: a sweep file$"):
        load_sweep(tmp_path / "none.yaml")


def test_rf5_is_the_study_of_record_sizes() -> None:
    cells = cells_of(built_in("rf5"))
    assert len(cells) == 36
    sizes = {(c.workload.key_bytes, c.workload.value_bytes) for c in cells}
    assert sizes == {(key, value) for key in (16, 32, 64) for value in (100, 200, 400)}
    workloads = {"fillseq", "fillrandom", "readseq", "readrandom"}
    assert {cell.workload_title for cell in cells} == workloads


def test_the_example_is_what_is_built_in() -> None:
    root = Path(__file__).parents[2]
    ours = root / "python" / "lsmtune" / "experiment" / "sweeps" / "rf5.yaml"
    example = root / "examples" / "rf5-key-value-size" / "sweep.yaml"
    assert example.read_text() == ours.read_text()


def test_the_file_in_the_documents_is_right() -> None:
    page = (Path(__file__).parents[2] / "docs" / "sweeps.md").read_text()
    (block,) = re.findall(r"^```text\n(version: 1\n.*?)^```$", page, re.M | re.S)
    sweep = parse_sweep(block, PATH)
    assert len(cells_of(sweep)) == 12
    assert (sweep.repeats, sweep.seed, sweep.databases) == (3, 1, DatabaseSpec())
