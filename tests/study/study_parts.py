"""A study file for tests, an observer that records, and a way to tune."""

from __future__ import annotations

from pathlib import Path

from fake_runner import ENGINE, FakeRunner, Recording

from lsmtune.driver.runner import Runner
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.schedule import Arm, Slot
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.model.workload import Workload
from lsmtune.study.build import parse_spec
from lsmtune.study.loop import tune
from lsmtune.study.observer import TuneObserver, TuneResult
from lsmtune.study.spec import Spec
from lsmtune.study.start import open_study
from lsmtune.study.trials import TrialEnd

STUDY = """\
version: 1
name: small
engine:
  name: rocksdb
workload:
  name: fillrandom
  num: 1000
objective:
  metric: {metric}
space:
  write_buffer_size: {{type: int, low: 2MiB, high: 16MiB, step: 1MiB, {default}}}
  level0_file_num_compaction_trigger: {{type: int, low: 2, high: 16, default: 4}}
sampler:
  name: {sampler}
budget: {budget}
proof:
  pairs: {pairs}
noise: {noise}
seed: {seed}
{more}
"""


def make_spec(
    path: Path,
    *,
    budget: str = "{trials: 8}",
    metric: str = "sustained_throughput_ops_s",
    default: str = "default: 2MiB",
    sampler: str = "random",
    pairs: int = 6,
    seed: int = 1,
    noise: str = "{calibration: 0, anchors: 0, repeats: 1}",
    more: str = "",
) -> Spec:
    text = STUDY.format(
        budget=budget,
        metric=metric,
        default=default,
        sampler=sampler,
        pairs=pairs,
        seed=seed,
        noise=noise,
        more=more,
    )
    return parse_spec(text, path / "small.yaml")


class Recorder(Recording, TuneObserver):
    """What a study says."""

    def study_started(self, spec: Spec, resumed: int) -> None:
        self._note("study_started", spec.name, resumed)

    def run_started(self, place: Slot, arm: Arm, workload: Workload) -> None:
        self._note("run_started", place.role, place.index, place.trial, arm.config, workload)

    def run_finished(self, stored: StoredMeasurement) -> None:
        self._note("run_finished", stored.role, stored.trial, stored.pair)

    def trial_finished(self, number: int, end: TrialEnd, *, best: bool) -> None:
        self._note("trial_finished", number, end, best)

    def best_changed(self, trial: int, value: float, ratio_to_baseline: float | None) -> None:
        self._note("best_changed", trial, value, ratio_to_baseline)

    def search_finished(self, reason: str) -> None:
        self._note("search_finished", reason)

    def finished(self, result: TuneResult) -> None:
        self._note("finished", result)


def tuned(
    spec: Spec, folder: Path, runner: FakeRunner | None = None, observer: Recorder | None = None
) -> TuneResult:
    """One session of `tune` with the fake runner's own clock."""
    runner = runner or FakeRunner()
    observer = observer or Recorder()
    with open_study(folder, spec) as opened:
        wanted: Runner = runner
        return tune(spec, opened, wanted, ENGINE, observer, stop=observer.stop, clock=runner.clock)


def stored(folder: Path) -> list[StoredMeasurement]:
    with StudyFolder.open(folder) as opened:
        return opened.measurements.all()


def trials_of(folder: Path) -> list[StoredMeasurement]:
    return [row for row in stored(folder) if row.role is Role.TRIAL]
