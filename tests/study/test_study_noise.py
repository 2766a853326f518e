"""A study on a noisy machine: anchors, changes, repeats, calibration, and stops among them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from fake_runner import MIB, FakeRunner
from study_parts import Recorder, make_spec, stored, tuned

from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.schedule import Arm, Slot
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import PairMethod, RunRequest
from lsmtune.model.workload import Workload
from lsmtune.proof.calibration import Calibration, MetricNoise
from lsmtune.report.source import read_study
from lsmtune.study.observer import TuneResult
from lsmtune.study.spec import Spec
from lsmtune.study.start import calibration_line

ANCHORS = "{calibration: 0, anchors: 2, repeats: 1}"
REPEATS = "{calibration: 0, anchors: 0, repeats: 3}"
ALL = "{calibration: 2, anchors: 3, repeats: 3}"


class Changing(FakeRunner):
    """Half as fast from run number `at` on. How long a run takes does not follow from it."""

    def __init__(self, at: int, noise: float = 0.0) -> None:
        super().__init__(noise=noise)
        self._at = at

    def _measurement(self, request: RunRequest, outcome: Outcome) -> Measurement:
        found = super()._measurement(request, outcome)
        factor = 1.0 if len(self.requests) <= self._at else 0.5
        phases = tuple(
            replace(p, sustained_throughput_ops_s=p.sustained_throughput_ops_s * factor)
            for p in found.phases
        )
        return replace(found, phases=phases)


def roles(folder: Path) -> Counter[Role]:
    return Counter(row.role for row in stored(folder))


def search_of(rows: list[StoredMeasurement]) -> list[tuple[object, ...]]:
    """What was run in the search, and on which seeds, in order."""
    return [
        (row.role, row.trial, row.repeat, row.measurement.seed, dict(row.config.options))
        for row in rows
        if row.role in (Role.BASELINE, Role.TRIAL, Role.ANCHOR, Role.CALIBRATION)
    ]


def test_an_anchor_follows_every_few_trials(tmp_path: Path) -> None:
    noise = "{calibration: 0, anchors: 10, repeats: 1}"
    runner, observer = FakeRunner(), Recorder()
    spec = make_spec(tmp_path, budget="{trials: 25}", noise=noise)
    result = tuned(spec, tmp_path / "s", runner, observer)
    rows = stored(tmp_path / "s")
    where = [index for index, row in enumerate(rows) if row.role is Role.ANCHOR]
    assert where == [11, 22]
    assert result.counts == {"ok": 25}
    assert [dict(rows[index].config.options) for index in where] == [{}, {}]
    assert len({row.measurement.seed for row in rows[:28]}) == 28
    assert observer.warnings == []


def test_anchors_take_no_more_than_their_share_and_none_that_the_budget_does_not_hold(
    tmp_path: Path,
) -> None:
    tuned(make_spec(tmp_path, budget="{trials: 40}", noise=ANCHORS), tmp_path / "s")
    counted = roles(tmp_path / "s")
    assert 5 <= counted[Role.ANCHOR] <= 7  # 15 % of all, where every third run would be one
    short = make_spec(tmp_path, budget="{time: 40s}", noise=ANCHORS)
    assert tuned(short, tmp_path / "t").spent_s <= 40.0


def test_a_baseline_that_fails_in_between_is_said_and_no_anchor(tmp_path: Path) -> None:
    runs = iter(range(1000))
    runner = FakeRunner(
        fails=lambda r: Outcome.CRASHED if next(runs) > 0 and not r.config.options else None
    )
    observer = Recorder()
    noise = "{calibration: 0, anchors: 8, repeats: 1}"
    observer.stop_at = ("search_finished",)
    tuned(make_spec(tmp_path, budget="{trials: 16}", noise=noise), tmp_path / "s", runner, observer)
    assert roles(tmp_path / "s")[Role.ANCHOR] == 2
    assert observer.warnings[0] == "anchor 0, a baseline run, ended crashed"


def changing_study(path: Path, trials: int = 42) -> Spec:
    return make_spec(
        path,
        budget=f"{{trials: {trials}}}",
        sampler="random",
        noise="{calibration: 3, anchors: 7, repeats: 1}",
    )


def test_a_machine_that_slows_down_makes_no_trial_bad_and_those_beside_are_run_again(
    tmp_path: Path,
) -> None:
    runner, observer = Changing(at=26), Recorder()
    result = tuned(changing_study(tmp_path), tmp_path / "s", runner, observer)
    (line,) = [text for text in observer.warnings if "the machine changed" in text]
    assert "of the baseline is 0.50 of what it was before; 7 trials are run again" in line
    again = [row for row in stored(tmp_path / "s") if row.role is Role.TRIAL and row.repeat]
    assert len(again) == 7
    assert result.counts == {"ok": 42}
    with StudyFolder.open(tmp_path / "s") as folder:
        records = read_study(folder)
    speeds = {}
    for trial in records.trials:
        speeds.setdefault(trial.config.options["write_buffer_size"], set()).add(
            round(trial.end.values[0]) if trial.end.values else None
        )
    assert all(len(found) == 1 for found in speeds.values()), "the same size, the same speed"
    assert records.judgement.best == result.best_trial
    assert result.best is not None
    assert result.best.options["write_buffer_size"] == 8 * MIB


def test_contenders_are_repeated_and_bad_configurations_are_not(tmp_path: Path) -> None:
    spec = make_spec(tmp_path, budget="{trials: 25}", noise=REPEATS)
    observer = Recorder()
    result = tuned(spec, tmp_path / "s", FakeRunner(noise=0.08), observer)
    runs = Counter(row.trial for row in stored(tmp_path / "s") if row.role is Role.TRIAL)
    assert result.counts == {"ok": 25}
    assert runs[result.best_trial] > 1
    assert sum(n == 1 for n in runs.values()) > 10
    assert max(runs.values()) <= 6
    assert result.best is not None
    assert 6 <= int(result.best.options["write_buffer_size"]) / MIB <= 10
    with StudyFolder.open(tmp_path / "s") as folder:
        records = read_study(folder)
    assert records.judgement.best == result.best_trial
    seeds = [row.measurement.seed for row in stored(tmp_path / "s") if row.role is Role.TRIAL]
    assert len(set(seeds)) == len(seeds)


def test_a_trial_that_fails_when_it_is_repeated_has_failed(tmp_path: Path) -> None:
    seen: Counter[str] = Counter()

    def fails(request: RunRequest) -> Outcome | None:
        key = str(request.config.options)
        seen[key] += 1
        return Outcome.DATA_LOSS if seen[key] > 1 and request.trial is not None else None

    observer = Recorder()
    spec = make_spec(tmp_path, budget="{trials: 20}", noise=REPEATS)
    result = tuned(spec, tmp_path / "s", FakeRunner(noise=0.08, fails=fails), observer)
    lost = result.counts["data_loss"]
    assert lost > 0
    assert len([text for text in observer.warnings if "counts as such" in text]) == lost
    again = {row.trial for row in stored(tmp_path / "s") if row.role is Role.TRIAL and row.repeat}
    assert result.best_trial not in again


def with_all(path: Path, sampler: str = "random", trials: int = 16) -> Spec:
    return make_spec(path, budget=f"{{trials: {trials}}}", sampler=sampler, noise=ALL)


def test_a_study_begins_with_its_calibration_and_says_what_it_showed(tmp_path: Path) -> None:
    observer = Calibrated()
    tuned(with_all(tmp_path, trials=3), tmp_path / "s", FakeRunner(), observer)
    first = [row.role for row in stored(tmp_path / "s")][:6]
    assert first == [Role.BASELINE, *[Role.CALIBRATION] * 4, Role.TRIAL]
    (line,) = observer.lines
    assert line.startswith("calibration: 2 pairs by whole: sustained_throughput_ops_s varies by")


def test_what_the_planned_pairs_can_show_is_said_whatever_a_pair_took(tmp_path: Path) -> None:
    """The time of 6 pairs of 15.2 s over that of one is 5.999..., and 5 pairs prove nothing."""
    noise = MetricNoise(0.1, 0.1, 0.1, None, 0.1, 0.1, 0.1, 1.0)
    spec = make_spec(tmp_path, pairs=6)
    calibration = Calibration(PairMethod.WHOLE, 3, 0, 15.2, {spec.goal.metric: noise})
    assert "a proof of 6 pairs can show a difference of" in calibration_line(calibration, spec)


def test_a_calibration_that_tells_no_noise_says_why(tmp_path: Path) -> None:
    """Of runs that failed the time was blamed, and of a metric that was 0 the number of pairs."""
    spec = make_spec(tmp_path, noise="{calibration: 4}", metric="drain_s")
    assert calibration_line(Calibration(PairMethod.WHOLE, 0, 3), spec) == (
        "calibration: 0 pairs (of 4, as 3 failed), too few to say how noisy the machine is"
    )
    assert calibration_line(Calibration(PairMethod.WHOLE, 4), spec) == (
        "calibration: 4 pairs, and drain_s is not above 0 in all: its noise is not known"
    )


def test_a_calibration_takes_no_more_than_a_tenth_of_the_time(tmp_path: Path) -> None:
    spec = make_spec(tmp_path, budget="{time: 62s}", noise="{calibration: 50}")
    observer = Calibrated()
    tuned(spec, tmp_path / "s", FakeRunner(), observer)
    assert roles(tmp_path / "s")[Role.CALIBRATION] == 6
    assert "3 pairs by whole (of 50, as time allowed)" in observer.lines[0]
    short = make_spec(tmp_path, budget="{time: 19s}", noise="{calibration: 50}")
    tuned(short, tmp_path / "t", FakeRunner(), observer)
    assert roles(tmp_path / "t")[Role.CALIBRATION] == 0
    told = "no calibration: a pair of runs takes 2s"
    assert any(line.startswith(told) for line in observer.warnings)


class Calibrated(Recorder):
    """Remembers what was said of calibrations."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def calibrated(self, line: str) -> None:
        self.lines.append(line)


class StopAfter(Recorder):
    """Stops the study after so many runs; in the middle of one that is not a trial's first.

    A trial that is cut off in its first run leaves its number behind, and is another one then.
    """

    def __init__(self, runs: int) -> None:
        super().__init__()
        self._left = runs

    def run_started(self, place: Slot, arm: Arm, workload: Workload) -> None:
        super().run_started(place, arm, workload)
        if self._left <= 0 and (place.role is Role.ANCHOR or place.repeat):
            self.stop.set()

    def run_finished(self, stored: StoredMeasurement) -> None:
        super().run_finished(stored)
        self._left -= 1
        if self._left <= -3:
            self.stop.set()


def in_pieces(spec: Spec, folder: Path, runner: FakeRunner, every: int) -> TuneResult:
    while True:
        result = tuned(spec, folder, runner, StopAfter(every))
        if not result.interrupted:
            return result
        # How fast the machine is follows from how many runs it has behind it.
        del runner.requests[len(stored(folder)) :]


@pytest.mark.parametrize("sampler", ["tpe", "gp"])
def test_a_study_that_stops_often_has_the_same_runs_as_one_that_never_did(
    tmp_path: Path, sampler: str
) -> None:
    spec = with_all(tmp_path, sampler)
    straight = tuned(spec, tmp_path / "straight", FakeRunner(noise=0.08))
    pieces = in_pieces(spec, tmp_path / "pieces", FakeRunner(noise=0.08), 4)
    rows = search_of(stored(tmp_path / "pieces"))
    assert rows == search_of(stored(tmp_path / "straight"))
    assert {row[0] for row in rows if row[2]} == {Role.TRIAL, Role.ANCHOR, Role.CALIBRATION}
    assert (pieces.best_value, pieces.counts) == (straight.best_value, straight.counts)


def test_changes_are_the_same_after_a_stop(tmp_path: Path) -> None:
    spec = changing_study(tmp_path)
    straight = tuned(spec, tmp_path / "straight", Changing(at=26))
    pieces = in_pieces(spec, tmp_path / "pieces", Changing(at=26), 17)
    assert _values(tmp_path / "pieces") == _values(tmp_path / "straight")
    assert pieces.best_trial == straight.best_trial


def _values(folder: Path) -> dict[str, object]:
    with StudyFolder.open(folder) as opened:
        records = read_study(opened)
    return {str(dict(trial.config.options)): trial.end.values for trial in records.trials}
