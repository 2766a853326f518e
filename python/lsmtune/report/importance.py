"""How much each parameter mattered, and how sure that is: two methods over resamples of the trials.

PED-ANOVA (S. Watanabe, A. Bansal, F. Hutter, "PED-ANOVA: Efficiently Quantifying Hyperparameter
Importance in Arbitrary Subspaces", IJCAI 2023; with conditions, as Optuna has it) asks how the best
trials differ from all trials. It needs only their order, so failed and pruned trials count too, as
worse than every other. fANOVA (F. Hutter, H. Hoos, K. Leyton-Brown, "An Efficient Approach for
Assessing Hyperparameter Importance", ICML 2014) asks which share of the variance of the value each
parameter explains by itself, in a random forest; it needs values.

The uncertainty is a bootstrap over trials (B. Efron, "Bootstrap methods: another look at the
jackknife", Annals of Statistics 7(1), 1979). Each resample also has a decoy: a variable of random
numbers, whose importance is what chance alone gives (the idea of M. B. Kursa, W. R. Rudnicki,
"Feature Selection with the Boruta Package", JSS 36(11), 2010).

Both are Optuna's, on the points of `search.unit_space`, where a log scale is a scale as any other:
the evaluators measure shares of a range. Optuna loads them, and scikit-learn and scipy.stats with
them, when they are used: a command that assesses nothing does not wait a second for that.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.storages import InMemoryStorage
from optuna.trial import FrozenTrial, TrialState

from lsmtune.model.config import OptionValue
from lsmtune.model.goal import Direction
from lsmtune.report.source import StudyRecords
from lsmtune.report.tables import Importance, ImportanceRow
from lsmtune.search.unit_space import (
    INACTIVE,
    BoolArray,
    Dimension,
    FloatArray,
    UnitSpace,
    make_dimension,
    make_unit_space,
)
from lsmtune.space.parameter import Parameter
from lsmtune.space.space import Space
from lsmtune.stats.ranks import ranks

INTERVAL = 0.9
# A resample never has more trials than this, so that the time is bounded; of more trials, the
# intervals are wider than they need be.
TRIALS_PER_RESAMPLE_MAX = 1000
_TRIALS_MIN = 20  # with a value: below, PED-ANOVA's five best would be more than a quarter
_TRIALS_PER_PARAMETER = 2  # fANOVA: a forest on fewer trials than that explains only noise

Places = NDArray[np.int64]
# The options of a trial and its value; None: the trial failed or was pruned.
Scored = tuple[Mapping[str, OptionValue], float | None]


class Method(StrEnum):
    """How importance is assessed."""

    PED_ANOVA = "ped-anova"
    FANOVA = "fanova"


# Measured at 1,000 trials of 30 parameters on an idle core: 0.10 s a resample for PED-ANOVA, 0.67 s
# for fANOVA (8 trees of depth 8). The 20 forests of fANOVA have 160 trees together.
RESAMPLES = {Method.PED_ANOVA: 40, Method.FANOVA: 20}


@dataclass(frozen=True)
class _Sample:
    """Trials as points of the space that was searched.

    Attributes:
        unit: the space.
        points: shape (trials, variables); NaN where a variable was not active.
        losses: shape (trials,); better when less, NaN without a value.
    """

    unit: UnitSpace
    points: FloatArray
    losses: FloatArray

    def columns(self, parameter: Parameter) -> list[int]:
        """The variables of a parameter: its own, and the choice between range and specials."""
        return [self.unit.position[name] for name in parameter.distributions()]

    def constant(self) -> BoolArray:
        """The variables of which no two values were tried; shape (variables,).

        They explain nothing, but the smoothing of PED-ANOVA, which is stronger for the few best
        trials than for all, would find a difference.
        """
        return np.array([len(np.unique(x[~np.isnan(x)])) < 2 for x in self.points.T])


def importance(
    space: Space,
    trials: Sequence[Scored],
    *,
    metric: str,
    maximize: bool,
    method: Method = Method.PED_ANOVA,
    seed: int = 0,
    on_progress: Callable[[int, int], None] | None = None,
) -> Importance:
    """The importance of each parameter of `space` for `metric`, the most important first.

    Over as many resamples of the trials as `RESAMPLES` says of the method. The same `seed` gives
    the same figures. `on_progress` is told how many resamples of how many are done. Where there are
    too few trials, or all values are the same, there are no rows, and `why` says so.
    """
    sample = _sample(space, trials, maximize)
    valued, why = int(np.isfinite(sample.losses).sum()), ""
    needed = _TRIALS_MIN
    if method is Method.FANOVA:
        needed = max(needed, _TRIALS_PER_PARAMETER * len(space.parameters))
    if valued < needed:
        why = f"needs at least {needed} trials with a value, and there are {valued}"
    elif np.nanmin(sample.losses) == np.nanmax(sample.losses):
        why = f"all {valued} trials gave the same value"
    if why:
        return Importance(metric, method.value, INTERVAL, valued, 0, 0, why=why)
    if method is Method.FANOVA:
        kept = np.isfinite(sample.losses)
        sample = replace(sample, points=sample.points[kept], losses=sample.losses[kept])
    resamples, constant = RESAMPLES[method], sample.constant()
    shares, decoys = np.zeros((resamples, len(space.parameters))), np.zeros(resamples)
    for number in range(resamples):
        random = np.random.default_rng([seed, number])
        shares[number], decoys[number] = _of_resample(sample, constant, method, random)
        if on_progress is not None:
            on_progress(number + 1, resamples)
    return Importance(
        metric=metric,
        method=method.value,
        interval=INTERVAL,
        trials=valued,
        trials_without_value=len(sample.losses) - valued,
        resamples=resamples,
        chance=float(decoys.mean()),
        rows=_rows(sample, shares, decoys),
    )


def _sample(space: Space, trials: Sequence[Scored], maximize: bool) -> _Sample:
    """Those of `trials` that lie in the space; others say nothing about it."""
    names = {parameter.name for parameter in space.parameters}
    rows: list[dict[str, OptionValue]] = []
    values: list[float | None] = []
    for options, value in trials:
        searched = {name: given for name, given in options.items() if name in names}
        if space.contains(searched):
            rows.append(space.variables_of(searched))
            values.append(value)
    losses = np.array(values, dtype=np.float64) * (-1 if maximize else 1)
    unit = make_unit_space(space)
    # An infinite value is no measurement.
    return _Sample(unit, unit.encode(rows), np.where(np.isfinite(losses), losses, np.nan))


def _of_resample(
    sample: _Sample, constant: BoolArray, method: Method, random: np.random.Generator
) -> tuple[FloatArray, float]:
    """The importance of each parameter and of the decoy in one resample."""
    drawn = _drawn(sample.losses, random)
    evaluate = _fanova if method is Method.FANOVA else _ped_anova
    *of_variables, decoy = evaluate(sample, drawn, random)
    by_variable = np.where(constant, 0.0, of_variables)
    # For PED-ANOVA the sum is exact: its divergence of a choice and of what follows it is the sum
    # of both. For fANOVA it leaves out what only both together explain.
    parameters = sample.unit.space.parameters
    shares = np.array([by_variable[sample.columns(p)].sum() for p in parameters])
    total = float(shares.sum())
    if method is Method.PED_ANOVA and total > 0:
        return shares / total, decoy / total
    return shares, decoy


def _drawn(losses: FloatArray, random: np.random.Generator) -> Places:
    """The places of one resample, with replacement: trials with and without a value apart.

    So every resample has as many of each as the study, and the best are never cut into.
    """
    share = min(1.0, TRIALS_PER_RESAMPLE_MAX / len(losses))
    places = []
    for group in (np.flatnonzero(np.isfinite(losses)), np.flatnonzero(~np.isfinite(losses))):
        if len(group):
            places.append(random.choice(group, size=max(1, round(share * len(group)))))
    return np.concatenate(places)


def _rows(sample: _Sample, shares: FloatArray, decoys: FloatArray) -> tuple[ImportanceRow, ...]:
    ranked = np.array([ranks(row) for row in shares])
    means = shares.mean(axis=0)
    tail = (1 - INTERVAL) / 2
    low, high = np.quantile(shares, [tail, 1 - tail], axis=0)
    rank_low, rank_high = np.quantile(ranked, [tail, 1 - tail], axis=0, method="inverted_cdf")
    rows = []
    for place, k in enumerate(np.argsort(-means, kind="stable"), 1):
        parameter = sample.unit.space.parameters[k]
        own = sample.points[:, sample.columns(parameter)]
        # A parameter of two variables has two chances.
        above = float((shares[:, k] > own.shape[1] * decoys).mean())
        active = np.nan_to_num(own[~np.isnan(own).all(axis=1)], nan=INACTIVE)
        rows.append(
            ImportanceRow(
                parameter=parameter.name,
                importance=float(means[k]),
                importance_low=float(low[k]),
                importance_high=float(high[k]),
                rank=place,
                rank_low=int(rank_low[k]),
                rank_high=int(rank_high[k]),
                rank_share=float((ranked[:, k] == place).mean()),
                above_chance=above >= 1 - tail,
                trials=len(active),
                values_tried=len(np.unique(active, axis=0)),
            )
        )
    return tuple(rows)


# --- Optuna's importance evaluators on these points: PED-ANOVA and fANOVA

_DECOY = make_dimension("?decoy", FloatDistribution(0.0, 1.0))  # no option's name has such a sign

# PED-ANOVA: the best tenth, which is Optuna's own default and the paper's; but at least five
# trials, as its documentation advises, and never more than half of those that have a value.
_TARGET_QUANTILE = 0.1
_TARGET_TRIALS = 5
_TARGET_SHARE_OF_VALUED = 0.5
# PED-ANOVA looks at a continuum at so many places.
_GRID = 50
# fANOVA: the sizes by which 1,000 trials of 30 parameters take 0.7 s; 64 trees of any depth take
# 20 s and give the same shares to within 0.01.
_TREES = 8
_DEPTH = 8


class _Given(InMemoryStorage):
    """A storage of one study whose trials are given: storing copies would take most of the time."""

    def __init__(self, trials: list[FrozenTrial]) -> None:
        super().__init__()
        self._given = trials

    def get_all_trials(self, *_args: object, **_more: object) -> list[FrozenTrial]:
        """All trials, each of which has a value."""
        return self._given


def _ped_anova(sample: _Sample, drawn: Places, random: np.random.Generator) -> list[float]:
    """The divergence of each variable, and last the decoy's, between the best trials and all.

    A trial without a value is worse than any other. `drawn` are the places of the trials that
    count, repeated ones several times.
    """
    losses = sample.losses
    order = np.where(np.isfinite(losses), losses, np.inf)
    values = np.unique(order, return_inverse=True)[1].astype(np.float64)
    valued = int(np.isfinite(losses[drawn]).sum())
    quantile = max(_TARGET_QUANTILE, _TARGET_TRIALS / len(drawn))
    quantile = min(quantile, _TARGET_SHARE_OF_VALUED * valued / len(drawn))
    evaluator = optuna.importance.PedAnovaImportanceEvaluator(target_quantile=quantile)
    points = _with_decoy(sample.points, random)
    return _evaluate(evaluator, sample.unit, points, values, drawn)


def _fanova(sample: _Sample, drawn: Places, random: np.random.Generator) -> list[float]:
    """The share of the variance of the losses (none NaN) that each variable or the decoy explains.

    Optuna's fANOVA takes only variables that every trial has. One that was not active has no
    effect, whatever its value: so it gets a random one, and the forest sees that it has none.
    """
    values = sample.losses / (float(np.abs(sample.losses).max()) or 1.0)
    if np.ptp(values[drawn]) == 0:
        return [0.0] * (sample.unit.dimension_count + 1)
    anywhere = sample.unit.snap(random.random(sample.points.shape))
    points = _with_decoy(np.where(np.isnan(sample.points), anywhere, sample.points), random)
    seed = int(random.integers(2**32))
    evaluator = optuna.importance.FanovaImportanceEvaluator(
        n_trees=_TREES, max_depth=_DEPTH, seed=seed
    )
    return _evaluate(evaluator, sample.unit, points, values, drawn)


def _evaluate(
    evaluator: optuna.importance.BaseImportanceEvaluator,
    unit: UnitSpace,
    points: FloatArray,
    values: FloatArray,
    drawn: Places,
) -> list[float]:
    """What `evaluator` says of each variable and of the decoy, in this order.

    `points` (with the decoy) and `values` are of all trials; those at the places `drawn` count.
    """
    distributions: dict[str, BaseDistribution] = {}
    columns: list[FloatArray] = []
    for dimension, column in zip((*unit.dimensions, _DECOY), points.T, strict=True):
        distributions[dimension.name], taken = _variable(dimension, column)
        columns.append(taken)
    variables = [
        {name: x for name, x in zip(distributions, row, strict=True) if not math.isnan(x)}
        for row in np.column_stack(columns).tolist()
    ]
    trials = [
        FrozenTrial(
            number=number,
            trial_id=number,
            state=TrialState.COMPLETE,
            value=float(value),
            datetime_start=None,
            datetime_complete=None,
            params=of_trial,
            distributions={name: distributions[name] for name in of_trial},
            user_attrs={},
            system_attrs={},
            intermediate_values={},
        )
        for number, (of_trial, value) in enumerate(zip(variables, values, strict=True))
    ]
    storage, level = _Given([trials[k] for k in drawn]), optuna.logging.get_verbosity()
    # Without Optuna's warnings of few trials, which the table says in its own words.
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            study = optuna.create_study(storage=storage, direction="minimize")
            shares = evaluator.evaluate(study)
    finally:
        optuna.logging.set_verbosity(level)
    return [float(shares.get(name, 0.0)) for name in distributions]


def _with_decoy(points: FloatArray, random: np.random.Generator) -> FloatArray:
    return np.column_stack([points, random.random(len(points))])


def _variable(dimension: Dimension, coordinates: FloatArray) -> tuple[BaseDistribution, FloatArray]:
    """A variable as the evaluators take it, and its value at each of `coordinates`; NaN stays.

    One of few values is the number of its cell: PED-ANOVA would also compare the best trials with
    all at places between the cells, where only its smoothing differs.
    """
    cells = dimension.scale.cells
    if dimension.ordered and not 0 < cells <= _GRID:
        return FloatDistribution(0.0, 1.0), coordinates
    numbers = np.rint(np.interp(coordinates, dimension.coordinates(), np.arange(cells)))
    if dimension.ordered:
        return IntDistribution(0, cells - 1), numbers
    return CategoricalDistribution(range(cells)), numbers


# --- The importance of a study's parameters, for each of its objectives


def importances(
    records: StudyRecords,
    method: Method,
    on_progress: Callable[[int, int], None] | None = None,
) -> tuple[Importance, ...]:
    """One table per objective; the draws follow from the study's seed."""
    objectives, tables = records.spec.goal.objectives, []
    for index, objective in enumerate(objectives):

        def report(done: int, of: int, before: int = index * RESAMPLES[method]) -> None:
            if on_progress is not None:
                on_progress(before + done, len(objectives) * of)

        ends = ((trial.config.options, trial.end.values) for trial in records.trials)
        tables.append(
            importance(
                records.spec.space,
                [(options, values[index] if values else None) for options, values in ends],
                metric=objective.label,
                maximize=objective.direction is Direction.MAXIMIZE,
                method=method,
                seed=records.spec.seed,
                on_progress=report,
            )
        )
    return tuple(tables)
