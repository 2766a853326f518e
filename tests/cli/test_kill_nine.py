"""`kill -9` of the real tuner, 20 times: no trial lost or counted twice, nothing left behind."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from killed_tuner import KilledTuner, moments, stored_rows, tagged_environment
from optuna.trial import FrozenTrial, TrialState

from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.store import Role

KILLS = 20
TRIALS = 24
PAIRS = 6  # the least, after which a baseline that is so slow has lost
RUNS = 1 + TRIALS + 2 * PAIRS
SEED = 20261121

# The baseline's buffer is the smallest that LevelDB takes, so that the study comes to a proof.
STUDY = """\
version: 1
name: killed
engine: {{name: leveldb, library: {library}}}
workload: {{name: fillrandom, num: 10000}}
baseline: {{write_buffer_size: 64KiB}}
space:
  write_buffer_size: {{type: int, low: 1MiB, high: 16MiB, step: 64KiB}}
budget: {{trials: {trials}}}
proof: {{pairs: {pairs}}}
noise: {{calibration: 0, anchors: 6, repeats: 2}}
"""


@pytest.fixture
def tuner(driver: Path, leveldb_library: Path, tmp_path: Path) -> KilledTuner:
    study = tmp_path / "study.yaml"
    study.write_text(STUDY.format(library=leveldb_library, trials=TRIALS, pairs=PAIRS))
    return KilledTuner(study, tagged_environment(str(tmp_path), LSMTUNE_DRIVER=str(driver)))


@pytest.mark.engine
def test_twenty_kills_lose_nothing_count_nothing_twice_and_leave_nothing(
    tuner: KilledTuner,
) -> None:
    for wanted, delay_s in moments(KILLS, RUNS, SEED):
        tuner.kill(wanted, delay_s)
    out = tuner.finish()
    assert tuner.statuses == [-signal.SIGKILL] * KILLS + [0], tuner.log.read_text()
    assert tuner.stored_at_kill == sorted(tuner.stored_at_kill)
    assert len(set(tuner.stored_at_kill)) > KILLS / 3, "the kills were not spread over the study"
    assert "tuned vs default: " in out or "tuned vs baseline: " in out
    assert list((tuner.folder / "runs").iterdir()) == []
    check_study(tuner)


def check_study(tuner: KilledTuner) -> None:
    """Both databases hold the same trials, each once; the proof is whole."""
    with StudyFolder.open(tuner.folder) as folder:
        trials = folder.optuna_study().trials
        measured = {row.trial for row in folder.measurements.of(Role.TRIAL)}
        verdict = folder.measurements.verdict()
    check_trials(trials, measured)
    assert len(measured) == TRIALS
    assert verdict is not None
    assert verdict.pairs == PAIRS
    places = stored_rows(tuner.folder)
    assert [role for role, _, _, _ in places].count("baseline") == 1
    document = json.loads((tuner.folder / "result" / "result.json").read_text())
    assert (document["trials"], document["outcomes"]) == (TRIALS, {"ok": TRIALS})


def check_trials(trials: list[FrozenTrial], measured: set[int | None]) -> None:
    assert [trial.number for trial in trials] == list(range(len(trials)))
    completed = {trial.number for trial in trials if trial.state is TrialState.COMPLETE}
    assert completed == measured
    others = [trial for trial in trials if trial.number not in completed]
    assert {trial.user_attrs["outcome"] for trial in others} <= {"put_back"}
    assert {trial.state for trial in others} <= {TrialState.FAIL}
