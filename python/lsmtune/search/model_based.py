"""What samplers with a model share: the history as points and targets, and their candidates.

A trial's target is what a model learns of it, lower is better. Every trial that was judged counts
(`search.sampler` says what the states mean):

| trial | target |
|---|---|
| completed | its value |
| pruned | the last value it reported, but no better than the median of the completed ones |
| failed, or breaking a constraint | worse than the worst one, by a tenth of the spread |

A completed trial's value is a mean over its runs, and how sure it is comes with it. A pruned trial
was stopped because it did worse than others, and a value reported early can look better than any
final one: hence the bound. Where all values are positive their logarithm is taken: the metrics of
an engine (throughput, latency, amplification) are compared by ratios, and their noise is a ratio
too.

Candidates are ranked by a score instead of found by following gradients: half of the options of an
engine are categorical, stepped or conditional, and a tree has no gradient.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from lsmtune.search.in_memory_study import ValueNoise, noise_of
from lsmtune.search.sampler import SamplerContext, generator_of_trial
from lsmtune.search.unit_space import FloatArray, UnitSpace, make_dimension, make_unit_space


class UnitSpaceSampler(BaseSampler):
    """Asks `propose` for points, trial by trial; random ones when that has no more."""

    def __init__(self, context: SamplerContext) -> None:
        self.unit_space: UnitSpace = make_unit_space(context.space)
        self.reader = HistoryReader(self.unit_space)
        self.seed = context.seed
        self._number = -1
        self._rng = generator_of_trial(context.seed, 0)
        self._proposals: Iterator[FloatArray] = iter(())

    @abstractmethod
    def propose(
        self, study: Study, trial: FrozenTrial, rng: np.random.Generator
    ) -> Iterator[FloatArray]:
        """Points (dimensions,) for `trial`, each to be tried when those before it were refused.

        `rng` is the random stream of the trial. What is expensive is best done once, before the
        first point is yielded.
        """

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Begin the random stream of the trial."""
        self._number = trial.number
        self._rng = generator_of_trial(self.seed, trial.number)
        self._proposals = self._without_end(study, trial)

    def infer_relative_search_space(
        self,
        study: Study,  # noqa: ARG002
        trial: FrozenTrial,  # noqa: ARG002
    ) -> dict[str, BaseDistribution]:
        """Every variable of the space."""
        return {d.name: d.distribution for d in self.unit_space.dimensions}

    def sample_relative(
        self,
        study: Study,
        trial: FrozenTrial,
        search_space: dict[str, BaseDistribution],  # noqa: ARG002
    ) -> dict[str, Any]:
        """The active variables of the next proposal for the trial."""
        if trial.number != self._number:
            self.before_trial(study, trial)
        return self.unit_space.decode(next(self._proposals))

    def sample_independent(
        self,
        study: Study,  # noqa: ARG002
        trial: FrozenTrial,  # noqa: ARG002
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """A random value, for a variable that the proposal did not know to be active."""
        return make_dimension(param_name, param_distribution).value_at(self._rng.random())

    def _without_end(self, study: Study, trial: FrozenTrial) -> Iterator[FloatArray]:
        yield from self.propose(study, trial, self._rng)
        while True:
            yield self.unit_space.sample(self._rng, 1)[0]


# --- the history

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

    def __init__(self, unit_space: UnitSpace) -> None:
        self._unit_space = unit_space
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
        shape = (len(entries), self._unit_space.dimension_count)
        values = np.array([entry.value for entry in entries])
        censored = np.array([entry.censored for entry in entries], dtype=np.bool_)
        return History(
            points=np.array([entry.point for entry in entries]).reshape(shape),
            targets=make_targets(values, censored, maximize=direction == StudyDirection.MAXIMIZE),
            running=self._unit_space.encode(running),
            variances=_variances(values, [entry.noise for entry in entries]),
            runs=np.array(
                [entry.noise.runs if entry.noise else 1 for entry in entries], np.float64
            ),
        )

    def _encode_new(self, finished: Sequence[FrozenTrial]) -> None:
        known = self._entries
        new = [t for t in finished if t.number not in known or known[t.number].trial is not t]
        for trial, point in zip(new, self._unit_space.encode([t.params for t in new]), strict=True):
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
    of_values = np.array([0.0 if noise is None else noise.variance for noise in noises])
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


# --- candidates

# Standard deviations of a changed coordinate, one drawn per neighbour: from a nudge to a leap.
STEP_SIZES = (0.02, 0.08, 0.3)
# The mean number of further coordinates that change together with the first one.
FURTHER_CHANGES = 1.0

Score = Callable[[FloatArray], FloatArray]


def neighbours(
    unit_space: UnitSpace, rng: np.random.Generator, points: FloatArray, count_each: int
) -> FloatArray:
    """`count_each` neighbours of every point; shape (len(points) * count_each, dimensions).

    One coordinate, and sometimes a few more, takes a normal step that is reflected at the bounds;
    an unordered one is drawn anew. A variable that becomes active by that is drawn at random.
    """
    full = np.where(np.isnan(points), rng.random(points.shape), points)
    origin = np.repeat(full, count_each, axis=0)
    total, count = origin.shape
    changes = rng.random(origin.shape) < FURTHER_CHANGES / count
    changes[np.arange(total), _active_dimension(rng, np.repeat(points, count_each, axis=0))] = True
    sizes = rng.choice(STEP_SIZES, size=(total, 1))
    # A step smaller than a cell would leave the value as it is.
    widths = np.array([1 / c.scale.cells if c.scale.cells else 0.0 for c in unit_space.dimensions])
    stepped = _reflected(origin + rng.normal(size=origin.shape) * np.maximum(sizes, widths))
    ordered = np.array([dimension.ordered for dimension in unit_space.dimensions])
    moved = np.where(ordered, stepped, rng.random(origin.shape))
    return unit_space.complete(np.where(changes, moved, origin))


def _active_dimension(rng: np.random.Generator, points: FloatArray) -> npt.NDArray[np.intp]:
    """One active coordinate of each point, each equally likely; shape (len(points),)."""
    chances = np.where(np.isnan(points), -1.0, rng.random(points.shape))
    chosen: npt.NDArray[np.intp] = np.argmax(chances, axis=1)
    return chosen


def _reflected(coordinates: FloatArray) -> FloatArray:
    """Coordinates folded back into [0, 1], as often as it takes."""
    folded = np.mod(coordinates, 2.0)
    return np.minimum(folded, 2.0 - folded)


def ranked(
    unit_space: UnitSpace,
    rng: np.random.Generator,
    score: Score,
    starts: FloatArray,
    known: Set[bytes],
    *,
    drawn: int,
    near: int,
    rounds: int,
    beam: int = 10,
) -> FloatArray:
    """New points, best score first; none is `known`, none comes twice.

    `drawn` random points and `near` neighbours of `starts` are scored (higher is better); then, in
    `rounds` rounds, `near` neighbours of the `beam` best so far. Shape (n, dimensions), n may be 0
    where a small space holds nothing new.
    """
    pool = [unit_space.sample(rng, drawn)]
    if len(starts):
        pool.append(neighbours(unit_space, rng, starts, max(1, near // len(starts))))
    points = np.vstack(pool)
    scores = score(points)
    for _ in range(rounds):
        best = points[np.argsort(-scores, kind="stable")[:beam]]
        more = neighbours(unit_space, rng, best, max(1, near // len(best)))
        points, scores = np.vstack([points, more]), np.concatenate([scores, score(more)])
    return _new_points(points[np.argsort(-scores, kind="stable")], known)


def _new_points(points: FloatArray, known: Set[bytes]) -> FloatArray:
    first: dict[bytes, int] = {}
    for index, row in enumerate(points):
        first.setdefault(row.tobytes(), index)
    return points[[index for row, index in first.items() if row not in known]]


# --- a sampler with a model


class ModelSampler(UnitSpaceSampler):
    """Draws at random until `startup_trials` trials were judged, and then now and then.

    `startup_trials` and `random_share` are settings of every such sampler. A later trial is drawn
    at random with probability `random_share`; every other one is the best new point in the order
    that `rank` returns.
    """

    def __init__(self, context: SamplerContext) -> None:
        super().__init__(context)
        self._startup_trials = context.get.whole("startup_trials")
        self._random_share = context.get.real("random_share")

    @abstractmethod
    def rank(self, history: History, rng: np.random.Generator) -> FloatArray:
        """New points for `history` (not empty), the best first; shape (n, dimensions)."""

    def propose(
        self, study: Study, trial: FrozenTrial, rng: np.random.Generator
    ) -> Iterator[FloatArray]:
        """See `UnitSpaceSampler`; nothing, which is chance, where the model is not asked."""
        history = self.reader.read(study.get_trials(deepcopy=False), trial.number, study.direction)
        at_random = rng.random() < self._random_share
        if len(history) >= self._startup_trials and not at_random:
            yield from self.rank(history, rng)
