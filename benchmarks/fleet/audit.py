"""What a study on simulated hosts stored, compared with what its runner noted on the hosts."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.fleet.on_ray import LATE_S

_GIVEN_UP = re.compile(r"(\S+) is given up")
# A run notes that it begins a moment after the time that it reports.
_SAME_S = 0.5


@dataclass
class Run:
    """As its host noted it, by the wall clock; `ended` where it was not killed.

    `pid` is that of the actor.
    """

    host: str
    pid: int
    seed: int
    began_unix_s: float
    last_unix_s: float
    ended: bool = False


def noted(log: Path) -> list[Run]:
    """The runs in the `log` of a SimulatedRunner."""
    runs: dict[str, Run] = {}
    for line in log.read_text().splitlines():
        try:
            said = json.loads(line)
        except ValueError:  # cut off by a kill
            continue
        directory, now_s = Path(said["directory"]), said["unix_s"]
        host = directory.parents[1].name
        began = Run(host, said["pid"], said["seed"], now_s, now_s)
        run = runs.setdefault(str(directory), began)
        run.last_unix_s = now_s
        run.ended = said["what"] not in ("began", "lasts")
    return list(runs.values())


def overlaps(runs: Sequence[Run]) -> int:
    """How many began while another of the same host lasted."""
    until_s: dict[str, float] = defaultdict(float)
    count = 0
    for run in sorted(runs, key=lambda run: run.began_unix_s):
        count += run.began_unix_s < until_s[run.host]
        until_s[run.host] = max(until_s[run.host], run.last_unix_s)
    return count


def given_up(log: Path) -> list[tuple[str, float, str]]:
    """Which host was given up, when, and why, in the `log` of what the user was told.

    The reason is without names and numbers.
    """
    found = []
    for line in map(json.loads, log.read_text().splitlines()):
        if match := _GIVEN_UP.match(line["text"]):
            reason = re.split(r"[:.]", line["text"].split(": ", 1)[1])[0]
            found.append((match[1], line["unix_s"], reason))
    return found


def late_runs(
    runs: Sequence[Run], ends: Sequence[tuple[str, float, str]]
) -> list[tuple[Run, float]]:
    """Those that ended after their actor was given up, with how many seconds after that.

    An actor that was given up is never asked again; a host goes on with a new one.
    """
    first_s: dict[tuple[str, int], float] = {}
    for run in sorted(runs, key=lambda run: run.began_unix_s):
        first_s.setdefault((run.host, run.pid), run.began_unix_s)
    found = []
    for run in runs:
        began_s = first_s[run.host, run.pid]
        since = [t for host, t, _ in ends if host == run.host and began_s < t < run.last_unix_s]
        if run.ended and since:
            found.append((run, run.last_unix_s - min(since)))
    return found


def audited(base: Path, trials: int, *, all_arrive: bool = False) -> dict[str, Any]:
    """All of it, for the study in `base`; what must not be is in `faults`, each a number.

    `all_arrive`: nothing kept an answer from coming to the tuner, so that each late one counts.
    """
    tuned = json.loads((base / "tuned.json").read_text())
    with StudyFolder.open(base / "study") as folder:
        rows = folder.measurements.all()
        study = folder.optuna_study().trials
    runs, ends = noted(base / "runs.jsonl"), given_up(base / "told.jsonl")
    found = [_run_of(row, runs) for row in rows]
    stored = Counter(id(run) for run in found if run is not None)
    late = late_runs(runs, ends)
    # Its actor is killed after LATE_S, and nobody counts when the tuner has ended.
    ended_s = tuned["ended_unix_s"]
    due = [run for run, late_s in late if late_s < LATE_S and run.last_unix_s < ended_s]
    numbers = {row.trial for row in rows if row.role is Role.TRIAL}
    complete = [trial for trial in study if trial.state is TrialState.COMPLETE]
    # A trial that is put back fails, and its configuration comes again under another number.
    measured = {_values(trial) for trial in complete}
    put_back = [trial for trial in study if trial.state is TrialState.FAIL]
    places = Counter(map(_place, rows))
    return {
        "trials": len(numbers),
        "trials_put_back": len(put_back),
        "runs_begun": len(runs),
        "runs_ended": sum(run.ended for run in runs),
        "runs_stored": len(rows),
        "hosts_given_up": len(ends),
        "why": Counter(reason for _, _, reason in ends),
        "runs_ended_after_their_host_was_given_up": len(late),
        "ended_so_late_s": sorted(round(late_s, 1) for _, late_s in late),
        "in_time_to_be_counted": len(due),
        "faults": {
            "trials_lost": trials - len(numbers & {trial.number for trial in complete}),
            "trials_too_many": max(len(numbers), len(complete)) - trials,
            "trials_left_running": sum(trial.state is TrialState.RUNNING for trial in study),
            "put_back_and_never_measured": sum(_values(t) not in measured for t in put_back),
            "rows_doubled": sum(count - 1 for count in places.values()),
            "runs_stored_twice": sum(count - 1 for count in stored.values()),
            "rows_without_a_run": sum(run is None for run in found),
            "late_runs_stored": sum(id(run) in stored for run, _ in late),
            "late_runs_not_counted": max(0, len(due) - tuned["discarded"]) if all_arrive else 0,
            "runs_beside_another": overlaps(runs),
        },
        **tuned,
    }


def _values(trial: FrozenTrial) -> frozenset[tuple[str, object]]:
    return frozenset(trial.params.items())


def _run_of(row: StoredMeasurement, runs: Sequence[Run]) -> Run | None:
    """The run that `row` tells of."""
    began_s = row.measurement.started_unix_s
    for run in runs:
        same = (run.host, run.seed) == (row.measurement.host, row.seed)
        if same and run.ended and 0.0 <= run.began_unix_s - began_s < _SAME_S:
            return run
    return None


def _place(row: StoredMeasurement) -> tuple[object, ...]:
    """What one row alone may have."""
    host = "" if row.role is Role.TRIAL else row.measurement.host
    return row.role, row.trial, row.repeat, row.pair, row.workload, host
