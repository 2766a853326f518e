"""The crash test and the power test at the end of a study."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_runner import FakeRunner
from killable_runner import KillableRunner, left
from study_parts import Recorder, make_spec, tuned

from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.store import Role
from lsmtune.model.measurement import Outcome
from lsmtune.model.verdict import VerdictOutcome
from lsmtune.model.workload import Durability
from lsmtune.proof import survival
from lsmtune.proof.crash_test import CrashOutcome
from lsmtune.proof.power_loss import PowerTest
from lsmtune.study.observer import TuneResult


def result_of(path: Path, runner: FakeRunner, observer: Recorder | None = None) -> TuneResult:
    return tuned(make_spec(path), path / "s", runner, observer)


def written(path: Path) -> Any:
    return json.loads((path / "s" / "result" / "result.json").read_text())


def test_a_finalist_that_survives_its_crash_stays_better(tmp_path: Path) -> None:
    runner = KillableRunner()
    result = result_of(tmp_path, runner)
    assert result.verdict is not None
    assert result.verdict.outcome is VerdictOutcome.BETTER
    assert result.survival.crash is not None
    assert result.survival.crash.outcome is CrashOutcome.PASSED
    assert [request.config for request, _, _ in runner.kills] == [result.best]
    assert written(tmp_path)["crash_test"] == {
        "outcome": "passed",
        "durability": "wal",
        "acknowledged": 1000,
        "keys_checked": 1000,
        "keys_lost": 0,
        "keys_wrong": 0,
        "why": "",
    }


def test_a_finalist_that_loses_writes_is_worse(tmp_path: Path) -> None:
    result = result_of(tmp_path, KillableRunner(leaves=lambda _config: left(lost=31)))
    assert result.verdict is not None
    assert result.verdict.outcome is VerdictOutcome.WORSE
    assert "lost 31 of 1,000 acknowledged writes after a crash" in result.verdict.why
    assert written(tmp_path)["verdict"]["outcome"] == "worse"
    with StudyFolder.open(tmp_path / "s") as folder:
        assert folder.measurements.verdict() == result.verdict


def test_a_finalist_that_loses_synced_writes_in_a_power_loss_is_worse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    why = "7 of 90 acknowledged writes lost under durability sync in 2 of 40 states"
    failed = PowerTest(CrashOutcome.FAILED, "rocksdb", Durability.SYNC, 40, 25, why=why)
    monkeypatch.setattr(survival, "power_test", lambda *_arm, **_plan: failed)
    result = result_of(tmp_path, KillableRunner())
    assert result.verdict is not None
    assert result.verdict.outcome is VerdictOutcome.WORSE
    assert result.verdict.why.startswith(f"{why} (power loss)")
    assert result.survival.power == failed
    found = written(tmp_path)
    assert (found["verdict"]["outcome"], found["crash_test"]["outcome"]) == ("worse", "passed")
    assert found["power_test"]["states"] == 40


def test_a_finalist_that_loses_writes_in_a_crash_is_not_tested_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(survival, "power_test")
    result = result_of(tmp_path, KillableRunner(leaves=lambda _config: left(lost=31)))
    assert result.survival.power is None


@pytest.mark.parametrize(
    ("states", "why"),
    [(0, "power_states is 0"), (9, "of a program that is not lsmtune's own driver it is not")],
)
def test_a_power_test_that_is_not_made_leaves_the_verdict(
    tmp_path: Path, states: int, why: str
) -> None:
    spec = make_spec(tmp_path)
    spec = replace(spec, proof=replace(spec.proof, power_states=states))
    result = tuned(spec, tmp_path / "s", KillableRunner())
    assert result.verdict is not None
    assert result.verdict.outcome is VerdictOutcome.BETTER
    assert result.survival.power is not None
    assert result.survival.power.outcome is CrashOutcome.NOT_DONE
    assert result.survival.power.why.startswith(why)


def test_a_finished_study_is_not_killed_again(tmp_path: Path) -> None:
    first, again = KillableRunner(), KillableRunner()
    result = result_of(tmp_path, first)
    assert result_of(tmp_path, again).survival.crash == result.survival.crash
    assert (len(first.kills), again.kills, again.requests) == (1, [], [])


def test_a_study_that_is_stopped_in_the_crash_test_goes_on(tmp_path: Path) -> None:
    class StopsAtCrash(Recorder):
        def run_started(self, *arguments: Any) -> None:
            super().run_started(*arguments)
            if arguments[0].role is Role.CRASH:
                self.stop.set()

    stopped = result_of(tmp_path, KillableRunner(), StopsAtCrash())
    assert (stopped.interrupted, stopped.verdict) == (True, None)
    result = result_of(tmp_path, KillableRunner())
    assert result.survival.crash is not None
    assert result.survival.crash.outcome is CrashOutcome.PASSED


def test_a_program_of_the_users_own_is_not_killed_and_that_is_said(tmp_path: Path) -> None:
    result = result_of(tmp_path, FakeRunner())
    assert result.verdict is not None
    assert result.verdict.outcome is VerdictOutcome.BETTER
    assert result.survival.crash is not None
    assert result.survival.crash.outcome is CrashOutcome.NOT_DONE
    assert "not lsmtune's own driver" in result.survival.crash.why


def test_without_a_gain_nobody_is_killed(tmp_path: Path) -> None:
    runner = KillableRunner(speed=lambda _options: 1e5)
    result = result_of(tmp_path, runner)
    assert (result.survival.crash, runner.kills) == (None, [])
    assert written(tmp_path)["crash_test"] is None


def test_what_could_not_be_looked_at_leaves_the_verdict(tmp_path: Path) -> None:
    runner = KillableRunner(leaves=lambda _config: left(outcome=Outcome.TIMEOUT))
    result = result_of(tmp_path, runner)
    assert result.verdict is not None
    assert result.verdict.outcome is VerdictOutcome.BETTER
