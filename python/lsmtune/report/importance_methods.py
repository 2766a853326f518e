"""Trials as Optuna's importance evaluators want them: encoded values instead of option values.

The variables are those that the search used, with two differences. A number on a log scale becomes
its place on that scale, from 0 to 1, because the evaluators measure shares of a range in the units
of the variable. And the choice between a special value and the range, which a search draws as a
number, becomes what it is: a choice.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

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

from lsmtune.model.config import OptionValue, option_text
from lsmtune.space.parameter import Parameter

UNIT = FloatDistribution(0.0, 1.0)
_RANGE = "range"

Variables = Mapping[str, OptionValue]


@dataclass(frozen=True)
class ScoredTrial:
    """What importance looks at: `options` and the value; None: the trial failed or was pruned."""

    options: Mapping[str, OptionValue]
    value: float | None


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
    evaluator = PedAnovaImportanceEvaluator(target_quantile=quantile)
    return _evaluate(evaluator, encoding, _with_decoy(variables, random), ranks, drawn)


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
    given = []
    for of_trial in _with_decoy(variables, random):
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
    values: Losses,
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
