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
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from lsmtune.model.config import OptionValue
from lsmtune.model.goal import Direction
from lsmtune.model.measurement import Outcome
from lsmtune.report.importance_methods import (
    DECOY,
    ScoredTrial,
    Variables,
    encoded,
    encoding_of,
    evaluate_fanova,
    evaluate_ped_anova,
)
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
    trials: Sequence[ScoredTrial],
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


def _sample(
    parameters: Sequence[Parameter], trials: Sequence[ScoredTrial], maximize: bool
) -> _Sample:
    variables, losses = [], []
    for trial in trials:
        of_trial = encoded(parameters, trial.options)
        if of_trial is not None:
            variables.append(of_trial)
            value = float("nan") if trial.value is None else float(trial.value)
            losses.append(-value if maximize else value)
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
    evaluate = evaluate_fanova if method is Method.FANOVA else evaluate_ped_anova
    of_variables = evaluate(encoding, sample.variables, sample.losses, drawn, random)
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


def _drawn(losses: Array, random: np.random.Generator) -> NDArray[np.int64]:
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
                [
                    ScoredTrial(t.config.options, None if t.values is None else t.values[index])
                    for t in trials
                ],
                metric=objective.label,
                maximize=objective.direction is Direction.MAXIMIZE,
                method=method,
                seed=records.spec.seed,
                on_progress=told,
            )
        )
    return tuple(tables)
