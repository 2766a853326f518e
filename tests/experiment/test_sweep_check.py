"""Options are tried once each before anything is measured."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from fake_runner import FakeRunner, Refusing
from sweep_parts import axis, cells_of, sweep_of

from lsmtune.experiment.sweep import AxisKind, SweepWorkload
from lsmtune.experiment.sweep_grid import first_refused
from lsmtune.model.request import LIMITS_DEFAULT

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
    known = {CELLS[0].cell.name, CELLS[1].cell.name}
    assert not first_refused(CELLS, known, runner, LIMITS_DEFAULT, tmp_path, threading.Event())
    assert runner.requests == []
    # Of another version, a driver refuses whatever it is asked.
    plain = cells_of(sweep_of())
    assert not first_refused(plain, (), runner, LIMITS_DEFAULT, tmp_path, threading.Event())
    assert len(runner.requests) == 1
