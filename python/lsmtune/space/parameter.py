"""A Parameter: one tunable engine option, its conditions and special values, its Optuna variables.

A parameter with special values has a second variable in Optuna, its *selector*, named `<name>?`:
a float in [0, 1] that is cut into shares, one per special value (in the order of the file, each
as wide as its weight) and the last for the range. A uniform draw picks each special value with
exactly its weight, which no categorical of Optuna can do, and TPE learns which share does well.
The range's own variable is suggested only when the selector picks it, so a special value leaves
no observation that means nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.trial import BaseTrial

from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue, option_text
from lsmtune.space.prior import Prior, PriorScale, check_prior
from lsmtune.space.range import Number, Range, make_range

OPTION_NAME_ALLOWED = "letters, digits and _, nested names joined by dots"
_PART = r"[A-Za-z_][A-Za-z0-9_]*"
_OPTION_NAME = re.compile(rf"{_PART}(\.{_PART})*", re.ASCII)


def is_option_name(name: str) -> bool:
    """Whether `name` can be an option of an engine; `?` and `/` are left to Optuna variables."""
    return _OPTION_NAME.fullmatch(name) is not None


def same_value(one: OptionValue, other: OptionValue) -> bool:
    """Whether an engine would read both as the same value: `1` and `1.0`, `true` and `"true"`.

    `1` and `true` count as the same too: Optuna looks choices up with Python's equality.
    """
    return one == other or option_text(one) == option_text(other)


# --- conditions


@dataclass(frozen=True)
class Condition:
    """True while the parameter `name` is active and has one of `values`."""

    name: str
    values: tuple[OptionValue, ...]

    def holds(self, active: Mapping[str, OptionValue]) -> bool:
        """Whether the condition holds among the `active` parameters' values."""
        return self.name in active and any(
            same_value(active[self.name], value) for value in self.values
        )


def make_condition(
    name: str, values: OptionValue | list[OptionValue], source: str, field: str
) -> Condition:
    """A checked condition. Raises `InputError` for an empty list and for repeated values."""
    listed = tuple(values) if isinstance(values, list) else (values,)
    if not listed:
        raise InputError(source, field, why="is empty", allowed="at least one value")
    for index, value in enumerate(listed):
        if any(same_value(value, earlier) for earlier in listed[:index]):
            raise InputError(source, field, why="the same value twice", found=value)
    return Condition(name, listed)


# --- special values

DEFAULT_WEIGHT_TOTAL = 0.2  # shared by the special values that state no weight of their own


@dataclass(frozen=True)
class Special:
    """A value outside the range, drawn with probability `weight` before anything is known."""

    value: Number
    weight: float


def selected(specials: tuple[Special, ...], selector: float) -> Special | None:
    """The special value whose share holds `selector`, or None for the range's share."""
    upper = 0.0
    for special in specials:
        upper += special.weight
        if selector < upper:
            return special
    return None


def selector_of(specials: tuple[Special, ...], value: Number) -> float:
    """The middle of the share of `value`; of the range's share when `value` is not special."""
    lower = 0.0
    for special in specials:
        if special.value == value:
            return lower + special.weight / 2
        lower += special.weight
    return (lower + 1.0) / 2


def make_specials(
    given: list[tuple[Number, float | None]], numbers: Range, source: str, field: str
) -> tuple[Special, ...]:
    """Checked special values; those without a weight share `DEFAULT_WEIGHT_TOTAL` evenly.

    Raises `InputError` for a value inside the range, repeated values, and weights that leave the
    range no share.
    """
    unweighted = sum(1 for _, weight in given if weight is None)
    specials: list[Special] = []
    for index, (value, weight) in enumerate(given):
        place = f"{field}[{index}]"
        if numbers.low <= value <= numbers.high:
            outside = f"values outside {numbers.low} to {numbers.high}"
            raise InputError(
                source, place, why="a special value inside the range", found=value, allowed=outside
            )
        if any(special.value == value for special in specials):
            raise InputError(source, place, why="the same special value twice", found=value)
        if weight is not None and not 0 < weight < 1:
            raise InputError(
                source, f"{place}.weight", found=weight, allowed="a number between 0 and 1"
            )
        specials.append(Special(value, weight or DEFAULT_WEIGHT_TOTAL / unweighted))
    total = sum(special.weight for special in specials)
    if total >= 1:
        why = f"the weights leave nothing for the range: their sum is {total:g}"
        raise InputError(source, field, why=why, allowed="a sum of less than 1")
    return tuple(specials)


# --- parameters

_SELECTOR = FloatDistribution(0.0, 1.0)
_QUANTILE = FloatDistribution(0.0, 1.0)
WeightedValues = Sequence[tuple[Number, float | None]]


@dataclass(frozen=True)
class Parameter:
    """A tunable option: either `numbers` (with `specials` and a `prior`) or `choices`.

    `unit` is `bytes` or empty. All of `conditions` must hold for the parameter to be active.
    `default` is the engine's own default where the study file states it.
    """

    name: str
    numbers: Range | None = None
    choices: tuple[OptionValue, ...] = ()
    specials: tuple[Special, ...] = ()
    unit: str = ""
    conditions: tuple[Condition, ...] = ()
    default: OptionValue | None = None
    prior: Prior | None = None

    @property
    def kind(self) -> str:
        """`int`, `float` or `categorical`."""
        if self.numbers is None:
            return "categorical"
        return "int" if self.numbers.integer else "float"

    @property
    def variable(self) -> str:
        """The name of the parameter's own Optuna variable."""
        if self.numbers is None:
            return self.name
        return self.name + ("~" if self.prior is not None else self.numbers.suffix)

    @property
    def selector(self) -> str | None:
        """The name of the Optuna variable that picks a special value or the range, if any."""
        return f"{self.name}?" if self.specials else None

    def distributions(self) -> dict[str, BaseDistribution]:
        """Every Optuna variable of this parameter and its distribution."""
        variables: dict[str, BaseDistribution] = {self.variable: self._distribution()}
        if self.selector is not None:
            variables[self.selector] = _SELECTOR
        return variables

    def _distribution(self) -> BaseDistribution:
        if self.numbers is None:
            return CategoricalDistribution(self.choices)
        return _QUANTILE if self.prior is not None else self.numbers.distribution()

    @cached_property
    def _prior_scale(self) -> PriorScale | None:
        if self.numbers is None or self.prior is None:
            return None
        return PriorScale(self.numbers, self.prior)

    def suggest(self, trial: BaseTrial) -> OptionValue:
        """A value for this parameter, asked of `trial`."""
        if self.numbers is None:
            choice: OptionValue = trial.suggest_categorical(self.variable, self.choices)  # type: ignore[assignment]
            return choice
        if self.selector is not None:
            special = selected(self.specials, trial.suggest_float(self.selector, 0.0, 1.0))
            if special is not None:
                return special.value
        return self._suggest_number(trial, self.numbers)

    def _suggest_number(self, trial: BaseTrial, numbers: Range) -> Number:
        if self._prior_scale is not None:
            return self._prior_scale.value_at(trial.suggest_float(self.variable, 0.0, 1.0))
        drawn = numbers.distribution()
        if isinstance(drawn, FloatDistribution):
            return numbers.value_at(
                trial.suggest_float(
                    self.variable, drawn.low, drawn.high, step=drawn.step, log=drawn.log
                )
            )
        return numbers.value_at(
            trial.suggest_int(self.variable, drawn.low, drawn.high, step=drawn.step, log=drawn.log)
        )

    def variables_of(self, value: OptionValue) -> dict[str, OptionValue]:
        """The values of the Optuna variables that `suggest` turns into `value`.

        `value` must be one that `contains` accepts.
        """
        if self.numbers is None or isinstance(value, str | bool):
            return {self.variable: next(c for c in self.choices if same_value(c, value))}
        variables: dict[str, OptionValue] = {}
        if self.selector is not None:
            variables[self.selector] = selector_of(self.specials, value)
        if all(special.value != value for special in self.specials):
            scale = self._prior_scale
            variables[self.variable] = (
                self.numbers.drawn_of(value) if scale is None else scale.quantile_of(value)
            )
        return variables

    def contains(self, value: OptionValue) -> bool:
        """Whether `suggest` can return `value`."""
        if self.numbers is None:
            return any(same_value(choice, value) for choice in self.choices)
        if isinstance(value, str | bool):
            return False
        special = any(special.value == value for special in self.specials)
        return special or (self._prior_scale or self.numbers).contains(value)

    def describe(self) -> str:
        """What `contains` accepts, in words, for messages."""
        if self.numbers is None:
            return ", ".join(_shown(choice) for choice in self.choices)
        specials = "".join(f", or {special.value}" for special in self.specials)
        return (self._prior_scale or self.numbers).describe() + specials

    def on_edge(self, value: OptionValue) -> str | None:
        """`low` or `high` when `value` lies on that bound of the range, else None."""
        if self.numbers is None or isinstance(value, str | bool):
            return None
        if value == self.numbers.low:
            return "low"
        return "high" if value == self.numbers.high else None


def make_number(
    name: str,
    numbers: Range,
    source: str,
    *,
    unit: str = "",
    specials: WeightedValues = (),
    conditions: Sequence[Condition] = (),
    default: OptionValue | None = None,
    prior: Prior | None = None,
) -> Parameter:
    """A checked integer or float parameter, as `numbers` and `prior` say.

    Raises `InputError` whose field is `space.<name>.<part>`.
    """
    field = _field(name, source)
    checked = make_range(numbers, source, field)
    if prior is not None:
        check_prior(prior, checked, source, f"{field}.prior")
    extra = make_specials(list(specials), checked, source, f"{field}.special")
    parameter = Parameter(
        name,
        numbers=checked,
        specials=extra,
        unit=unit,
        conditions=tuple(conditions),
        default=default,
        prior=prior,
    )
    return _with_checked_default(parameter, source)


def make_categorical(
    name: str,
    choices: Sequence[OptionValue],
    source: str,
    *,
    conditions: Sequence[Condition] = (),
    default: OptionValue | None = None,
) -> Parameter:
    """A checked categorical parameter.

    Raises `InputError` whose field is `space.<name>.<part>`, for repeated or too few choices.
    """
    field = f"{_field(name, source)}.choices"
    for index, choice in enumerate(choices):
        if any(same_value(choice, earlier) for earlier in choices[:index]):
            raise InputError(source, f"{field}[{index}]", why="the same choice twice", found=choice)
    if len(choices) < 2:
        allowed = "at least 2 choices; a single value belongs under options"
        raise InputError(source, field, found=len(choices), allowed=allowed)
    parameter = Parameter(
        name, choices=tuple(choices), conditions=tuple(conditions), default=default
    )
    return _with_checked_default(parameter, source)


def _field(name: str, source: str) -> str:
    """The dotted name of the parameter for messages; checks the name on the way."""
    field = f"space.{name}"
    if not is_option_name(name):
        why = "not an option's name"
        raise InputError(source, field, why=why, found=name, allowed=OPTION_NAME_ALLOWED)
    return field


def _shown(value: OptionValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _with_checked_default(parameter: Parameter, source: str) -> Parameter:
    if parameter.default is not None and not parameter.contains(parameter.default):
        raise InputError(
            source,
            f"space.{parameter.name}.default",
            found=parameter.default,
            allowed=parameter.describe(),
        )
    return parameter
