"""The crash test at the end of a study."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fake_runner import FakeRunner
from killable_runner import KillableRunner, left
from study_parts import Recorder, make_spec, tuned

from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.store import Role
from lsmtune.model.measurement import Outcome
from lsmtune.model.verdict import VerdictOutcome
from lsmtune.proof.crash_test import CrashOutcome
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
