"""The grid of a sweep: every combination once, named, and refused where it is none."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from fake_runner import FakeRunner, Refusing
from hypothesis import given
from hypothesis import strategies as st
from sweep_parts import axis, cells_of, sweep_of

from lsmtune.errors import InputError
from lsmtune.experiment.sweep import Axis, AxisKind, SweepWorkload
from lsmtune.experiment.sweep_grid import first_refused
from lsmtune.model.request import LIMITS_DEFAULT

pytestmark = pytest.mark.usefixtures("in_memory")

OPTION = AxisKind.OPTION


def test_every_combination_under_every_workload_the_last_axis_fastest() -> None:
    both = (SweepWorkload("fillseq"), SweepWorkload("readrandom", {"reads": 10}, "few reads"))
    cells = cells_of(sweep_of(workloads=both))
    assert len(cells) == 18
    assert [cell.values for cell in cells[:4]] == [
        ("16", "100"),
        ("16", "200"),
        ("16", "400"),
        ("32", "100"),
    ]
    assert cells[5].point == (1, 2)
    assert cells[0].name == "fillseq, key_bytes=16, value_bytes=100"
    assert cells[9].name == "few reads, key_bytes=16, value_bytes=100"
    for cell in cells:
        workload = cell.workload
        assert (str(workload.key_bytes), str(workload.value_bytes)) == cell.values
        assert workload.num == 1000
    assert cells[9].workload.phases[-1].operations_per_thread == 10


def test_options_are_an_axis_too_beside_those_that_hold_everywhere() -> None:
    sizes = Axis(OPTION, "write_buffer_size", (1 << 20, 4 << 20), ("1MiB", "4MiB"))
    cells = cells_of(sweep_of(axes=(sizes,), options={"compression": "snappy"}))
    assert [cell.name for cell in cells] == [
        "fillseq, write_buffer_size=1MiB",
        "fillseq, write_buffer_size=4MiB",
    ]
    assert dict(cells[1].config.options) == {
        "compression": "snappy",
        "write_buffer_size": 4 << 20,
    }
    assert cells[1].config.label == "compression=snappy,write_buffer_size=4MiB"


@given(
    st.lists(st.integers(8, 200), min_size=1, max_size=4, unique=True),
    st.lists(st.integers(1, 500), min_size=1, max_size=4, unique=True),
)
def test_names_and_points_are_of_one_cell_each(keys: list[int], values: list[int]) -> None:
    axes = (axis("key_bytes", *keys), axis("value_bytes", *values))
    cells = cells_of(sweep_of(axes=axes))
    assert len({cell.name for cell in cells}) == len(keys) * len(values) == len(cells)
    assert len({cell.point for cell in cells}) == len(cells)


def test_workloads_of_other_families_and_of_files_are_cells_too(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("recordcount=500\noperationcount=100\nleveldb.cache_size=5\n")
    both = (SweepWorkload("ycsb-a", {"recordcount": 300}), SweepWorkload("mine"))
    axes = (axis("readproportion", 0.5, 0.9),)
    sweep = sweep_of(workloads=both, axes=axes, parameters={}, folder=tmp_path)
    cells = cells_of(sweep)
    assert [cell.workload.num for cell in cells] == [300, 300, 500, 500]
    assert cells[2].name == "mine, readproportion=0.5"
    told, note = cells[2].notes
    assert "leveldb.cache_size: an engine's property has no effect in a sweep" in note
    assert "proportions add up to 0.55" in told


def test_an_axis_without_an_effect_is_told_why() -> None:
    for name, values, why in (
        ("maxscanlength", (10, 100), "has no effect: scanproportion is 0"),
        ("table", ("a", "b"), "has no effect: an engine has no tables"),
    ):
        sweep = sweep_of(
            workloads=(SweepWorkload("ycsb-a"),), axes=(axis(name, *values),), parameters={}
        )
        with pytest.raises(InputError, match=f"axes.workload.{name}: {why}; found"):
            cells_of(sweep)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"axes": ()}, "sweep.yaml: axes: none given"),
        (
            {"workloads": (SweepWorkload("fillseqq"),)},
            "sweep.yaml: workloads[0]: found 'fillseqq'",
        ),
        (
            {"workloads": (SweepWorkload("fillseq"),) * 2},
            "sweep.yaml: workloads[1]: given twice; found 'fillseq'",
        ),
        ({"axes": (axis("key_bytes", 4),)}, "sweep.yaml: axes.workload.key_bytes: found 4; al"),
        ({"axes": (axis("keybytes", 16),)}, "sweep.yaml: axes.workload.keybytes: unknown worklo"),
        ({"axes": (axis("key_bytes"),)}, "sweep.yaml: axes.workload.key_bytes: has no values"),
        ({"axes": (axis("num", 5),)}, "axes.workload.num: is an axis and has a fixed value too"),
        (
            {"axes": (axis("key_bytes", 16, 16),)},
            "sweep.yaml: axes.workload.key_bytes: given twice; found '16'",
        ),
        (
            {"axes": (axis("key_bytes", 16), axis("key_bytes", 32))},
            "sweep.yaml: axes.workload.key_bytes: given twice",
        ),
        (
            {"axes": (axis("value_bytes", 10, "10B"),)},
            "sweep.yaml: axes.workload.value_bytes: the same value twice; found '10 and 10B'",
        ),
        ({"axes": (axis("a b", 1, kind=OPTION),)}, "axes.options.a b: not an option's name"),
        ({"parameters": {"num": 0}}, "sweep.yaml: workload.num: found 0; allowed: a whole number"),
        ({"parameters": {"reads": 9}}, "sweep.yaml: workload.reads: has no effect in fillseq"),
        (
            {"workloads": (SweepWorkload("fillseq", {"reads": 9}),)},
            "sweep.yaml: workloads[0].reads: has no effect in fillseq",
        ),
        (
            {"axes": (axis("page_cache", "warm", "direct"),)},
            "axes.workload.page_cache: found 'direct'; allowed: warm, cold; leveldb has no direct",
        ),
        ({"axes": (axis("num", *range(1, 10_002)),), "parameters": {}}, "axes: 10,001 cells; al"),
    ],
)
def test_what_is_no_grid(changes: dict[str, Any], line: str) -> None:
    with pytest.raises(InputError) as error:
        cells_of(sweep_of(**changes))
    assert line in str(error.value)
    assert "\n" not in str(error.value)


# --- options are tried once each before anything is measured


pytestmark = pytest.mark.usefixtures("in_memory")

SWEEP = sweep_of(
    workloads=(SweepWorkload("fillseq"), SweepWorkload("readrandom")),
    axes=(
        axis("key_bytes", 16, 32),
        axis("write_buffer_size", 1 << 20, 2 << 20, kind=AxisKind.OPTION),
    ),
)
CELLS = cells_of(SWEEP)


def test_each_assignment_is_tried_once_with_one_put(tmp_path: Path) -> None:
    runner = FakeRunner()
    found = first_refused(CELLS, (), runner, LIMITS_DEFAULT, tmp_path, threading.Event())
    assert found is None
    assert [dict(request.config.options) for request in runner.requests] == [
        {"write_buffer_size": 1 << 20},
        {"write_buffer_size": 2 << 20},
    ]
    assert {
        phase.operations_per_thread for r in runner.requests for phase in r.workload.phases
    } == {1}
    assert list(tmp_path.iterdir()) == []


def test_the_first_that_is_refused_is_told(tmp_path: Path) -> None:
    runner = Refusing("write_buffer_size")
    found = first_refused(CELLS, (), runner, LIMITS_DEFAULT, tmp_path, threading.Event())
    assert found is not None
    assert found[0] is CELLS[0]
    assert len(runner.requests) == 1


def test_what_has_run_already_is_not_tried_and_what_has_no_options_once(tmp_path: Path) -> None:
    runner = Refusing("write_buffer_size")
    known = {CELLS[0].name, CELLS[1].name}
    assert not first_refused(CELLS, known, runner, LIMITS_DEFAULT, tmp_path, threading.Event())
    assert runner.requests == []
    # Of another version, a driver refuses whatever it is asked.
    plain = cells_of(sweep_of())
    assert not first_refused(plain, (), runner, LIMITS_DEFAULT, tmp_path, threading.Event())
    assert len(runner.requests) == 1
