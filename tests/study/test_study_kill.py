"""SIGKILL of the tuner at random moments: nothing lost, nothing counted twice, nothing left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from optuna.trial import FrozenTrial, TrialState
from study_parts import make_spec

import lsmtune
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.space.space import Space
from patience import PATIENCE_S


def killed_study(
    home: Path, *, kills: int, seed: int, trials: int, pairs: int, storage: str = ""
) -> dict[str, Any]:
    harness = Path(__file__).with_name("kill_harness.py")
    places = [Path(lsmtune.__file__).parent.parent, harness.parent, os.environ.get("PYTHONPATH")]
    python_path = os.pathsep.join(str(place) for place in places if place)
    done = subprocess.run(
        [sys.executable, str(harness), str(home), *map(str, (kills, seed, trials, pairs)), storage],
        env={**os.environ, "PYTHONPATH": python_path},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def check_trials(
    trials: list[FrozenTrial], rows: list[StoredMeasurement], space: Space, wanted: int
) -> None:
    """Every trial is finished, and the completed ones are exactly those measured."""
    measured = {row.trial: row for row in rows if row.role is Role.TRIAL and not row.repeat}
    assert len(measured) == wanted
    assert {row.trial for row in rows if row.repeat and row.role is Role.TRIAL} <= measured.keys()
    assert {trial.state for trial in trials} <= {TrialState.COMPLETE, TrialState.FAIL}
    completed = {trial.number: trial for trial in trials if trial.state is TrialState.COMPLETE}
    assert completed.keys() == measured.keys()
    for number, trial in completed.items():
        phase = measured[number].measurement.phases[-1]
        assert trial.value == phase.sustained_throughput_ops_s
        assert trial.params == space.variables_of(measured[number].config.options)


def check_retries(trials: list[FrozenTrial]) -> None:
    """Each trial that was cut off after it had values was queued again, once."""
    retries = Counter(t.user_attrs["retry_of"] for t in trials if "retry_of" in t.user_attrs)
    assert set(retries.values()) <= {1}
    for trial in trials:
        if trial.state is TrialState.FAIL and trial.params:
            assert trial.number in retries


@pytest.mark.parametrize(
    ("kills", "trials", "pairs"),
    [
        pytest.param(20, 60, 6, id="in the search"),
        pytest.param(10, 3, 40, id="in the proof"),
    ],
)
def test_kills_lose_nothing_count_nothing_twice_and_leave_nothing(
    tmp_path: Path, kills: int, trials: int, pairs: int
) -> None:
    report = killed_study(tmp_path, kills=kills, seed=20261121, trials=trials, pairs=pairs)
    counted = check_killed(tmp_path, report, kills, trials, pairs)
    assert counted[Role.ANCHOR] == (7 if trials == 60 else 0)
    assert counted[Role.TRIAL] > trials or trials < 60, "some were repeated"


def test_kills_lose_nothing_of_a_study_on_a_server(tmp_path: Path, server: str) -> None:
    report = killed_study(tmp_path, kills=8, seed=7, trials=16, pairs=6, storage=server)
    check_killed(tmp_path, report, 8, 16, 6)
    files = {path.name for path in (tmp_path / "s").iterdir()}
    assert "server.json" in files
    assert not files & {"study.db", "measurements.db"}


def check_killed(
    home: Path, report: dict[str, Any], kills: int, trials: int, pairs: int
) -> Counter[Role]:
    """What must hold of a study that was killed so often, and then ended; its runs by role."""
    # A child that failed would have ended with 1, one that was done with 0.
    assert report["ends"] == [-signal.SIGKILL] * kills
    assert report["last"] == 0
    # The kills came in the middle of the study, not before or after it.
    assert len(set(report["progress"])) > kills / 3
    with StudyFolder.open(home / "s") as folder:
        rows = folder.measurements.all()
        asked = folder.optuna_study().trials
        verdict = folder.measurements.verdict()
    check_trials(asked, rows, make_spec(home).space, trials)
    check_retries(asked)
    assert verdict is not None
    assert verdict.pairs == pairs
    places = Counter(f"{row.role} {row.trial} {row.pair} {row.repeat}" for row in rows)
    told = Counter((home / "told.log").read_text().splitlines())
    assert not told - places, "a run that was told as stored is lost"
    assert set(places.values()) == {1}
    counted = Counter(row.role for row in rows)
    assert counted[Role.BASELINE] == 1
    assert [row.repeat for row in rows if row.role is Role.ANCHOR] == list(
        range(counted[Role.ANCHOR])
    )
    assert list((home / "s" / "runs").iterdir()) == []
    assert (home / "s" / "result" / "result.json").is_file()
    return counted
