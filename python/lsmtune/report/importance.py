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

Both are Optuna's, on encoded trials. The variables are those that the search used, with two
differences. A number on a log scale becomes its place on that scale, from 0 to 1, because the
evaluators measure shares of a range in the units of the variable. And the choice between a special
value and the range, which a search draws as a number, becomes what it is: a choice.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
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
from optuna.importance import (
    BaseImportanceEvaluator,
    FanovaImportanceEvaluator,
    PedAnovaImportanceEvaluator,
)
from optuna.storages import InMemoryStorage
from optuna.trial import FrozenTrial, TrialState
from scipy.stats import rankdata

from lsmtune.model.config import OptionValue, option_text
from lsmtune.model.goal import Direction
from lsmtune.model.measurement import Outcome
from lsmtune.report.source import StudyRecords
from lsmtune.report.tables import Importance, ImportanceRow
from lsmtune.space.parameter import Parameter

INTERVAL = 0.9
# A resample never has more trials than this, so that the time is bounded; of more trials, the
# intervals are wider than they need be.
TRIALS_PER_RESAMPLE_MAX = 1000
_TRIALS_MIN = 20  # with a value: below, PED-ANOVA's five best would be more than a quarter
_TRIALS_PER_PARAMETER = 2  # fANOVA: a forest on fewer trials than that explains only noise

Array = NDArray[np.float64]
Places = NDArray[np.int64]
Variables = Mapping[str, OptionValue]
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
    """Trials in the form of the evaluators: `losses` are better when less, NaN without a value."""

    variables: tuple[Variables, ...]
    losses: Array

    def constant(self) -> frozenset[str]:
        """The variables of which only one value was tried.

        They explain nothing, but the smoothing of PED-ANOVA, which is stronger for the few best
        trials than for all, would find a difference.
        """
        tried: dict[str, set[OptionValue]] = {}
        for variables in self.variables:
            for name, value in variables.items():
                tried.setdefault(name, set()).add(value)
        return frozenset(name for name, values in tried.items() if len(values) == 1)


def importance(
    parameters: Sequence[Parameter],
    trials: Sequence[Scored],
    *,
    metric: str,
    maximize: bool,
    method: Method = Method.PED_ANOVA,
    seed: int = 0,
    resamples: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Importance:
    """The importance of each of `parameters` for `metric`, the most important first.

    Over `resamples` of the trials, by default as many as `RESAMPLES` says of the method. The same
    `seed` gives the same figures. `on_progress` is told how many resamples of how many
    are done. Where there are too few trials, or all values are the same, there are no rows, and
    `why` says so.
    """
    sample = _sample(parameters, trials, maximize)
    valued, why = int(np.isfinite(sample.losses).sum()), ""
    needed = _TRIALS_MIN
    if method is Method.FANOVA:
        needed = max(needed, _TRIALS_PER_PARAMETER * len(parameters))
    if valued < needed:
        why = f"needs at least {needed} trials with a value, and there are {valued}"
    elif np.nanmin(sample.losses) == np.nanmax(sample.losses):
        why = f"all {valued} trials gave the same value"
    if why:
        return Importance(metric, method.value, INTERVAL, valued, 0, 0, why=why)
    if method is Method.FANOVA:
        kept = np.flatnonzero(np.isfinite(sample.losses))
        sample = _Sample(tuple(sample.variables[k] for k in kept), sample.losses[kept])
    resamples, constant = resamples or RESAMPLES[method], sample.constant()
    shares, decoys = np.zeros((resamples, len(parameters))), np.zeros(resamples)
    for number in range(resamples):
        random = np.random.default_rng([seed, number])
        shares[number], decoys[number] = _of_resample(parameters, sample, constant, method, random)
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
        rows=_rows(parameters, sample, shares, decoys),
    )


def _sample(parameters: Sequence[Parameter], trials: Sequence[Scored], maximize: bool) -> _Sample:
    variables, losses = [], []
    for options, value in trials:
        of_trial = encoded(parameters, options)
        if of_trial is not None:
            variables.append(of_trial)
            loss = math.nan if value is None else float(value)
            losses.append(-loss if maximize else loss)
    array = np.array(losses, dtype=np.float64)
    # An infinite value is no measurement.
    return _Sample(tuple(variables), np.where(np.isfinite(array), array, np.nan))


def _of_resample(
    parameters: Sequence[Parameter],
    sample: _Sample,
    constant: frozenset[str],
    method: Method,
    random: np.random.Generator,
) -> tuple[Array, float]:
    """The importance of each parameter and of the decoy in one resample."""
    encoding = encoding_of(parameters)
    drawn = _drawn(sample.losses, random)
    evaluate = _fanova if method is Method.FANOVA else _ped_anova
    of_variables = evaluate(encoding, sample, drawn, random)
    by_variable = {name: 0.0 if name in constant else value for name, value in of_variables.items()}
    # For PED-ANOVA the sum is exact: its divergence of a choice and of what follows it is the sum
    # of both. For fANOVA it leaves out what only both together explain.
    shares = np.array(
        [sum(by_variable.get(v, 0.0) for v in encoding.variables(p.name)) for p in parameters]
    )
    decoy = by_variable.get(DECOY, 0.0)
    total = float(shares.sum())
    if method is Method.PED_ANOVA and total > 0:
        return shares / total, decoy / total
    return shares, decoy


def _drawn(losses: Array, random: np.random.Generator) -> Places:
    """The places of one resample, with replacement: trials with and without a value apart.

    So every resample has as many of each as the study, and the best are never cut into.
    """
    share = min(1.0, TRIALS_PER_RESAMPLE_MAX / len(losses))
    places = []
    for group in (np.flatnonzero(np.isfinite(losses)), np.flatnonzero(~np.isfinite(losses))):
        if len(group):
            places.append(random.choice(group, size=max(1, round(share * len(group)))))
    return np.concatenate(places)


def _rows(
    parameters: Sequence[Parameter], sample: _Sample, shares: Array, decoys: Array
) -> tuple[ImportanceRow, ...]:
    ranks = rankdata(-shares, method="min", axis=1)
    means = shares.mean(axis=0)
    tail = (1 - INTERVAL) / 2
    low, high = np.quantile(shares, [tail, 1 - tail], axis=0)
    rank_low, rank_high = np.quantile(ranks, [tail, 1 - tail], axis=0, method="inverted_cdf")
    encoding = encoding_of(parameters)
    rows = []
    for place, k in enumerate(np.argsort(-means, kind="stable"), 1):
        names = encoding.variables(parameters[k].name)
        # A parameter of two variables has two chances.
        above = float((shares[:, k] > len(names) * decoys).mean())
        active = [v for v in sample.variables if not set(names).isdisjoint(v)]
        rows.append(
            ImportanceRow(
                parameter=parameters[k].name,
                importance=float(means[k]),
                importance_low=float(low[k]),
                importance_high=float(high[k]),
                rank=place,
                rank_low=int(rank_low[k]),
                rank_high=int(rank_high[k]),
                rank_share=float((ranks[:, k] == place).mean()),
                above_chance=above >= 1 - tail,
                trials=len(active),
                values_tried=len({tuple(v.get(name) for name in names) for v in active}),
            )
        )
    return tuple(rows)


# --- Trials in the form of the evaluators: encoded values instead of option values

UNIT = FloatDistribution(0.0, 1.0)
_RANGE = "range"


@dataclass(frozen=True)
class Encoding:
    """`distributions` of all variables, and the `owner` (a parameter's name) of each."""

    distributions: Mapping[str, BaseDistribution]
    owner: Mapping[str, str]

    def variables(self, parameter: str) -> list[str]:
        """The variables of a parameter: its own, and the choice between range and specials."""
        return [variable for variable, owner in self.owner.items() if owner == parameter]


def encoding_of(parameters: Iterable[Parameter]) -> Encoding:
    """The variables of `parameters` and how they are distributed."""
    distributions: dict[str, BaseDistribution] = {}
    owner: dict[str, str] = {}
    for parameter in parameters:
        for variable, distribution in parameter.distributions().items():
            owner[variable] = parameter.name
            is_log = _log_bounds(distribution) is not None
            distributions[variable] = UNIT if is_log else distribution
            if variable == parameter.selector:
                choices = [_RANGE, *(option_text(special.value) for special in parameter.specials)]
                distributions[variable] = CategoricalDistribution(choices)
    return Encoding(distributions, owner)


def encoded(
    parameters: Sequence[Parameter], options: Mapping[str, OptionValue]
) -> Variables | None:
    """The variables of one trial, those of inactive parameters absent.

    None when a value is not in the space: the trial says nothing about it then.
    """
    variables: dict[str, OptionValue] = {}
    for parameter in parameters:
        value = options.get(parameter.name)
        if value is None:
            continue
        if not parameter.contains(value):
            return None
        searched, distributions = parameter.variables_of(value), parameter.distributions()
        for variable, x in searched.items():
            bounds = _log_bounds(distributions[variable])
            if variable == parameter.selector:
                within = parameter.variable in searched
                variables[variable] = _RANGE if within else option_text(value)
            elif bounds is None:
                variables[variable] = x
            else:
                # Its place on the log scale; only the rounding of logarithms leaves the range.
                low, high = bounds
                place = math.log(float(x) / low) / math.log(high / low) if high > low else 0.0
                variables[variable] = min(1.0, max(0.0, place))
    return variables


def _log_bounds(distribution: BaseDistribution) -> tuple[float, float] | None:
    """The bounds of a number on a log scale, None of anything else."""
    if isinstance(distribution, IntDistribution | FloatDistribution) and distribution.log:
        return distribution.low, distribution.high
    return None


# --- Optuna's importance evaluators on encoded trials: PED-ANOVA and fANOVA

DECOY = "?decoy"  # no option's name has such a sign

# PED-ANOVA: the best tenth, which is Optuna's own default and the paper's; but at least five
# trials, as its documentation advises, and never more than half of those that have a value.
_TARGET_QUANTILE = 0.1
_TARGET_TRIALS = 5
_TARGET_SHARE_OF_VALUED = 0.5
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


def _ped_anova(
    encoding: Encoding, sample: _Sample, drawn: Places, random: np.random.Generator
) -> dict[str, float]:
    """The divergence of each variable (and of the decoy) between the best trials and all.

    A trial without a value is worse than any other. `drawn` are the places of the trials that
    count, repeated ones several times.
    """
    losses = sample.losses
    order = np.where(np.isfinite(losses), losses, np.inf)
    ranks = np.unique(order, return_inverse=True)[1].astype(np.float64)
    valued = int(np.isfinite(losses[drawn]).sum())
    quantile = max(_TARGET_QUANTILE, _TARGET_TRIALS / len(drawn))
    quantile = min(quantile, _TARGET_SHARE_OF_VALUED * valued / len(drawn))
    evaluator = PedAnovaImportanceEvaluator(target_quantile=quantile)
    return _evaluate(evaluator, encoding, _with_decoy(sample.variables, random), ranks, drawn)


def _fanova(
    encoding: Encoding, sample: _Sample, drawn: Places, random: np.random.Generator
) -> dict[str, float]:
    """The share of the variance of the losses (none NaN) that each variable or the decoy explains.

    Optuna's fANOVA takes only variables that every trial has. One that was not active has no
    effect, whatever its value: so it gets a random one, and the forest sees that it has none.
    """
    values = sample.losses / (float(np.abs(sample.losses).max()) or 1.0)
    if np.ptp(values[drawn]) == 0:
        return {}
    given = []
    for of_trial in _with_decoy(sample.variables, random):
        absent = {n: d for n, d in encoding.distributions.items() if n not in of_trial}
        drawn_values = {name: _random(of_name, random) for name, of_name in absent.items()}
        given.append({**drawn_values, **of_trial})
    seed = int(random.integers(2**32))
    evaluator = FanovaImportanceEvaluator(n_trees=_TREES, max_depth=_DEPTH, seed=seed)
    return _evaluate(evaluator, encoding, given, values, drawn)


def _evaluate(
    evaluator: BaseImportanceEvaluator,
    encoding: Encoding,
    variables: Sequence[Variables],
    values: Array,
    drawn: Places,
) -> dict[str, float]:
    """What `evaluator` says of the trials `drawn`, each with its variables and its value."""
    distributions = {**encoding.distributions, DECOY: UNIT}
    trials = [
        FrozenTrial(
            number=number,
            trial_id=number,
            state=TrialState.COMPLETE,
            value=float(value),
            datetime_start=None,
            datetime_complete=None,
            params=dict(of_trial),
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
            return {name: float(value) for name, value in evaluator.evaluate(study).items()}
    finally:
        optuna.logging.set_verbosity(level)


def _with_decoy(
    variables: Sequence[Variables], random: np.random.Generator
) -> list[dict[str, OptionValue]]:
    decoys = random.random(len(variables))
    return [{**v, DECOY: float(x)} for v, x in zip(variables, decoys, strict=True)]


def _random(distribution: BaseDistribution, random: np.random.Generator) -> OptionValue:
    """A uniform draw; encoded variables have no log scale."""
    if isinstance(distribution, CategoricalDistribution):
        choice: OptionValue = distribution.choices[random.integers(len(distribution.choices))]  # type: ignore[assignment]
        return choice
    if isinstance(distribution, FloatDistribution):
        return float(random.uniform(distribution.low, distribution.high))
    low, high, step = (getattr(distribution, name) for name in ("low", "high", "step"))
    return int(low + step * random.integers((high - low) // step + 1))


# --- The importance of a study's parameters, for each of its objectives

# They say nothing of the options: the user stopped the run, or the disk was full of something.
_NO_OBSERVATION = (Outcome.CANCELLED, Outcome.DISK_FULL)


def importances(
    records: StudyRecords,
    method: Method,
    on_progress: Callable[[int, int], None] | None = None,
) -> tuple[Importance, ...]:
    """One table per objective; the draws follow from the study's seed."""
    several = len(records.spec.goal.objectives)
    trials = [trial for trial in records.trials if trial.outcome not in _NO_OBSERVATION]
    tables = []
    for index, objective in enumerate(records.spec.goal.objectives):

        def told(done: int, of: int, before: int = index * RESAMPLES[method]) -> None:
            if on_progress is not None:
                on_progress(before + done, several * of)

        tables.append(
            importance(
                records.spec.space.parameters,
                [(t.config.options, None if t.values is None else t.values[index]) for t in trials],
                metric=objective.label,
                maximize=objective.direction is Direction.MAXIMIZE,
                method=method,
                seed=records.spec.seed,
                on_progress=told,
            )
        )
    return tuple(tables)
