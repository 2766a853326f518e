"""`auto`: a Gaussian process that knows the coordinates and costs of an LSM tree, and a hedge.

What is proposed for a trial is, with probability `hedge`, what plain TPE proposes; nobody knows how
wrong a model is on the next engine. Otherwise it is the new point with the highest

    expected improvement x probability of meeting the constraints / seconds.

- The process is that of `search.gp`, on what the logarithm of the objective has beyond a *trend*:
  what cost models say, each with the weight that its errors so far leave it, times a
  slope. So a few trials tell which machine this is. The trend is left out where a process without
  it predicts each trial better by the others (Sundararajan and Keerthi, "Predictive approaches for
  choosing hyperparameters in Gaussian processes", Neural Computation 13, 2001).
- Its features are the coordinates of `unit_space`, those without units in their place where an
  option has one (`cost_models.unitless`), and the mean and the spread of what the models say.
- Values of trials that break a constraint on outcomes count, as no better than the best that breaks
  none. Of failed trials nothing does. Censored ones are replaced by what a process of the others
  expects beyond their bounds.
- Until a trial breaks the guard of the write amplification, the cost models say how likely it is to
  hold. Each constraint on outcomes, failing, and the logarithm of a trial's seconds are further
  outputs of the same kernel. The probabilities are multiplied, as if independent (Gardner, Kusner,
  Xu, Weinberger and Cunningham, "Bayesian optimization with inequality constraints", ICML 2014).
  The improvement per second is that of Snoek, Larochelle and Adams, "Practical Bayesian
  optimization of machine learning algorithms", NeurIPS 2012, section 3.2.
- What makes a trial long is the load of its database, and one with the layout of an earlier trial
  has none (`Problem.layout`). So settings that need no load are proposed in batches: they are worth
  a trial until another layout promises as many times more as its load takes longer.
- Trials under way are taken to end as expected (the "kriging believer" of Ginsbourger, Le Riche and
  Carraro 2010).

What is tried before any of this, `study.start` says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy
from optuna.study import Study
from optuna.trial import FrozenTrial
from threadpoolctl import threadpool_limits

from lsmtune.model.goal import Direction
from lsmtune.model.setting import Setting, real, whole
from lsmtune.search.coordinates import Coordinates, Layouts
from lsmtune.search.gp import (
    GaussianProcess,
    Output,
    best_and_latest,
    capped,
    fit_kernel,
    log_expected_improvement,
    spread_of,
)
from lsmtune.search.history import JUDGED, History, impute_censored
from lsmtune.search.model_based import ModelSampler, candidates_setting, startup_setting
from lsmtune.search.optuna_samplers import TPE, FewerTrials, GroupedTpeSampler
from lsmtune.search.sampler import FAILED, PROMISE, SamplerContext, SamplerKind
from lsmtune.search.unit_space import BoolArray, FloatArray

STARTS = 8
# The length scales are found on at most this many trials, and fewer where there are many features:
# a step of the optimizer costs trials^2 x features.
FITTED_ON_MAX, FITTED_NUMBERS_MAX = 64, 80_000
_HEDGED_ON_MAX = 1_000  # trials that TPE looks at
# From how many trials on their seconds count, and by which factor they may move a score at most.
_TIMED_LEAST, _SECONDS_FACTOR = 5, 4.0
# No configuration is certain to hold, or to break, what was never seen.
_CHANCES = (1e-3, 1.0)


class AutoSampler(ModelSampler):
    """See the module."""

    near, rounds = 240, 3

    def __init__(self, context: SamplerContext) -> None:
        super().__init__(context)
        tpe = {setting.name: setting.default for setting in TPE.settings}
        self._tpe = GroupedTpeSampler(
            SamplerContext(context.space, context.seed, tpe, context.directions)
        )
        self._sign = -1.0 if context.directions[0] is Direction.MAXIMIZE else 1.0
        # The guard of the write amplification, of which the cost models know something.
        self._guard = None if context.problem is None else context.problem.guard
        self._coordinates = Coordinates(self.unit_space, context)
        self._layouts = Layouts(self.unit_space, context)
        self._promise: float | None = None

    def proposals(self, study: Study, trial: FrozenTrial) -> Iterator[dict[str, Any]]:
        """See `ProposingSampler`; now and then those of TPE."""
        if self.rng.random() >= self.settings["hedge"]:
            yield from super().proposals(study, trial)
            return
        # TPE's time grows with the trials that it looks at.
        yield from self._tpe.proposals(FewerTrials(study, _HEDGED_ON_MAX), trial)

    def propose(self, study: Study, trial: FrozenTrial) -> Iterator[FloatArray]:
        """See `UnitSpaceSampler`; what the model expects of the trial is noted with it."""
        self._promise = None
        for point in super().propose(study, trial):
            if self._promise is not None:
                study._storage.set_trial_system_attr(trial._trial_id, PROMISE, self._promise)
            yield point

    def rank(self, history: History) -> FloatArray:
        """New points, the highest score first; nothing where no trial has a value."""
        known = Known.of(history, self._sign)
        # One thread, for the reasons that `search.gp` gives.
        with threadpool_limits(1):
            if len(known.valued) < 2:
                return np.empty((0, self.unit_space.dimension_count))
            model = self._model(known, history)
            best = history.points[known.best_first[:STARTS]]
            loads = self._layouts.loads(history)
            further = self._layouts.settings_of(best, self.rng, self.settings["candidates"] // 4)

            def score(points: FloatArray) -> FloatArray:
                return model.log_gain(points, per_second=True) - loads(points)

            points = self.best_new(history.tried(), score, best, *further)
            proposed = next(filter(self._allowed, points), None)
            if known.in_logs and math.isfinite(model.best) and proposed is not None:
                # Neither seconds nor loads count here: a search ends when there is nothing to gain.
                # What may not run promises nothing, however good it would be.
                sample = np.vstack([points[: self.settings["candidates"]], proposed])
                gains = model.log_gain(sample)
                in_order = np.argsort(-gains, kind="stable")
                most = next(gains[n] for n in in_order if self._allowed(sample[n]))
                self._promise = model.fit.spread * math.exp(float(most))
            return points

    def expected(self, study: Study) -> dict[int, NormalDist]:
        """See `ProposingSampler`."""
        trials = study.get_trials(deepcopy=False)
        history = self.reader.read(trials, len(trials), study.direction)
        known = Known.of(history, self._sign)
        if len(known.valued) < 2 or not known.in_logs:
            return {}
        with threadpool_limits(1):
            model = self._model(known, history)
            mean, deviation = model.expected(history.points[known.valued])
        numbers = [trial.number for trial in trials if trial.state in JUDGED]
        spread = model.fit.spread
        rows = zip(known.valued, -spread * mean, spread * deviation, strict=True)
        return {numbers[row]: NormalDist(float(m), float(sd)) for row, m, sd in rows}

    def _model(self, known: Known, history: History) -> Model:
        """The outputs, fitted on at most `points_max` rows each."""
        most: int = self.settings["points_max"]
        valued = known.valued[best_and_latest(known.targets[known.valued], most)]
        cut_off, failed = known.censored[-most // 2 :], known.failed[-most // 2 :]
        rows = np.concatenate([valued, cut_off, failed])
        points = np.vstack([history.points[rows], history.running])
        features, costs = self._coordinates.of(points)
        # Where each kind is among the points.
        ends = np.cumsum([len(valued), len(cut_off), len(failed)])
        own, cut_off_at, failed_at, under_way = np.split(np.arange(len(points)), ends)
        weights = [np.zeros(costs.shape[1])]
        if costs.shape[1] and known.in_logs:
            weights.insert(0, trend_of(costs[own], known.targets[valued]))
        fits = [Fit.of(features, known, valued, costs, each) for each in weights]
        fit = max(fits, key=lambda each: each.evidence)
        fit = fit.with_guesses(known.targets[cut_off], cut_off_at, under_way)
        shared = fit.shared
        failing = None
        if len(failed):
            marks = np.repeat([0.0, 1.0], [len(own), len(failed)])
            failing = shared.output(np.concatenate([own, failed_at]), marks)
        seconds = None
        log_seconds = known.log_seconds[valued]
        timed = np.flatnonzero(np.isfinite(log_seconds))
        if len(timed) >= _TIMED_LEAST:
            seconds = shared.output(timed, log_seconds[timed])
        holds = known.holds[valued]
        mean = fit.objective.mean(shared.inner[own]) + fit.trend[own] / fit.spread
        best = float(mean[holds].min()) if holds.any() else math.inf
        constraints = constraint_outputs(shared, known, valued)
        foreseen = self._guard is not None and self._guard.text not in known.violations
        return Model(self._coordinates, fit, constraints, failing, seconds, best, foreseen)


@dataclass(frozen=True)
class Fit:
    """A process of what the targets have beyond a trend.

    `weights` (m,) of the cost models, and the `trend` (n,) that they give; `middle` and `spread` of
    the rest, `scaled` by them, and the `variances` of that. `evidence`: the logarithm of the
    density of each target by the others, summed.
    """

    weights: FloatArray
    trend: FloatArray
    middle: float
    spread: float
    scaled: FloatArray
    variances: FloatArray
    shared: GaussianProcess
    objective: Output
    evidence: float

    @classmethod
    def of(
        cls,
        features: FloatArray,
        known: Known,
        valued: npt.NDArray[np.intp],
        costs: FloatArray,
        weights: FloatArray,
    ) -> Fit:
        """For `features` (n, f) and `costs` (n, m), of which the first rows are the `valued`."""
        own, trend = np.arange(len(valued)), costs @ weights
        # What a trend promised and a run did not keep is no failure: it counts in full.
        targets = capped(known.targets[valued]) - trend[own]
        middle, spread = float(np.median(targets)), spread_of(targets)
        scaled = (targets - middle) / spread
        variances = known.variances[valued] / spread**2
        fitted_on = min(FITTED_ON_MAX, math.isqrt(FITTED_NUMBERS_MAX // features.shape[1]))
        shared = GaussianProcess(fit_kernel(features[own], scaled, fitted_on, variances), features)
        objective = shared.output(own, scaled, variances)
        inverse = scipy.linalg.cho_solve((objective.factor, True), np.eye(len(own)))
        precisions = np.diag(inverse)
        errors = (inverse @ (scaled - objective.offset)) / precisions
        evidence = 0.5 * float((np.log(precisions) - errors**2 * precisions).sum())
        evidence -= len(own) * math.log(spread)
        return cls(weights, trend, middle, spread, scaled, variances, shared, objective, evidence)

    def with_guesses(
        self, bounds: FloatArray, cut_off: npt.NDArray[np.intp], under_way: npt.NDArray[np.intp]
    ) -> Fit:
        """The same, with what is expected of trials without a value in the place of theirs.

        `cut_off` and `under_way` are their rows of the features; the `bounds` are of the former.
        """
        guessed = np.concatenate([cut_off, under_way])
        if not len(guessed):
            return self
        mean, deviation = self.objective.predict(self.shared.inner[guessed])
        bounds = (bounds - self.trend[cut_off] - self.middle) / self.spread
        n, worst = len(cut_off), float(self.scaled.max())
        expected = impute_censored(bounds, mean[:n], deviation[:n], worst)
        mean[:n] = np.minimum(expected, max(worst, 2.0))
        objective = self.shared.output(
            np.concatenate([np.arange(len(self.scaled)), guessed]),
            np.concatenate([self.scaled, mean]),
            np.concatenate([self.variances, np.zeros(len(guessed))]),
        )
        return replace(self, objective=objective)


def constraint_outputs(
    shared: GaussianProcess, known: Known, valued: npt.NDArray[np.intp]
) -> list[Output]:
    """By how much the `valued` rows break each constraint that two of them tell of."""
    outputs = []
    for violations in known.violations.values():
        amounts = violations[valued]
        stated = np.flatnonzero(np.isfinite(amounts))
        if len(stated) < 2:
            continue
        amounts = amounts[stated]
        scale = float(np.median(np.abs(amounts))) or float(np.abs(amounts).max()) or 1.0
        outputs.append(shared.output(stated, np.clip(amounts / scale, -3.0, 3.0)))
    return outputs


@dataclass(frozen=True)
class Known:
    """What the rows of a history say; lower targets are better.

    `valued`, `censored` and `failed` are rows by kind; `targets`, `variances` and `log_seconds`
    have all rows, NaN where nothing is known. `holds`: no constraint is broken. `best_first` are
    the valued rows that hold, then the others, each from the best on.
    """

    valued: npt.NDArray[np.intp]
    censored: npt.NDArray[np.intp]
    failed: npt.NDArray[np.intp]
    targets: FloatArray
    variances: FloatArray
    log_seconds: FloatArray
    violations: dict[str, FloatArray]
    holds: BoolArray
    best_first: npt.NDArray[np.intp]
    in_logs: bool

    @classmethod
    def of(cls, history: History, sign: float) -> Known:
        """Of a `history`; `sign` is -1 where higher values are better."""
        finite = np.isfinite(history.values)
        values = np.where(finite, history.values, math.nan)
        # As the bounds are, of which one may be 0.
        in_logs = history.in_logs if history.censored.any() else bool((values[finite] > 0).all())
        variances = history.variances
        if history.in_logs and not in_logs:  # a value of 0 that breaks a constraint is no bound
            variances = np.where(finite, variances * values**2, 0.0)
        finite &= (values > 0) | (not in_logs)
        with np.errstate(invalid="ignore", divide="ignore"):
            targets = sign * (np.log(values) if in_logs else values)
        targets = np.where(history.censored, history.targets, targets)
        violations = dict(history.violations)
        has_failed = violations.pop(FAILED, np.zeros(len(history))) > 0
        worst = np.full(len(history), -math.inf)
        for amounts in violations.values():
            worst = np.fmax(worst, amounts)
        run_s = history.run_seconds
        seconds = np.where(np.isfinite(run_s), run_s, history.seconds)
        holds = (worst <= 0) & ~has_failed
        valued = np.flatnonzero(finite & ~has_failed)
        if holds[valued].any():
            # What broke a constraint does not draw the search there, however good it was.
            best = float(targets[valued][holds[valued]].min())
            breaking = finite & ~holds
            targets[breaking] = np.maximum(targets[breaking], best)
        order = np.lexsort((targets[valued], ~holds[valued]))
        return cls(
            valued=valued,
            censored=np.flatnonzero(history.censored & ~has_failed),
            failed=np.flatnonzero(has_failed),
            targets=targets,
            variances=variances,
            log_seconds=np.log(seconds),
            violations={k: v for k, v in violations.items() if (v > 0).any()},
            holds=holds,
            best_first=valued[order],
            in_logs=in_logs,
        )


@dataclass(frozen=True)
class Model:
    """What is expected of a point, and what that is worth.

    All outputs are of the kernel of the `fit`. `best` is the lowest target expected of a trial that
    breaks no constraint, in units of the spread. `foreseen`: the cost models alone say if the guard
    of the write amplification holds.
    """

    coordinates: Coordinates
    fit: Fit
    constraints: Sequence[Output]
    failing: Output | None
    seconds: Output | None
    best: float
    foreseen: bool

    def expected(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What targets are expected at `points` (n, dimensions), in units of the spread.

        Mean and standard deviation, each (n,).
        """
        features, costs = self.coordinates.of(points)
        return self._targets(self.fit.shared.cross(features), costs)

    def _targets(self, cross: FloatArray, costs: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean, deviation = self.fit.objective.predict(cross)
        return mean + costs @ (self.fit.weights / self.fit.spread), deviation

    def log_gain(self, points: FloatArray, *, per_second: bool = False) -> FloatArray:
        """The logarithm of the improvement expected, in units of the spread; (n,)."""
        features, costs = self.coordinates.of(points)
        cross = self.fit.shared.cross(features)
        score = np.zeros(len(cross))
        if self.foreseen:
            score += self.coordinates.log_chance(points)
        if math.isfinite(self.best):
            score += log_expected_improvement(*self._targets(cross, costs), self.best)
        for output in self.constraints:
            amount, deviation = output.predict(cross)
            score += np.log(np.clip(scipy.special.ndtr(-amount / deviation), *_CHANCES))
        if self.failing is not None:
            score += np.log(np.clip(1.0 - self.failing.mean(cross), *_CHANCES))
        if per_second and self.seconds is not None:
            limit = math.log(_SECONDS_FACTOR)
            longer = self.seconds.mean(cross) - self.seconds.offset
            score -= np.clip(longer, -limit, limit)
        return score


# What a model errs by where it is right, a logarithm; and how sure it is that the objective
# follows the seconds of an operation with a slope of 1.
_MODEL_SD, _SLOPE_SD = 0.4, 0.5


def trend_of(costs: FloatArray, targets: FloatArray) -> FloatArray:
    """Weights (m,) of cost models, by what they said of trials (n, m) and the targets (n,).

    Each model's weight is its likelihood, with errors of `_MODEL_SD` around a constant of its own;
    all together are the slope of the targets on what they say, which is 1 where few trials tell.
    """
    errors = costs - targets[:, np.newaxis]
    errors = errors - errors.mean(axis=0)
    likelihood = -(errors**2).sum(axis=0) / (2 * _MODEL_SD**2)
    weights: FloatArray = scipy.special.softmax(likelihood)
    said = costs @ weights
    said, targets = said - said.mean(), targets - targets.mean()
    sure = (_MODEL_SD / _SLOPE_SD) ** 2
    slope = (float(said @ targets) + sure) / (float(said @ said) + sure)
    return max(slope, 0.0) * weights


KIND = SamplerKind(
    name="auto",
    summary="a Gaussian process that knows LSM trees, after textbook starts; the default",
    settings=(
        # What `study.start` begins with counts: those are five with the baseline.
        startup_setting("process", 5),
        Setting("hedge", "share of the trials that plain TPE proposes", 0.2, real(0, 1)),
        Setting("points_max", "trials that the process is fitted on", 200, whole(10, 1_000)),
        candidates_setting(600),
    ),
    several_objectives=False,
    make=AutoSampler,
)
