"""What samplers with a model learn of the trials so far: points, and a target for each.

A trial's target is what a model learns of it, lower is better. Every trial that was judged counts
(`search.sampler` says what the states mean):

| trial | target |
|---|---|
| completed | its value |
| pruned | a bound: at least as bad as this, by the last value that it reported |
| failed, or breaking a constraint | worse than the worst one, by a tenth of the spread |

A completed trial's value is a mean over its runs, and how sure it is comes with it. A pruned trial
is *censored*: it was stopped because it did worse than others, and nobody knows how bad it would
have been. Values at a step are not those at the end, as the beginning of a run and a run on fewer
data are faster or slower than the whole. So its bound is what it reported, moved by how far the
completed trials that reported at the same step came from there (the median); where there is none
of these, what it reported, but no better than the median of the completed ones. Models replace a
bound by what they expect of a value beyond it (`impute_censored`).

Where all values are positive their logarithm is taken: the metrics of an engine (throughput,
latency, amplification) are compared by ratios, and their noise is a ratio too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from lsmtune.search.in_memory_study import ValueNoise, noise_of
from lsmtune.search.unit_space import BoolArray, FloatArray, UnitSpace

# How much worse than the worst value a failure counts, in units of the spread of values.
FAILURE_MARGIN = 0.1
JUDGED = (TrialState.COMPLETE, TrialState.PRUNED)


@dataclass(frozen=True)
class History:
    """The judged trials in order of number, and what else is not to be proposed again.

    `points` (n, dimensions), `targets` (n,) finite; `running` (m, dimensions): trials under way.
    `variances` (n,) are those of the targets as far as they are known, else 0; `runs` (n,) the
    number of runs of which each target is the mean. The `censored` (n,) have bounds as targets.
    `in_logs`: targets, variances and bounds are of logarithms.

    As they were told, else NaN: `values` (n,) of completed trials, whether they count or not;
    `seconds` and `run_seconds` (n,), see `ValueNoise`; `violations`, each (n,), by constraint.
    """

    points: FloatArray
    targets: FloatArray
    running: FloatArray
    variances: FloatArray
    runs: FloatArray
    censored: BoolArray
    in_logs: bool
    values: FloatArray
    seconds: FloatArray
    run_seconds: FloatArray
    violations: Mapping[str, FloatArray]

    def __len__(self) -> int:
        return len(self.targets)

    def with_running(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Points, targets, variances and runs, trials under way taken as middling and sure.

        So none is asked twice. (The "constant liar" of Ginsbourger, Le Riche and Carraro 2010, with
        the median as its lie.)
        """
        under_way = len(self.running)
        return (
            np.vstack([self.points, self.running]),
            np.concatenate([self.targets, np.full(under_way, np.median(self.targets))]),
            np.concatenate([self.variances, np.zeros(under_way)]),
            np.concatenate([self.runs, np.ones(under_way)]),
        )

    def tried(self) -> set[bytes]:
        """Every point that was tried or is under way, as `row.tobytes()`."""
        return {row.tobytes() for row in np.vstack([self.points, self.running])}


class HistoryReader:
    """Reads the history for one trial after another, and encodes each trial once.

    A judged trial never changes: what it says is kept as long as the study shows the same object.
    """

    def __init__(self, unit_space: UnitSpace) -> None:
        self._unit_space = unit_space
        self._said: dict[int, _Said] = {}

    def read(
        self, trials: Sequence[FrozenTrial], number: int, direction: StudyDirection
    ) -> History:
        """The history for trial `number`, which is not part of it."""
        judged = [trial for trial in trials if trial.state in JUDGED]
        known = self._said
        new = [t for t in judged if t.number not in known or known[t.number].trial is not t]
        points = self._unit_space.encode([trial.params for trial in new])
        for trial, point in zip(new, points, strict=True):
            known[trial.number] = _said(trial, point)
        said = [known[trial.number] for trial in judged]

        def column(name: str) -> FloatArray:
            return np.array([getattr(each, name) for each in said], dtype=np.float64)

        counted, reports = column("counted"), [trial.intermediate_values for trial in judged]
        pruned = np.array([trial.state == TrialState.PRUNED for trial in judged], dtype=np.bool_)
        running = [t.params for t in trials if t.state == TrialState.RUNNING and t.number != number]
        constraints = sorted({text for each in said for text in each.violations})
        return History(
            points=np.array([each.point for each in said]).reshape(len(said), points.shape[1]),
            targets=make_targets(counted, pruned, reports, direction),
            censored=pruned & np.isfinite(counted),
            in_logs=_in_logs(counted),
            running=self._unit_space.encode(running),
            variances=_variances(counted, column("variance")),
            runs=column("runs"),
            values=column("value"),
            seconds=column("seconds"),
            run_seconds=column("run_seconds"),
            violations={
                text: np.array([each.violations.get(text, math.nan) for each in said])
                for text in constraints
            },
        )


class _Said(NamedTuple):
    """What a judged trial says; NaN where it does not."""

    trial: FrozenTrial
    point: FloatArray
    violations: Mapping[str, float]  # by how much it breaks each constraint
    value: float  # of a completed trial
    counted: float  # the value that counts for its target
    variance: float
    runs: int
    seconds: float
    run_seconds: float


def _said(trial: FrozenTrial, point: FloatArray) -> _Said:
    noise, is_complete = noise_of(trial) or ValueNoise(0.0, 1), trial.state == TrialState.COMPLETE
    return _Said(
        trial=trial,
        point=point,
        violations=trial.constraints,
        value=float(trial.values[0]) if is_complete else math.nan,
        counted=_value(trial),
        variance=noise.variance if is_complete else 0.0,
        runs=noise.runs if is_complete else 1,
        seconds=noise.seconds or math.nan,
        run_seconds=noise.run_seconds or math.nan,
    )


def _value(trial: FrozenTrial) -> float:
    """The value that counts for the target of a judged trial, or NaN."""
    if any(violation > 0 for violation in trial.constraints.values()):
        return math.nan
    if trial.state == TrialState.COMPLETE:
        return float(trial.values[0])
    if trial.state == TrialState.PRUNED and trial.intermediate_values:
        return float(trial.intermediate_values[max(trial.intermediate_values)])
    return math.nan


def targets_of(trials: Sequence[FrozenTrial], direction: StudyDirection) -> FloatArray:
    """The targets of judged trials, seen by themselves; shape (len(trials),)."""
    values = np.array([_value(trial) for trial in trials])
    pruned = np.array([trial.state == TrialState.PRUNED for trial in trials], dtype=np.bool_)
    return make_targets(values, pruned, [trial.intermediate_values for trial in trials], direction)


def make_targets(
    values: FloatArray,
    pruned: BoolArray,
    reports: Sequence[Mapping[int, float]],
    direction: StudyDirection,
) -> FloatArray:
    """Finite targets of `values` (n,), lower is better; see the table of this module.

    `values` are NaN (or infinite) where a trial has none; `reports` has what each trial reported,
    by step.
    """
    in_logs = _in_logs(values)
    ends = _ends(values, pruned, reports, in_logs)
    has_end = np.isfinite(ends)
    values, censored = np.where(has_end, ends, values), pruned & ~has_end
    has_value = np.isfinite(values)
    if not has_value.any():
        return np.zeros(len(values))
    targets = np.where(has_value, values, np.nan)
    if in_logs:
        targets = np.log(targets)
    if direction == StudyDirection.MAXIMIZE:
        targets = -targets
    complete = has_value & ~censored
    if complete.any():
        middling = np.median(targets[complete])
        targets = np.where(censored, np.maximum(targets, middling), targets)
    worst = np.max(targets[has_value])
    # Where all values are alike any distance will do; failing is still worse.
    margin = FAILURE_MARGIN * (worst - np.min(targets[has_value])) or 1.0
    return np.where(has_value, targets, worst + margin)


def _ends(
    values: FloatArray, pruned: BoolArray, reports: Sequence[Mapping[int, float]], in_logs: bool
) -> FloatArray:
    """What each pruned trial would have come to by its last value; NaN where nobody knows it."""
    ends = np.full(len(values), np.nan)
    useful = [place for place, known in enumerate(np.isfinite(values)) if known and reports[place]]
    whole = [(reports[place], float(values[place])) for place in useful if not pruned[place]]
    steps = {place: max(reports[place]) for place in useful if pruned[place]}
    gained = {step: _gained(step, whole, in_logs) for step in set(steps.values())}
    for place, step in steps.items():
        gain, value = gained[step], values[place]
        ends[place] = value * math.exp(gain) if in_logs else value + gain
    return ends


def _gained(step: int, whole: Sequence[tuple[Mapping[int, float], float]], in_logs: bool) -> float:
    """What trials with a value, the `whole` ones, gained from `step` to their end: the median.

    As a difference, of logarithms where targets are; NaN where no trial tells.
    """
    pairs = [(reports[step], end) for reports, end in whole if step in reports]
    if not pairs or (in_logs and min(reported for reported, _ in pairs) <= 0):
        return math.nan
    if in_logs:
        return float(np.median([math.log(end / reported) for reported, end in pairs]))
    return float(np.median([end - reported for reported, end in pairs]))


def _in_logs(values: FloatArray) -> bool:
    """Whether the targets of these values are their logarithms."""
    return bool((values[np.isfinite(values)] > 0).all())


def _variances(values: FloatArray, of_values: FloatArray) -> FloatArray:
    """The variances of the targets of `values` (n,), 0 where there is no value or none is known.

    The variance of a logarithm is, to first order, that of the value over its square.
    """
    of_values = np.where(np.isfinite(values), of_values, 0.0)
    if not _in_logs(values):
        return of_values
    of_logs: FloatArray = np.zeros(len(of_values))
    np.divide(of_values, values**2, out=of_logs, where=of_values > 0)
    return of_logs


def impute_censored(
    bounds: FloatArray, mean: FloatArray, deviation: FloatArray, worst: float
) -> FloatArray:
    """What to take censored targets for: the mean of normal ones beyond their `bounds`; all (n,).

    `mean` and `deviation` are what a model of the other trials expects there. No better than the
    bound, and no worse than `worst`, or than the bound where that is. (J. Schmee and G. J. Hahn,
    "A simple method for regression analysis with censored data", Technometrics 21, 1979; F.
    Hutter, H. Hoos and K. Leyton-Brown, "Bayesian optimization with censored response data",
    arXiv:1310.1947.)
    """
    z = (bounds - mean) / deviation
    # phi(z) / (1 - Phi(z)), without loss of digits far out.
    hazard = math.sqrt(2 / math.pi) / scipy.special.erfcx(z / math.sqrt(2))
    expected: FloatArray = np.clip(mean + deviation * hazard, bounds, np.maximum(worst, bounds))
    return expected
