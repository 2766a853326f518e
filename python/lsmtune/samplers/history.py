"""What a model learns from: the trials of a study as points and targets, lower targets better.

Every trial that was judged counts (`samplers.kind` says what the states mean):

| trial | target |
|---|---|
| completed | its value |
| pruned | the last value it reported, but no better than the median of the completed ones |
| failed, or breaking a constraint | worse than the worst one seen, by a tenth of the spread |

A completed trial's value is a mean over its runs, and how sure it is comes with it.

A pruned trial was stopped because it did worse than others, and a value reported early can look
better than any final one: hence the bound. Where all values are positive their logarithm is taken:
the metrics of an engine (throughput, latency, amplification) are compared by ratios, and their
noise is a ratio too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from lsmtune.samplers.column import FloatArray
from lsmtune.samplers.cube import Cube
from lsmtune.samplers.mirror import ValueNoise, noise_of

# How much worse than the worst value a failure counts, in units of the spread of values.
FAILURE_MARGIN = 0.1
JUDGED = (TrialState.COMPLETE, TrialState.PRUNED)


@dataclass(frozen=True)
class History:
    """The judged trials in order of number, and what else is not to be proposed again.

    `points` (n, dimensions), `targets` (n,) finite; `running` (m, dimensions): trials under way.
    `variances` (n,) are those of the targets as far as they are known, else 0; `runs` (n,) the
    number of runs of which each target is the mean.
    """

    points: FloatArray
    targets: FloatArray
    running: FloatArray
    variances: FloatArray
    runs: FloatArray

    def __len__(self) -> int:
        return len(self.targets)

    def with_running(self) -> tuple[FloatArray, FloatArray]:
        """Points and targets, trials under way taken as middling, so that none is asked twice.

        (The "constant liar" of Ginsbourger, Le Riche and Carraro 2010, with the median as its lie.)
        """
        lies = np.full(len(self.running), np.median(self.targets))
        return np.vstack([self.points, self.running]), np.concatenate([self.targets, lies])

    def noise_with_running(self) -> tuple[FloatArray, FloatArray]:
        """Variances and runs for the rows of `with_running`; lies are sure."""
        under_way = len(self.running)
        return (
            np.concatenate([self.variances, np.zeros(under_way)]),
            np.concatenate([self.runs, np.ones(under_way)]),
        )

    def known(self) -> set[bytes]:
        """Every point that was tried or is under way, as `row.tobytes()`."""
        return {row.tobytes() for row in np.vstack([self.points, self.running])}


@dataclass(frozen=True)
class _Entry:
    """One judged trial: its point and its value, NaN where it has none; `censored` if pruned."""

    trial: FrozenTrial
    point: FloatArray
    value: float
    censored: bool
    noise: ValueNoise | None


class HistoryReader:
    """Reads the history for one trial after another, and encodes each trial once.

    A judged trial never changes: its entry is kept as long as the study shows the same object.
    """

    def __init__(self, cube: Cube) -> None:
        self._cube = cube
        self._entries: dict[int, _Entry] = {}

    def read(
        self, trials: Sequence[FrozenTrial], number: int, direction: StudyDirection
    ) -> History:
        """The history for trial `number`, which is not part of it."""
        finished = [trial for trial in trials if trial.state in JUDGED]
        self._encode_new(finished)
        entries = [self._entries[trial.number] for trial in finished]
        running = [
            trial.params
            for trial in trials
            if trial.state == TrialState.RUNNING and trial.number != number
        ]
        shape = (len(entries), self._cube.dimensions)
        values = np.array([entry.value for entry in entries])
        censored = np.array([entry.censored for entry in entries], dtype=np.bool_)
        return History(
            points=np.array([entry.point for entry in entries]).reshape(shape),
            targets=make_targets(values, censored, maximize=direction == StudyDirection.MAXIMIZE),
            running=self._cube.encode(running),
            variances=_variances(values, [entry.noise for entry in entries]),
            runs=np.array(
                [entry.noise.runs if entry.noise else 1 for entry in entries], np.float64
            ),
        )

    def _encode_new(self, finished: Sequence[FrozenTrial]) -> None:
        known = self._entries
        new = [t for t in finished if t.number not in known or known[t.number].trial is not t]
        for trial, point in zip(new, self._cube.encode([t.params for t in new]), strict=True):
            censored = trial.state == TrialState.PRUNED
            noise = noise_of(trial) if trial.state == TrialState.COMPLETE else None
            known[trial.number] = _Entry(trial, point, _value(trial), censored, noise)


def _value(trial: FrozenTrial) -> float:
    """The value that a trial stands for, or NaN."""
    if any(violation > 0 for violation in trial.constraints.values()):
        return math.nan
    if trial.state == TrialState.COMPLETE:
        return float(trial.values[0])
    if trial.state == TrialState.PRUNED and trial.intermediate_values:
        return float(trial.intermediate_values[max(trial.intermediate_values)])
    return math.nan


def targets_of(trials: Sequence[FrozenTrial], direction: StudyDirection) -> FloatArray:
    """The targets of judged trials, seen by themselves; shape (len(trials),)."""
    return make_targets(
        np.array([_value(trial) for trial in trials]),
        np.array([trial.state == TrialState.PRUNED for trial in trials], dtype=np.bool_),
        maximize=direction == StudyDirection.MAXIMIZE,
    )


def _in_logs(values: FloatArray) -> bool:
    """Whether the targets of these values are their logarithms."""
    return bool((values[np.isfinite(values)] > 0).all())


def _variances(values: FloatArray, noises: Sequence[ValueNoise | None]) -> FloatArray:
    """The variances of the targets of `values` (n,), 0 where there is no value or none is known.

    The variance of a logarithm is, to first order, that of the value over its square.
    """
    found = np.array([0.0 if noise is None else noise.variance for noise in noises])
    found = np.where(np.isfinite(values), found, 0.0)
    if not _in_logs(values):
        return found
    variances: FloatArray = np.zeros(len(found))
    np.divide(found, values**2, out=variances, where=found > 0)
    return variances


def make_targets(
    values: FloatArray, censored: npt.NDArray[np.bool_], *, maximize: bool
) -> FloatArray:
    """Finite targets of `values` (n,), lower is better; see the table of this module.

    `values` are NaN (or infinite) where a trial has none.
    """
    has_value = np.isfinite(values)
    if not has_value.any():
        return np.zeros(len(values))
    targets = np.where(has_value, values, np.nan)
    if _in_logs(values):
        targets = np.log(targets)
    if maximize:
        targets = -targets
    complete = has_value & ~censored
    if complete.any():
        middling = np.median(targets[complete])
        targets = np.where(censored, np.maximum(targets, middling), targets)
    worst = np.max(targets[has_value])
    # Where all values are alike any distance will do; failing is still worse.
    margin = FAILURE_MARGIN * (worst - np.min(targets[has_value])) or 1.0
    return np.where(has_value, targets, worst + margin)
