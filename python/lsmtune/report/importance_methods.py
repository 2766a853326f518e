"""Trials as Optuna's importance evaluators want them: encoded values instead of option values.

The variables are those that the search used, with two differences. A number on a log scale becomes
its place on that scale, from 0 to 1, because the evaluators measure shares of a range in the units
of the variable. And the choice between a special value and the range, which a search draws as a
number, becomes what it is: a choice.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
            if variable == parameter.selector:
                choices = [_RANGE, *(option_text(special.value) for special in parameter.specials)]
                distributions[variable] = CategoricalDistribution(choices)
            else:
                distributions[variable] = UNIT if _is_log(distribution) else distribution
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
        variables |= _of_parameter(parameter, value)
    return variables


def _of_parameter(parameter: Parameter, value: OptionValue) -> dict[str, OptionValue]:
    searched, distributions = parameter.variables_of(value), parameter.distributions()
    found: dict[str, OptionValue] = {}
    for variable, x in searched.items():
        if variable == parameter.selector:
            found[variable] = _RANGE if parameter.variable in searched else option_text(value)
        else:
            found[variable] = _place(distributions[variable], x)
    return found


def _is_log(distribution: BaseDistribution) -> bool:
    return isinstance(distribution, IntDistribution | FloatDistribution) and distribution.log


def _place(distribution: BaseDistribution, x: OptionValue) -> OptionValue:
    """`x`, or its place on the log scale of `distribution`, from 0 to 1."""
    if not isinstance(distribution, IntDistribution | FloatDistribution) or not distribution.log:
        return x
    if distribution.high <= distribution.low:
        return 0.0
    place = math.log(float(x) / distribution.low) / math.log(distribution.high / distribution.low)
    return min(1.0, max(0.0, place))  # only the rounding of the logarithms leaves the range


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
