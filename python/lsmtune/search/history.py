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
from itertools import zip_longest

import numpy as np
import numpy.typing as npt
import scipy
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from lsmtune.search.in_memory_study import noise_of
from lsmtune.search.unit_space import BoolArray, FloatArray, UnitSpace

# How much worse than the worst value a failure counts, in units of the spread of values.
FAILURE_MARGIN = 0.1
JUDGED = (TrialState.COMPLETE, TrialState.PRUNED)


@dataclass(frozen=True)
class History:
    """The judged trials in order of number, and what else is not to be proposed again.

    `points` (n, dimensions), `targets` (n,) finite; `running` (m, dimensions): trials under way.
    `variances` (n,) are those of the targets as far as they are known, else 0; `runs` (n,) the
    number of runs of which each target is the mean. The `censored` (n,) have bounds as targets, the
    `failed` (n,) no value that counts.

    As they were told, else NaN: `values` (n,) of completed trials, whether they count or not;
    `seconds` and `run_seconds` (n,), see `ValueNoise`; `violations`, each (n,), by constraint.
    """

    points: FloatArray
    targets: FloatArray
    running: FloatArray
    variances: FloatArray
    runs: FloatArray
    censored: BoolArray
    failed: BoolArray
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

    def known(self) -> set[bytes]:
        """Every point that was tried or is under way, as `row.tobytes()`."""
        return {row.tobytes() for row in np.vstack([self.points, self.running])}


class HistoryReader:
    """Reads the history for one trial after another, and encodes each trial once.

    A judged trial never changes: what it says is kept, in arrays by its place among the trials, as
    long as the study shows the same object there.
    """

    def __init__(self, unit_space: UnitSpace) -> None:
        self._unit_space = unit_space
        self._seen: list[FrozenTrial] = []
        self._points = np.empty((0, unit_space.dimension_count))
        self._facts = np.empty((0, len(_FACTS)))
        self._violations: dict[str, FloatArray] = {}

    def read(
        self, trials: Sequence[FrozenTrial], number: int, direction: StudyDirection
    ) -> History:
        """The history for trial `number`, which is not part of it."""
        self._take(trials)
        judged, is_pruned, value, bound, *_ = self._facts[: len(trials)].T
        rows = np.flatnonzero(judged > 0)
        pruned, bounds = is_pruned[rows] > 0, bound[rows]
        reporting = [
            (place, trials[row].intermediate_values)
            for place, row in enumerate(rows.tolist())
            if trials[row].intermediate_values
        ]
        running = [
            trials[row].params
            for row in np.flatnonzero(judged == 0).tolist()
            if trials[row].state == TrialState.RUNNING and trials[row].number != number
        ]
        variances, runs, seconds, run_seconds = self._facts[rows, 4:].T
        return History(
            points=self._points[rows],
            targets=_targets(bounds, pruned, reporting, direction),
            censored=pruned & np.isfinite(bounds),
            failed=~np.isfinite(bounds),
            running=self._unit_space.encode(running),
            variances=_variances(bounds, variances),
            runs=runs,
            values=value[rows],
            seconds=seconds,
            run_seconds=run_seconds,
            violations={text: self._violations[text][rows] for text in sorted(self._violations)},
        )

    def _take(self, trials: Sequence[FrozenTrial]) -> None:
        """Read those trials that are not the same objects as before."""
        room = len(self._facts)
        if len(trials) > room:
            more = max(len(trials), 2 * room) - room
            self._points = np.pad(self._points, ((0, more), (0, 0)), constant_values=np.nan)
            self._facts = np.pad(self._facts, ((0, more), (0, 0)))
            for text, amounts in self._violations.items():
                self._violations[text] = np.pad(amounts, (0, more), constant_values=np.nan)
        both = enumerate(zip_longest(trials, self._seen[: len(trials)]))
        new = [place for place, (trial, seen) in both if trial is not seen]
        judged = [place for place in new if trials[place].state in JUDGED]
        self._facts[new] = 0.0
        for amounts in self._violations.values():
            amounts[new] = np.nan
        self._points[judged] = self._unit_space.encode([trials[place].params for place in judged])
        for place in judged:
            trial = trials[place]
            self._facts[place] = _facts(trial)
            for text, amount in trial.constraints.items():
                if text not in self._violations:
                    self._violations[text] = np.full(len(self._facts), np.nan)
                self._violations[text][place] = amount
        self._seen[: len(trials)] = trials


# What is kept of each trial, as numbers.
_FACTS = ("judged", "pruned", "value", "bound", "variance", "runs", "seconds", "run_seconds")


def _facts(trial: FrozenTrial) -> tuple[float, ...]:
    """What a judged trial says, in the order of `_FACTS`."""
    is_complete = trial.state == TrialState.COMPLETE
    value = float(trial.values[0]) if is_complete else math.nan
    noise = noise_of(trial)
    seconds = (noise and noise.seconds) or math.nan
    run_seconds = (noise and noise.run_seconds) or math.nan
    told = (noise.variance, noise.runs) if noise and is_complete else (0.0, 1)
    return 1.0, not is_complete, value, _value(trial), *told, seconds, run_seconds


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
    values = np.array([_value(trial) for trial in trials])
    pruned = np.array([trial.state == TrialState.PRUNED for trial in trials], dtype=np.bool_)
    reporting = [(place, trial.intermediate_values) for place, trial in enumerate(trials)]
    return _targets(values, pruned, reporting, direction)


def _targets(
    values: FloatArray,
    pruned: BoolArray,
    reporting: Sequence[tuple[int, Mapping[int, float]]],
    direction: StudyDirection,
) -> FloatArray:
    """Targets of `values` (n,); `reporting` has places, and what those trials reported by step."""
    reached = np.full(len(values), np.nan)
    known_values = np.isfinite(values)
    told = [(place, reports) for place, reports in reporting if reports and known_values[place]]
    whole = [(reports, float(values[place])) for place, reports in told if not pruned[place]]
    in_logs = _in_logs(values)
    steps = {place: max(reports) for place, reports in told if pruned[place]}
    gained = {step: _gained(step, whole, in_logs) for step in set(steps.values())}
    for place, step in steps.items():
        gain = gained[step]
        if gain is not None:
            reached[place] = values[place] * math.exp(gain) if in_logs else values[place] + gain
    known_end = np.isfinite(reached)
    return make_targets(
        np.where(known_end, reached, values),
        pruned & ~known_end,
        maximize=direction == StudyDirection.MAXIMIZE,
    )


def _gained(
    step: int, whole: Sequence[tuple[Mapping[int, float], float]], in_logs: bool
) -> float | None:
    """What trials with a value, the `whole` ones, gained from `step` to their end: the median.

    As a difference, of logarithms where targets are; None where no trial tells.
    """
    pairs = [(reports[step], end) for reports, end in whole if step in reports]
    if not pairs or (in_logs and min(reported for reported, _ in pairs) <= 0):
        return None
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
