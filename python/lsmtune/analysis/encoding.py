"""Trials as Optuna's importance evaluators want them: encoded values instead of option values.

The variables are those that the search used, with two differences. A number on a log scale becomes
its place on that scale, from 0 to 1, because the evaluators measure shares of a range in the units
of the variable. And the choice between a special value and the range, which a search draws as a
number, becomes what it is: a choice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from lsmtune.records.config import OptionValue, option_text
from lsmtune.space import Parameter

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
