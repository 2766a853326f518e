"""What samplers with a model share: the history as points and targets, and their candidates.

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

Candidates are ranked by a score instead of found by following gradients: half of the options of an
engine are categorical, stepped or conditional, and a tree has no gradient.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy
from optuna.distributions import BaseDistribution
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from lsmtune.model.setting import Setting, real_setting, whole_setting
from lsmtune.search.in_memory_study import noise_of
from lsmtune.search.sampler import ProposingSampler, SamplerContext
from lsmtune.search.unit_space import (
    BoolArray,
    FloatArray,
    UnitSpace,
    make_dimension,
    make_unit_space,
)


class UnitSpaceSampler(ProposingSampler):
    """Asks `propose` for points, trial by trial; random ones when that has no more."""

    def __init__(self, context: SamplerContext) -> None:
        super().__init__(context)
        self.unit_space: UnitSpace = make_unit_space(context.space)
        self.reader = HistoryReader(self.unit_space)

    @abstractmethod
    def propose(
        self, study: Study, trial: FrozenTrial, rng: np.random.Generator
    ) -> Iterator[FloatArray]:
        """Points (dimensions,) for `trial`; `rng` is the random stream of the trial."""

    def proposals(self, study: Study, trial: FrozenTrial) -> Iterator[dict[str, Any]]:
        """See `ProposingSampler`."""
        for point in self.propose(study, trial, self.rng):
            yield self.unit_space.decode(point)
        while True:
            yield self.unit_space.decode(self.unit_space.sample(self.rng, 1)[0])

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """A random value, for a variable that the proposal did not know to be active."""
        return make_dimension(param_name, param_distribution).value_at(self.rng.random())


# --- the history

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
    for place, reports in told if whole else ():
        if not pruned[place]:
            continue
        step = max(reports)
        pairs = [(known[step], value) for known, value in whole if step in known]
        if pairs and in_logs and min(reported for reported, _ in pairs) > 0:
            factor = math.exp(np.median([math.log(end / reported) for reported, end in pairs]))
            reached[place] = values[place] * factor
        elif pairs and not in_logs:
            reached[place] = values[place] + np.median([end - early for early, end in pairs])
    known_end = np.isfinite(reached)
    return make_targets(
        np.where(known_end, reached, values),
        pruned & ~known_end,
        maximize=direction == StudyDirection.MAXIMIZE,
    )


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
    # One active coordinate of each point, each equally likely.
    is_inactive = np.isnan(np.repeat(points, count_each, axis=0))
    chances = np.where(is_inactive, -1.0, rng.random(origin.shape))
    changes[np.arange(total), np.argmax(chances, axis=1)] = True
    sizes = rng.choice(STEP_SIZES, size=(total, 1))
    # A step smaller than a cell would leave the value as it is.
    widths = np.array([1 / c.scale.cells if c.scale.cells else 0.0 for c in unit_space.dimensions])
    # Reflected at the bounds, as often as it takes.
    folded = np.mod(origin + rng.normal(size=origin.shape) * np.maximum(sizes, widths), 2.0)
    stepped = np.minimum(folded, 2.0 - folded)
    ordered = np.array([dimension.ordered for dimension in unit_space.dimensions])
    moved = np.where(ordered, stepped, rng.random(origin.shape))
    return unit_space.complete(np.where(changes, moved, origin))


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
    further: Sequence[FloatArray] = (),
    allowed: Callable[[FloatArray], bool] = lambda _: True,
) -> FloatArray:
    """New points, best score first; none is `known`, none comes twice.

    `drawn` random points, `near` neighbours of `starts`, and `further` points are scored (higher is
    better); then, in `rounds` rounds, `near` neighbours of the `beam` best so far that are
    `allowed`: where nothing may be run, much is expected for ever. Shape (n, dimensions), n may be
    0 where a small space holds nothing new.
    """
    pool = [unit_space.sample(rng, drawn), *further]
    if len(starts):
        pool.append(neighbours(unit_space, rng, starts, max(1, near // len(starts))))
    points = np.vstack(pool)
    scores = score(points)
    for _ in range(rounds):
        in_order = points[np.argsort(-scores, kind="stable")]
        best = np.array([*islice(filter(allowed, in_order), beam)])
        if not len(best):
            break
        more = neighbours(unit_space, rng, best, max(1, near // len(best)))
        points, scores = np.vstack([points, more]), np.concatenate([scores, score(more)])
    points = points[np.argsort(-scores, kind="stable")]
    first: dict[bytes, int] = {}
    for index, row in enumerate(points):
        first.setdefault(row.tobytes(), index)
    return points[[index for row, index in first.items() if row not in known]]


# --- a sampler with a model


CANDIDATES = whole_setting(
    "candidates", 1000, "random configurations compared for each trial", 1, 100_000
)


def startup_setting(model: str, default: int = 10) -> Setting:
    """How many trials come before the `model` guides."""
    text = f"trials drawn at random before the {model} guides"
    return whole_setting("startup_trials", default, text, 1, 100_000)


def random_share_setting(default: float) -> Setting:
    """How often the model is not asked."""
    text = "share of later trials that are drawn at random"
    return real_setting("random_share", default, text, 0, 1)


class ModelSampler(UnitSpaceSampler):
    """Draws at random until `startup_trials` trials were judged, and then now and then.

    `startup_trials` and `candidates` are settings of every such sampler. A later trial is drawn at
    random with probability `random_share`, a setting too, or never; every other one is the best new
    point that may run in the order that `rank` returns, of `near` neighbours in each of some
    `rounds`.
    """

    near: int
    rounds: int

    def __init__(self, context: SamplerContext) -> None:
        super().__init__(context)
        self._startup_trials: int = context.settings["startup_trials"]
        self._random_share: float = context.settings.get("random_share", 0.0)
        self._candidates: int = context.settings["candidates"]
        self._accepts = context.accepts
        self._looked_up: dict[bytes, bool] = {}  # of this trial's points, whether they may run

    @abstractmethod
    def rank(self, history: History, rng: np.random.Generator) -> FloatArray:
        """New points for `history` (not empty), the best first; shape (n, dimensions)."""

    def best_new(
        self,
        history: History,
        rng: np.random.Generator,
        score: Score,
        starts: FloatArray,
        further: Sequence[FloatArray] = (),
    ) -> FloatArray:
        """New points by `score`, the best first; see `ranked`."""
        return ranked(
            *(self.unit_space, rng, score, starts, history.known()),
            drawn=self._candidates,
            near=self.near,
            rounds=self.rounds,
            further=further,
            allowed=self._allowed,
        )

    def _allowed(self, point: FloatArray) -> bool:
        """Whether a point (dimensions,) may run."""
        if self._accepts is None:
            return True
        key = point.tobytes()
        if key not in self._looked_up:
            self._looked_up[key] = not self._accepts(self.unit_space.values_at(point))
        return self._looked_up[key]

    def propose(
        self, study: Study, trial: FrozenTrial, rng: np.random.Generator
    ) -> Iterator[FloatArray]:
        """See `UnitSpaceSampler`; nothing, which is chance, where the model is not asked."""
        history = self.reader.read(study.get_trials(deepcopy=False), trial.number, study.direction)
        at_random = rng.random() < self._random_share
        if len(history) >= self._startup_trials and not at_random:
            self._looked_up.clear()
            yield from filter(self._allowed, self.rank(history, rng))
