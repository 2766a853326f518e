"""Runs that are too short to show what is sustained: longer ones come before the search."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fake_runner import FakeRunner
from study_parts import Recorder, make_spec, stored, tuned

from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.store import Role
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import RunRequest
from lsmtune.model.verdict import VerdictOutcome
from lsmtune.model.workload import Mix, Phase, PhaseKind, Replay, Workload
from lsmtune.report.source import read_study
from lsmtune.study.size import can_change, longer_by


class Flushing(FakeRunner):
    """Flushes once for every `each` records that are written; a run takes a second per 1,000."""

    def __init__(self, each: int) -> None:
        super().__init__(noise=0.0)
        self._each = each

    def _measurement(self, request: RunRequest, outcome: Outcome) -> Measurement:
        found = super()._measurement(request, outcome)
        num = request.workload.num
        self.now_s += num / 1000.0 - self.fake_s
        figures = {"flushes": num // self._each, "compactions": 1, "user_bytes_written": num}
        phases = tuple(replace(p, **figures) for p in found.phases)  # type: ignore[arg-type]
        return replace(found, phases=phases)


def warnings(observer: Recorder) -> list[str]:
    return [str(what[1]) for what in observer.told if what[0] == "warning"]


def test_a_study_of_short_runs_makes_them_longer_before_it_searches(tmp_path: Path) -> None:
    spec, runner, observer = make_spec(tmp_path), Flushing(500), Recorder()
    result = tuned(spec, tmp_path / "study", runner, observer)
    sizes = [request.workload.num for request in runner.requests]
    assert sizes[0] == 1000
    assert set(sizes[1:]) == {3000}
    assert result.verdict is not None
    assert result.verdict.outcome is VerdictOutcome.BETTER
    assert result.verdict.proved_at[0].records == 3000
    assert result.verdict.proved_at[0].baseline_flushes == 6
    assert any("3 times as long" in line for line in warnings(observer))
    # The short run is no baseline, and its time is spent all the same.
    rows = stored(tmp_path / "study")
    assert [row.role for row in rows].count(Role.BASELINE) == 1
    with StudyFolder.open(tmp_path / "study") as folder:
        assert folder.measurements.spent_s() > sum(row.wall_s for row in rows)
        assert read_study(folder).spec.workload.num == 3000


def test_a_study_that_goes_on_keeps_its_longer_runs(tmp_path: Path) -> None:
    observer = Recorder()
    observer.stop_at = ("trial_finished", 2)
    assert tuned(make_spec(tmp_path), tmp_path / "study", Flushing(500), observer).interrupted
    runner = Flushing(500)
    tuned(make_spec(tmp_path), tmp_path / "study", runner)
    assert {request.workload.num for request in runner.requests} == {3000}


def test_a_burst_is_measured_as_it_is_stated(tmp_path: Path) -> None:
    runner = Flushing(500)
    result = tuned(make_spec(tmp_path, more="burst: true"), tmp_path / "study", runner)
    assert {request.workload.num for request in runner.requests} == {1000}
    assert result.verdict is not None
    assert result.verdict.outcome is VerdictOutcome.BETTER


def test_a_deadline_that_does_not_hold_longer_runs_is_told_of(tmp_path: Path) -> None:
    """Then nothing can be proved better, and the user hears it before the search."""
    spec, runner, observer = make_spec(tmp_path), Flushing(500), Recorder()
    spec = replace(spec, limits=replace(spec.limits, deadline_s=3.0))
    result = tuned(spec, tmp_path / "study", runner, observer)
    assert {request.workload.num for request in runner.requests} == {1000}
    assert any("nothing can be proved better so" in line for line in warnings(observer))
    assert result.verdict is not None
    assert result.verdict.outcome is VerdictOutcome.NOT_PROVEN
    assert "at least 5 are wanted" in result.verdict.why


def test_operations_are_what_grows_unless_the_phase_fills() -> None:
    load = Phase("load", PhaseKind.LOAD, "filluniquerandom", operations=1000)
    read = Phase("read", PhaseKind.MEASURE, "overwrite", operations=500, duration_s=2.0)
    longer = longer_by(Workload("mixed", (load, read), num=1000), 3.0)
    assert longer.num == 1000
    assert longer.phases[0] == load
    assert (longer.phases[1].operations, longer.phases[1].duration_s) == (1500, 6.0)
    fill = Phase("fill", PhaseKind.MEASURE, "fillrandom", operations_per_thread=1000)
    longer = longer_by(Workload("fill", (fill,), num=1000), 2.5)
    assert (longer.num, longer.phases[0].operations_per_thread) == (2500, 2500)


@pytest.mark.parametrize(
    ("phase", "can"),
    [
        (Phase("a", PhaseKind.MEASURE, "overwrite", operations=1), True),
        (Phase("a", PhaseKind.MEASURE, replay=Replay("trace")), False),
        (Phase("a", PhaseKind.MEASURE, mix=Mix((("get", 1.0),)), operations=1), True),
    ],
)
def test_the_length_of_a_trace_is_its_own(phase: Phase, can: bool) -> None:
    assert can_change(Workload("w", (phase,), num=1)) is can
