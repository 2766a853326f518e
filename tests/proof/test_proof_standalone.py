"""A proof and a calibration outside a study, without an engine."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from fake_runner import ENGINE, FakeRunner
from killable_runner import KillableRunner
from proof_parts import BASELINE, CANDIDATE, WORKLOAD, Recorder, arm

from lsmtune.errors import InputError
from lsmtune.experiment.schedule import Arm, Stream, derive_seed
from lsmtune.experiment.store import Role
from lsmtune.model.config import EngineIdentity
from lsmtune.model.goal import Direction, Goal, Objective
from lsmtune.model.request import LIMITS_DEFAULT, PairMethod, RunRequest
from lsmtune.model.verdict import VerdictOutcome
from lsmtune.proof import standalone
from lsmtune.proof.calibration import Calibration
from lsmtune.proof.crash_test import CrashOutcome
from lsmtune.proof.paired import ProofPlan
from lsmtune.proof.standalone import (
    CalibrationRequest,
    Verification,
    calibrated,
    measuring,
    proved,
)
from lsmtune.proof.survival import SurvivalPlan, Survived

LIMITS = replace(LIMITS_DEFAULT, deadline_s=77.0)
SHORTER = Objective("latency_us_p99", Direction.MINIMIZE)


def verification(**named: Any) -> Verification:
    parts: dict[str, Any] = {
        "baseline": arm(BASELINE),
        "candidate": arm(CANDIDATE),
        "workload": WORKLOAD,
        "objective": Objective(),
        "limits": LIMITS,
        "seed": 5,
        "plan": ProofPlan(pairs=10),
    }
    return Verification(**(parts | named))


def test_a_description_has_all_but_the_configurations(tmp_path: Path) -> None:
    one = verification(objective=SHORTER)
    parts = one.comparable_parts()
    assert list(parts) == ["engine", "workload", "objective", "limits"]
    assert (parts["engine"], parts["workload"]) == (["memory", ""], WORKLOAD)
    assert (parts["objective"], parts["limits"]) == (SHORTER, LIMITS)
    other = verification(objective=SHORTER, candidate=arm(BASELINE), baseline=arm(CANDIDATE))
    assert other.comparable_parts() == parts
    assert one.goal.directions == (Direction.MINIMIZE,)
    with measuring(one, tmp_path, FakeRunner(), Recorder(), threading.Event()):
        text = (tmp_path / "study.yaml").read_text()
    read = json.loads(text)["verify"]
    assert read["engine"] == ["memory", ""]
    assert read["limits"]["deadline_s"] == 77.0
    assert read["objective"]["metric"] == "latency_us_p99"
    assert text.startswith('{\n  "verify": {\n    "engine"')
    assert text.endswith("}\n")


def test_two_builds_are_both_named_and_one_only_once() -> None:
    old, new = (EngineIdentity("rocksdb", v, f"/lib/{v}.so") for v in ("9.0.0", "10.2.1"))
    alike = verification(baseline=Arm(new, BASELINE), candidate=Arm(new, CANDIDATE))
    assert alike.builds == (new,)
    assert alike.engine == new
    two = verification(baseline=Arm(old, BASELINE), candidate=Arm(new, CANDIDATE))
    assert two.builds == (old, new)
    assert two.engine == new
    assert two.comparable_parts()["engine"] == ["rocksdb", "/lib/9.0.0.so", "/lib/10.2.1.so"]


def test_what_was_spent_is_taken_from_the_time_budget() -> None:
    timed = verification(plan=ProofPlan(pairs=10, deadline_s=60.0))
    assert timed.after(20.0) == verification(plan=ProofPlan(pairs=10, deadline_s=40.0))
    assert verification().after(20.0) == verification()


def test_a_proof_keeps_its_runs_in_its_folder_and_goes_on_from_them(tmp_path: Path) -> None:
    runner, observer = KillableRunner(), Recorder()
    found = proved(verification(), tmp_path, runner, observer, observer.stop)
    assert found is not None
    assert found.verdict.outcome is VerdictOutcome.BETTER
    assert found.verdict.metric == Objective().metric
    assert found.survival.crash is not None
    assert found.survival.crash.outcome is CrashOutcome.PASSED
    assert runner.kills[0][0].config == CANDIDATE
    assert runner.kills[0][0].seed == derive_seed(5, Stream.CRASH, 0)
    assert {request.seed for request in runner.requests} == {
        derive_seed(5, Stream.PROOF, pair) for pair in range(found.verdict.pairs)
    }  # fmt: skip
    for request in runner.requests:
        assert request.config in (BASELINE, CANDIDATE)
        assert (request.workload, request.limits) == (WORKLOAD, LIMITS)
    assert observer.of("proof_started") == [(10,)]
    again = KillableRunner()
    assert proved(verification(), tmp_path, again, observer, observer.stop) == found
    assert (again.requests, again.kills) == ([], [])


def test_a_proof_makes_the_tests_that_its_plan_says(tmp_path: Path) -> None:
    runner, observer = KillableRunner(), Recorder()
    asked = verification(survival=SurvivalPlan("--no-crash-test"))
    found = proved(asked, tmp_path, runner, observer, observer.stop)
    assert found is not None
    assert found.survival.crash is not None
    assert found.survival.crash.why == "--no-crash-test"
    assert runner.kills == []


def test_an_interrupted_proof_has_no_verdict(tmp_path: Path) -> None:
    runner, stop = FakeRunner(), threading.Event()
    stop.set()
    assert proved(verification(), tmp_path, runner, Recorder(), stop) is None
    assert runner.requests == []


def test_what_a_killed_proof_left_is_swept(tmp_path: Path) -> None:
    parts = (verification(), tmp_path, FakeRunner(), Recorder(), threading.Event())
    with measuring(*parts) as measurer, measurer.folder.run_directory() as directory:
        left_over = copytree(directory, directory.with_name("run-killed"))
    with measuring(*parts) as measurer:
        assert not left_over.exists()
        assert measurer.limits == LIMITS
        assert measurer.workloads == (WORKLOAD,)
        assert measurer.databases is None  # of a program that is not lsmtune's driver


def test_a_folder_takes_no_runs_of_another_workload(tmp_path: Path) -> None:
    runner, observer = FakeRunner(), Recorder()
    plan = SurvivalPlan("no", "no")
    assert isinstance(
        proved(verification(survival=plan), tmp_path, runner, observer, observer.stop), Survived
    )
    other = verification(workload=replace(WORKLOAD, num=2000))
    with pytest.raises(InputError):
        proved(other, tmp_path, runner, observer, observer.stop)


# --- calibrations


class FakeClock:
    """The clock of a fake runner, in place of one that looks after naps."""

    def __init__(self, runner: FakeRunner) -> None:
        self.runner = runner

    def __call__(self) -> float:
        return self.runner.now_s

    @contextmanager
    def beating(self) -> Iterator[None]:
        yield


FAMILY: Mapping[str, object] = {"num": WORKLOAD.num}


class Calibrating:
    """`calibrated` on a fake runner, whose runs take a second of its clock."""

    def __init__(self, patch: pytest.MonkeyPatch, path: Path) -> None:
        self.patch, self.path = patch, path
        self.runner, self.observer = FakeRunner(), Recorder()
        patch.setattr(standalone, "AwakeClock", lambda: FakeClock(self.runner))

    def __call__(self, time_s: float, of: Mapping[str, object] = FAMILY) -> list[Calibration]:
        """With the parameters `of` its workload, none where that is from a file."""
        asked = CalibrationRequest(
            *(ENGINE, WORKLOAD, CANDIDATE, LIMITS),
            seed=5,
            time_s=time_s,
            runner=self.runner,
            parameters=of,
        )
        return calibrated(asked, self.path, self.observer, self.observer.stop)


@pytest.fixture
def calibrating(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Calibrating:
    return Calibrating(monkeypatch, tmp_path)


def test_both_halves_count_where_whole_runs_are_the_usual_method(calibrating: Calibrating) -> None:
    (found,) = calibrating(13.0)  # six pairs and a half, of two runs each
    assert (found.method, found.pairs, found.seconds_per_pair) == (PairMethod.WHOLE, 6, 2.0)
    assert found.why == "a program that is not lsmtune's own driver cannot be stopped and continued"
    assert next(iter(found.metrics)) == Objective().metric
    requests = calibrating.runner.requests
    for request in requests:
        assert (request.config, request.workload) == (CANDIDATE, WORKLOAD)
        assert request.limits == LIMITS
    assert requests[0].seed == derive_seed(5, Stream.CALIBRATION, 0)
    assert {told[0] for told in calibrating.observer.of("run_started")} == {Role.CALIBRATION}
    assert list(calibrating.path.iterdir()) == []  # nothing is left of the folder


def test_a_time_that_is_too_short_for_two_pairs_is_said_with_one_that_is_not(
    calibrating: Calibrating,
) -> None:
    runner = calibrating.runner

    def slower(_request: RunRequest) -> None:
        """The first pair takes 2 s, and no other one comes to its end."""
        runner.fake_s = 1.0 if len(runner.requests) < 2 else 3.0

    runner.fails = slower
    with pytest.raises(InputError) as caught:
        calibrating(5.0)
    assert str(caught.value) == (
        "--calibrate: too short for 2 pairs of runs; found '5s'; allowed: about 6s or more, or a "
        "smaller workload (-w num=N)"
    )


def test_a_time_that_is_too_short_for_any_pair_has_no_estimate(calibrating: Calibrating) -> None:
    with pytest.raises(InputError, match="a longer time, or a smaller workload"):
        calibrating(1.0)
    with pytest.raises(
        InputError, match=r"smaller workload \(num and the operations of the phases"
    ):
        calibrating(1.0, {})  # a workload file, of which -w is refused


def test_an_interrupted_calibration_is_not_too_short(calibrating: Calibrating) -> None:
    calibrating.observer.stop_at = ("run_finished", Role.CALIBRATION, 0, 0)
    (found,) = calibrating(100.0)
    assert found.pairs < 2


def test_two_methods_share_the_time(
    calibrating: Calibrating, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first by the usual method for half of the time; the second has what is left."""
    slices = Calibration(PairMethod.SLICES, 2, 0, 1.0)
    whole = Calibration(PairMethod.WHOLE, 1, 0, 5.0)
    asked: list[dict[str, Any]] = []

    def stand(tried: Arm, goal: Goal, *_: object, **named: Any) -> Calibration:
        assert (tried, goal) == (Arm(ENGINE, CANDIDATE), Goal((Objective(),)))
        calibrating.runner.now_s += 40.0
        asked.append(named)
        return slices if len(asked) == 1 else whole

    monkeypatch.setattr(standalone, "calibrate", stand)
    assert calibrating(100.0) == [slices, whole]
    assert [(a["method"], a["deadline_s"]) for a in asked] == [
        (None, 50.0), (PairMethod.WHOLE, 60.0)
    ]  # fmt: skip
    assert {(a["study_seed"], a["pairs"]) for a in asked} == {(5, 1000)}
    # With one pair each, the estimate is for both, at the slower one's pace.
    asked.clear()
    slices = replace(slices, pairs=1)
    with pytest.raises(InputError, match="allowed: about 30s or more"):
        calibrating(100.0)
