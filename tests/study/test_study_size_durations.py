"""A phase that a duration ends takes as long on any data: a model saves only the rest of a run."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_runner import FakeRunner
from size_parts import ONE_LENGTH, ROCKSDB, run_large
from study_parts import Recorder, make_spec, stored

from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.measurer import Measurer
from lsmtune.experiment.schedule import Arm, Slot
from lsmtune.experiment.store import Role
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import RunRequest
from lsmtune.model.verdict import VerdictOutcome
from lsmtune.study.build import parse_spec
from lsmtune.study.finalist import for_proof
from lsmtune.study.size import RunSize, at_scale, stored_size
from lsmtune.study.spec import Spec
from lsmtune.study.start import baseline_config, candidate_config, open_study

NUM = 10_000_000


def smaller_is_faster(options: dict[str, object]) -> float:
    return 1e13 / float(str(options["write_buffer_size"]))


class Timed(FakeRunner):
    """Loads for `load_s` at the target, and then runs for 30 s or as long as it is told.

    At the target its 30 s hold `flushes` of the baseline; None: it only reads. Trial 7 has a
    quarter of them.
    """

    def __init__(self, load_s: float = 52.0, flushes: float | None = None) -> None:
        super().__init__(speed=smaller_is_faster, noise=0.0, engine=ROCKSDB)
        self._load_s, self._flushes = load_s, flushes

    def _measurement(self, request: RunRequest, outcome: Outcome) -> Measurement:
        found = super()._measurement(request, outcome)
        scale, last = request.workload.num / NUM, request.workload.phases[-1]
        lasted_s = last.duration_s or 0.0
        self.now_s += lasted_s + self._load_s * scale - self.fake_s
        figures: dict[str, Any] = {"name": last.name, "elapsed_s": lasted_s}
        figures["user_bytes_written"] = 0
        if self._flushes is not None:
            made = self._flushes * lasted_s / 30.0 / scale / (4 if request.trial == 7 else 1)
            figures |= {"flushes": round(made), "compactions": 1, "user_bytes_written": 1 << 30}
        phases = tuple(replace(phase, **figures) for phase in found.phases)
        return replace(found, phases=phases, elapsed_s=lasted_s)


def lasting(path: Path, name: str, budget: str) -> Spec:
    more = f"limits: {{deadline: 5m}}\nbaseline: {{write_buffer_size: 16MiB}}\n{ONE_LENGTH}"
    text = make_spec(path, budget=budget, more=more).text
    workload = f"workload: {{name: {name}, num: {NUM}, duration_s: 30}}"
    text = text.replace("workload:\n  name: fillrandom\n  num: 1000", workload)
    return parse_spec(text, path / "small.yaml")


def test_a_budget_that_holds_reads_of_a_duration_has_no_model(tmp_path: Path) -> None:
    """30 of 33 s were a duration's, and counted 17 times at the target: a model for nothing."""
    spec, runner = lasting(tmp_path, "readrandom", "{time: 1h}"), Timed()
    result = run_large(spec, tmp_path / "study", runner, Recorder())
    first, *others = [request.workload.num for request in runner.requests]
    assert first == pytest.approx(0.058 * NUM, rel=0.01)
    assert set(others) == {NUM}
    assert result.spent_s <= 3600.0


def test_a_model_is_as_large_as_what_its_runs_take(tmp_path: Path) -> None:
    """It was said to take 22 s, with a duration of 30 s; less data would save little of a minute.

    At the target a run takes 82 s, for which half an hour is too short.
    """
    spec, runner, observer = lasting(tmp_path, "readrandom", "{time: 30m}"), Timed(), Recorder()
    result = run_large(spec, tmp_path / "study", runner, observer)
    searched = runner.requests[1].workload.num
    assert 30.0 + 52.0 * searched / NUM == pytest.approx(60.0, rel=0.01)
    assert any("a run takes about 1m" in line for line in observer.warnings), observer.warnings
    assert result.spent_s <= 1800.0


def test_the_time_that_is_kept_for_a_proof_is_that_of_its_runs(tmp_path: Path) -> None:
    """On twice the data they take 1.7 times as long, and the search kept twice the time."""
    spec = lasting(tmp_path, "readrandom", "{time: 2h}")
    run_large(spec, tmp_path / "study", Timed(load_s=600.0), Recorder())
    with StudyFolder.open(tmp_path / "study") as folder:
        size = stored_size(folder)
    assert size.grows
    walls_s = {row.role: row.wall_s for row in stored(tmp_path / "study")}
    took = walls_s[Role.PROMOTION] / walls_s[Role.TRIAL]
    assert size.proof_factor == pytest.approx(took, rel=0.01)
    assert took < 0.9 * size.proof_scale / size.scale


def test_a_model_has_no_more_data_than_its_durations_flush_often_enough_for(
    tmp_path: Path,
) -> None:
    """On more data memtables are larger, and 30 s of the search held four flushes of them."""
    spec, observer = lasting(tmp_path, "overwrite", "{time: 6h, trials: 3}"), Recorder()
    runner = Timed(flushes=1.2)
    result = run_large(spec, tmp_path / "study", runner, observer)
    assert {request.workload.phases[-1].duration_s for request in runner.requests} == {30.0}
    assert result.verdict is not None
    assert result.verdict.outcome is VerdictOutcome.BETTER
    at = result.verdict.proved_at[0]
    assert at.baseline_flushes == 9, "two cycles of level 0"
    assert any("the durations of phases, do not hold" in line for line in observer.warnings)


def test_a_proof_of_durations_has_less_data_where_longer_ones_have_no_time(tmp_path: Path) -> None:
    """It had longer ones all the same, and took 792 s of the 500 that were left."""
    spec, runner, observer = (
        lasting(tmp_path, "overwrite", "{time: 2h}"),
        Timed(60.0, 2.4),
        Recorder(),
    )
    size = RunSize(scale=0.1, proof_scale=0.2)
    finalist = candidate_config(spec, 7, {"write_buffer_size": 8 << 20})
    with open_study(tmp_path / "study", spec) as folder:
        measurer = Measurer(
            *(folder, runner, *at_scale(spec, 0.2), observer, observer.stop, runner.clock),
            scale=0.2,
        )
        for index, (trial, config) in enumerate([(None, baseline_config(spec)), (7, finalist)]):
            measurer.measure(Arm(ROCKSDB, config), 1, Slot(Role.PROMOTION, index, trial=trial))
        proof = for_proof(spec, measurer, size, 7, 500.0)
        again = for_proof(spec, measurer, size, 7, math.inf)
    assert proof.scale == pytest.approx(0.1)
    assert [workload.phases[-1].duration_s for workload in proof.workloads] == [30.0]
    assert again.scale == proof.scale, "a proof that goes on has the same runs"
