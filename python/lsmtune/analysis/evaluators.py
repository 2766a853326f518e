"""Optuna's importance evaluators on encoded trials: PED-ANOVA and fANOVA."""

from __future__ import annotations

import warnings
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.importance import (
    BaseImportanceEvaluator,
    FanovaImportanceEvaluator,
    PedAnovaImportanceEvaluator,
)
from optuna.storages import InMemoryStorage
from optuna.trial import FrozenTrial, TrialState

from lsmtune.analysis.encoding import UNIT, Encoding, Variables
from lsmtune.records.config import OptionValue

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

Losses = NDArray[np.float64]
Places = NDArray[np.int64]


class _Given(InMemoryStorage):
    """A storage of one study whose trials are given: storing copies would take most of the time."""

    def __init__(self, trials: list[FrozenTrial]) -> None:
        super().__init__()
        self._given = trials

    def get_all_trials(
        self,
        study_id: int,  # noqa: ARG002
        deepcopy: bool = True,  # noqa: ARG002
        states: Container[TrialState] | None = None,
    ) -> list[FrozenTrial]:
        """The trials in `states`, or all."""
        if states is None:
            return self._given
        return [trial for trial in self._given if trial.state in states]


def evaluate_ped_anova(
    encoding: Encoding,
    variables: Sequence[Variables],
    losses: Losses,
    drawn: Places,
    random: np.random.Generator,
) -> dict[str, float]:
    """The divergence of each variable (and of the decoy) between the best trials and all.

    `losses` are better when less, NaN for a trial without a value, which is worse than any other.
    `drawn` are the places of the trials that count, repeated ones several times.
    """
    order = np.where(np.isfinite(losses), losses, np.inf)
    ranks = np.unique(order, return_inverse=True)[1].astype(np.float64)
    valued = int(np.isfinite(losses[drawn]).sum())
    quantile = max(_TARGET_QUANTILE, _TARGET_TRIALS / len(drawn))
    quantile = min(quantile, _TARGET_SHARE_OF_VALUED * valued / len(drawn))
    given = _with_decoy(variables, random)
    distributions = {**encoding.distributions, DECOY: UNIT}
    trials = [_trial(k, given[k], distributions, ranks[k]) for k in range(len(given))]
    return _evaluate(PedAnovaImportanceEvaluator(target_quantile=quantile), trials, drawn)


def evaluate_fanova(
    encoding: Encoding,
    variables: Sequence[Variables],
    losses: Losses,
    drawn: Places,
    random: np.random.Generator,
) -> dict[str, float]:
    """The share of the variance of `losses` (none NaN) that each variable, or the decoy, explains.

    Optuna's fANOVA takes only variables that every trial has. One that was not active has no
    effect, whatever its value: so it gets a random one, and the forest sees that it has none.
    """
    scale = float(np.abs(losses).max()) or 1.0
    values = losses / scale
    if np.ptp(values[drawn]) == 0:
        return {}
    given = [_filled(v, encoding.distributions, random) for v in _with_decoy(variables, random)]
    distributions = {**encoding.distributions, DECOY: UNIT}
    trials = [_trial(k, given[k], distributions, values[k]) for k in range(len(given))]
    seed = int(random.integers(2**32))
    evaluator = FanovaImportanceEvaluator(n_trees=_TREES, max_depth=_DEPTH, seed=seed)
    return _evaluate(evaluator, trials, drawn)


def _evaluate(
    evaluator: BaseImportanceEvaluator, trials: Sequence[FrozenTrial], drawn: Places
) -> dict[str, float]:
    storage = _Given([trials[k] for k in drawn])
    with _quiet():
        study = optuna.create_study(storage=storage, direction="minimize")
        return {name: float(value) for name, value in evaluator.evaluate(study).items()}


@contextmanager
def _quiet() -> Iterator[None]:
    """Without Optuna's warnings of few trials, which the table says in its own words."""
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            yield
    finally:
        optuna.logging.set_verbosity(level)


def _with_decoy(
    variables: Sequence[Variables], random: np.random.Generator
) -> list[dict[str, OptionValue]]:
    decoys = random.random(len(variables))
    return [{**v, DECOY: float(x)} for v, x in zip(variables, decoys, strict=True)]


def _filled(
    variables: Variables,
    distributions: Mapping[str, BaseDistribution],
    random: np.random.Generator,
) -> dict[str, OptionValue]:
    return {
        **{n: _random(d, random) for n, d in distributions.items() if n not in variables},
        **variables,
    }


def _random(distribution: BaseDistribution, random: np.random.Generator) -> OptionValue:
    """A uniform draw; encoded variables have no log scale."""
    if isinstance(distribution, CategoricalDistribution):
        choice: OptionValue = distribution.choices[random.integers(len(distribution.choices))]  # type: ignore[assignment]
        return choice
    if isinstance(distribution, FloatDistribution):
        return float(random.uniform(distribution.low, distribution.high))
    low, high, step = (getattr(distribution, name) for name in ("low", "high", "step"))
    return int(low + step * random.integers((high - low) // step + 1))


def _trial(
    number: int,
    variables: Mapping[str, OptionValue],
    distributions: Mapping[str, BaseDistribution],
    value: float,
) -> FrozenTrial:
    return FrozenTrial(
        number=number,
        trial_id=number,
        state=TrialState.COMPLETE,
        value=float(value),
        datetime_start=None,
        datetime_complete=None,
        params=dict(variables),
        distributions={name: distributions[name] for name in variables},
        user_attrs={},
        system_attrs={},
        intermediate_values={},
    )
