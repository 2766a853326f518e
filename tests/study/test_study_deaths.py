"""Runs that were killed or stopped from outside: measured again, and held against nobody."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from fake_runner import FakeRunner
from study_parts import Recorder, make_spec, stored, tuned

from lsmtune.driver.collect import KILLED
from lsmtune.driver.messages import Message
from lsmtune.errors import LsmtuneError
from lsmtune.experiment.disturbed import TRIES
from lsmtune.experiment.store import Role
from lsmtune.model.measurement import Measurement, Outcome, RunError
from lsmtune.model.request import RunRequest


@dataclass
class Disturbed(FakeRunner):
    """The first `times` runs of which `which` is true are disturbed; `kinds` say how each is."""

    which: Callable[[RunRequest], bool] = lambda _request: True
    times: int = 1
    kinds: Sequence[str] = (KILLED,) * TRIES
    seeds: list[int] = field(default_factory=list)

    def run(
        self,
        request: RunRequest,
        on_message: Callable[[Message], None] | None = None,
        cancel: threading.Event | None = None,
    ) -> Measurement:
        found = super().run(request, on_message, cancel)
        if not self.which(request) or len(self.seeds) >= self.times:
            return found
        self.seeds.append(request.seed)
        kind = self.kinds[len(self.seeds) - 1]
        error = RunError(kind, "killed by SIGKILL, by whom is not known")
        return replace(found, outcome=Outcome.DISTURBED, error=error, phases=())


def of_trial(number: int) -> Callable[[RunRequest], bool]:
    return lambda request: request.trial == number


def test_a_trial_that_was_killed_from_outside_is_measured_again(tmp_path: Path) -> None:
    runner, observer = Disturbed(which=of_trial(3), times=TRIES - 1), Recorder()
    result = tuned(make_spec(tmp_path), tmp_path / "s", runner, observer)
    assert result.counts == {"ok": 8}
    assert [text for text in observer.warnings if "measured again" in text] == [
        "a run was killed by SIGKILL, by whom is not known: that is not held against it, and it is "
        "measured again"
    ] * (TRIES - 1)
    # On the same seed, once in the store, and the time that it cost is not forgotten.
    rows = stored(tmp_path / "s")
    assert [row.seed for row in rows if row.trial == 3] == [runner.seeds[0]]
    assert {row.measurement.outcome for row in rows} == {Outcome.OK}
    assert result.spent_s == len(rows) + TRIES - 1
    undisturbed = tuned(make_spec(tmp_path), tmp_path / "other")
    assert undisturbed.best == result.best


def test_a_trial_that_is_killed_every_time_has_crashed_and_nobody_is_named(tmp_path: Path) -> None:
    """Something about it makes others kill it: a watcher of memory, for instance."""
    runner = Disturbed(which=of_trial(3), times=TRIES)
    result = tuned(make_spec(tmp_path), tmp_path / "s", runner)
    assert result.counts == {"crashed": 1, "ok": 7}
    (row,) = [row for row in stored(tmp_path / "s") if row.trial == 3]
    assert row.measurement.error is not None
    assert row.measurement.error.message == (
        "killed by SIGKILL, by whom is not known; so it ended 3 times, one after the other"
    )


def test_a_baseline_that_was_killed_is_measured_again_before_the_study_gives_up(
    tmp_path: Path,
) -> None:
    spec = make_spec(tmp_path)
    assert tuned(spec, tmp_path / "s", Disturbed(times=TRIES - 1)).counts == {"ok": 8}
    with pytest.raises(LsmtuneError, match="its baseline run ended crashed: killed by SIGKILL"):
        tuned(spec, tmp_path / "other", Disturbed(times=TRIES))
    # The same command goes on.
    assert tuned(spec, tmp_path / "other").counts == {"ok": 8}


@pytest.mark.parametrize("kinds", [["disturbed"] * TRIES, ["disturbed", "disturbed", KILLED]])
def test_a_trial_that_is_stopped_every_time_is_not_to_blame(
    tmp_path: Path, kinds: Sequence[str]
) -> None:
    """Nor is one that was killed once, after it was stopped: it counted as killed every time."""
    spec, runner = make_spec(tmp_path), Disturbed(which=of_trial(3), times=TRIES, kinds=kinds)
    with pytest.raises(LsmtuneError, match="3 times, one after the other: what was stored"):
        tuned(spec, tmp_path / "s", runner)
    assert not [row for row in stored(tmp_path / "s") if row.trial == 3]
    result = tuned(spec, tmp_path / "s")
    assert result.counts == {"ok": 8}


def test_a_pair_of_which_a_run_was_killed_is_run_again(tmp_path: Path) -> None:
    spec = make_spec(tmp_path)
    tuned(spec, tmp_path / "undisturbed")
    seed = next(r.seed for r in stored(tmp_path / "undisturbed") if r.role is Role.PROOF_CANDIDATE)
    runner = Disturbed(which=lambda request: request.seed == seed)
    result = tuned(spec, tmp_path / "s", runner)
    assert runner.seeds == [seed]
    assert result.verdict is not None
    assert result.verdict.pairs_failed == 0

    def sides(folder: Path) -> list[tuple[Role, int | None, int]]:
        proof = (Role.PROOF_BASELINE, Role.PROOF_CANDIDATE)
        return [(row.role, row.pair, row.seed) for row in stored(folder) if row.role in proof]

    assert sides(tmp_path / "s") == sides(tmp_path / "undisturbed")


def test_a_run_that_was_disturbed_while_the_user_stopped_the_study_is_neither(
    tmp_path: Path,
) -> None:
    """A closed terminal, for instance, ends the driver and lsmtune at once."""
    runner, observer = Disturbed(which=of_trial(3)), Recorder()
    observer.stop_at = ("run_started", Role.TRIAL, 3)
    assert tuned(make_spec(tmp_path), tmp_path / "s", runner, observer).interrupted
    assert tuned(make_spec(tmp_path), tmp_path / "s").counts == {"ok": 8}
