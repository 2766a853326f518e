"""Signals to commands that measure and to their runs: nothing lost, doubled, blamed or left.

`docs/faults.md` has what many of them found, over all commands.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from kills import Session, commands, perform
from optuna.trial import TrialState

from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.store import Role

# The first of the signals by this seed are SIGKILL to the tuner, and to a run.
SEED = 2


@pytest.mark.engine
def test_six_signals_lose_nothing_blame_nobody_and_leave_nothing(
    driver: Path,
    leveldb_library: Path,
    rocksdb_library: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LSMTUNE_DRIVER", str(driver))
    monkeypatch.setenv("LSMTUNE_TEST_LEVELDB", str(leveldb_library))
    monkeypatch.setenv("LSMTUNE_TEST_ROCKSDB", str(rocksdb_library))
    chosen = {name: commands()[name] for name in ("tune, LevelDB", "sweep")}
    # Two sessions, or more: what came after the end of a short command is for the next one.
    sessions = list(perform(6, SEED, chosen, tmp_path, each=3, longest_stop_s=1.0))
    assert [session.faults for session in sessions] == [[]] * len(sessions)
    done = [blow for session in sessions for blow in session.done]
    assert len(done) == 6
    assert {blow.at_run for blow in done} == {False, True}
    for session in sessions[::2]:
        check_trials(session)


def check_trials(session: Session) -> None:
    """Both databases hold the same trials, each once."""
    with StudyFolder.open(session.home / session.command.store) as folder:
        trials = folder.optuna_study().trials
        measured = {row.trial for row in folder.measurements.of(Role.TRIAL)}
    assert [trial.number for trial in trials] == list(range(len(trials)))
    completed = {trial.number for trial in trials if trial.state is TrialState.COMPLETE}
    assert completed == measured
    others = [trial for trial in trials if trial.number not in completed]
    assert {trial.user_attrs["outcome"] for trial in others} <= {"put_back"}
    assert {trial.state for trial in others} <= {TrialState.FAIL}
