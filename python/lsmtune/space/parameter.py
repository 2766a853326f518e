"""A Parameter: one tunable engine option, its conditions and special values, its Optuna variables.

A parameter with special values has a second variable in Optuna, its *selector*, named `<name>?`:
a float in [0, 1] that is cut into shares, one per special value (in the order of the file, each
as wide as its weight) and the last for the range. A uniform draw picks each special value with
exactly its weight, which no categorical of Optuna can do, and TPE learns which share does well.
The range's own variable is suggested only when the selector picks it, so a special value leaves
no observation that means nothing.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution

from lsmtune.errors import FieldError
from lsmtune.model.config import OptionValue, option_text
from lsmtune.space.prior import Prior, PriorScale, check_prior
from lsmtune.space.range import Number, Range, check_range

OPTION_NAME_ALLOWED = "letters, digits and _, nested names joined by dots"
OPTION_NAME = r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*"


def is_option_name(name: str) -> bool:
    """Whether `name` can be an option of an engine; `?` and `/` are left to Optuna variables."""
    return re.fullmatch(OPTION_NAME, name, re.ASCII) is not None


# What RocksDB adds when it writes an object: to a Bloom filter its builder, which versions before
# 7.0 want to be told; to a Ribbon filter the level below which it is a Bloom filter, 0 where nobody
# says it, and newer versions twice (table/block_based/filter_policy.cc); prefixes by their class
# names.
_LONG_FORMS = (
    (re.compile(r"\{id=(ribbonfilter:[\d.]+:(-?\d+));bloom_before_level=\2;?\}"), r"\1"),
    (re.compile(r"(bloomfilter:[\d.]+):false"), r"\1"),
    (re.compile(r"(ribbonfilter:[\d.]+):0(?![\d.])"), r"\1"),
    (re.compile(r"rocksdb\.FixedPrefix\.(\d+)"), r"fixed:\1"),
    (re.compile(r"rocksdb\.CappedPrefix\.(\d+)"), r"capped:\1"),
)


@lru_cache(maxsize=4096)  # samplers compare the same choices for every candidate
def short_form(text: str) -> str:
    """A value's `text` as people write it: `bloomfilter:10:false` is `bloomfilter:10`."""
    for long, short in _LONG_FORMS:
        text = long.sub(short, text)
    return text


def same_value(one: OptionValue, other: OptionValue) -> bool:
    """Whether an engine would read both as the same value: `1` and `1.0`, `true` and `"true"`.

    `1` and `true` count as the same too: Optuna looks choices up with Python's equality.
    """
    return one == other or short_form(option_text(one)) == short_form(option_text(other))


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


def make_condition(name: str, values: OptionValue | Sequence[OptionValue], field: str) -> Condition:
    """A checked condition. Raises `FieldError` for an empty list and for repeated values."""
    listed = (values,) if isinstance(values, OptionValue) else tuple(values)
    if not listed:
        raise FieldError(field, why="is empty", allowed="at least one value")
    for index, value in enumerate(listed):
        if any(same_value(value, earlier) for earlier in listed[:index]):
            raise FieldError(field, why="the same value twice", found=value)
    return Condition(name, listed)


# --- special values

DEFAULT_WEIGHT_TOTAL = 0.2  # shared by the special values that state no weight of their own


@dataclass(frozen=True)
class Special:
    """A value outside the range, drawn with probability `weight` before anything is known."""

    value: Number
    weight: float


def make_specials(
    given: Sequence[tuple[Number, float | None]], numbers: Range, field: str
) -> tuple[Special, ...]:
    """Checked special values; those without a weight share `DEFAULT_WEIGHT_TOTAL` evenly.

    Raises `FieldError` for a value that is no number or inside the range, repeated values, and
    weights that leave the range no share.
    """
    unweighted = sum(1 for _, weight in given if weight is None)
    specials: list[Special] = []
    for index, (value, weight) in enumerate(given):
        place = f"{field}[{index}]"
        # What is no number equals nothing, itself included, so the space would not hold it.
        if not abs(value) <= sys.float_info.max and value not in (math.inf, -math.inf):
            raise FieldError(place, found=value, allowed="a number")
        if numbers.low <= value <= numbers.high:
            why = "a special value inside the range"
            outside = f"values outside {numbers.low} to {numbers.high}"
            raise FieldError(place, why=why, found=value, allowed=outside)
        if any(special.value == value for special in specials):
            raise FieldError(place, why="the same special value twice", found=value)
        if weight is not None and not 0 < weight < 1:
            raise FieldError(f"{place}.weight", found=weight, allowed="a number between 0 and 1")
        # As a file of the engine's is read: `0` of a real number is 0.0.
        typed = value if numbers.integer else float(value)
        specials.append(Special(typed, weight or DEFAULT_WEIGHT_TOTAL / unweighted))
    total = sum(special.weight for special in specials)
    if total >= 1:
        why = f"the weights leave nothing for the range: their sum is {total:g}"
        raise FieldError(field, why=why, allowed="a sum of less than 1")
    return tuple(specials)


# --- parameters

_SHARE = FloatDistribution(0.0, 1.0)  # of a selector, and of the quantiles of a prior


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
    def variable(self) -> str:
        """The name of the parameter's own Optuna variable."""
        if self.numbers is None:
            return self.name
        return self.name + ("~" if self.prior is not None else self.numbers.suffix)

    @property
    def selector(self) -> str | None:
        """The name of the Optuna variable that picks a special value or the range, if any."""
        return f"{self.name}?" if self.specials else None

    def is_active(self, values: Mapping[str, OptionValue]) -> bool:
        """Whether all its conditions hold among the active parameters' `values`."""
        return all(condition.holds(values) for condition in self.conditions)

    def distributions(self) -> dict[str, BaseDistribution]:
        """Every Optuna variable of this parameter and its distribution."""
        if self.numbers is None:
            return {self.variable: CategoricalDistribution(self.choices)}
        own = _SHARE if self.prior is not None else self.numbers.distribution()
        selector = {} if self.selector is None else {self.selector: _SHARE}
        return {self.variable: own, **selector}

    @cached_property
    def _scale(self) -> PriorScale | Range:
        """What turns values of the parameter's own variable into numbers and back; not of choices.

        Raises ValueError where there are choices.
        """
        if self.numbers is None:
            raise ValueError(f"{self.name} has choices")
        return self.numbers if self.prior is None else PriorScale(self.numbers, self.prior)

    def suggest(self, drawn: Callable[[str], Any]) -> OptionValue:
        """The value that the parameter's variables stand for, of which `drawn` gives those by name.

        Where a special value is picked, the range's own is not asked for.
        """
        if self.numbers is None:
            choice: OptionValue = drawn(self.variable)
            return choice
        if self.selector is not None:
            share, upper = drawn(self.selector), 0.0
            for special in self.specials:
                upper += special.weight
                if share < upper:
                    return special.value
        return self.value_of(drawn(self.variable))

    def value_of(self, drawn: Number) -> Number:
        """The number that a value of the parameter's own variable stands for; not of choices."""
        return self._scale.value_at(drawn)

    def quantiles_of(self, value: OptionValue) -> tuple[float, float]:
        """Of a parameter with a prior: what the range's variable is for `value`, from and up to."""
        if not isinstance(self._scale, PriorScale) or isinstance(value, str | bool):
            raise ValueError(f"{self.name} has no quantiles of {value}")
        return self._scale.share_of(value)

    def variables_of(self, value: OptionValue) -> dict[str, OptionValue]:
        """The values of the Optuna variables that `suggest` turns into `value`.

        `value` must be one that `contains` accepts.
        """
        if self.numbers is None or isinstance(value, str | bool):
            return {self.variable: next(c for c in self.choices if same_value(c, value))}
        variables: dict[str, OptionValue] = {}
        lower, upper = 0.0, 1.0  # the share of the selector that picks `value`
        for special in self.specials:
            if special.value == value:
                upper = lower + special.weight
                break
            lower += special.weight
        else:
            variables[self.variable] = self._scale.drawn_of(value)
        selector = {} if self.selector is None else {self.selector: (lower + upper) / 2}
        return {**selector, **variables}

    def contains(self, value: OptionValue) -> bool:
        """Whether `suggest` can return `value`."""
        if self.numbers is None:
            return any(same_value(choice, value) for choice in self.choices)
        if isinstance(value, str | bool):
            return False
        special = any(special.value == value for special in self.specials)
        return special or self._scale.contains(value)

    def spelled(self, value: OptionValue) -> OptionValue:
        """`value` as the parameter's own choices spell it; as it is where it is none of them."""
        return next((choice for choice in self.choices if same_value(choice, value)), value)

    def describe(self) -> str:
        """What `contains` accepts, in words, for messages."""
        if self.numbers is None:
            shown = (str(c).lower() if isinstance(c, bool) else str(c) for c in self.choices)
            return ", ".join(shown)
        specials = "".join(f", or {special.value}" for special in self.specials)
        return self._scale.describe() + specials


def make_number(
    name: str,
    numbers: Range,
    *,
    unit: str = "",
    specials: Sequence[tuple[Number, float | None]] = (),
    conditions: Sequence[Condition] = (),
    default: OptionValue | None = None,
    prior: Prior | None = None,
) -> Parameter:
    """A checked integer or float parameter, as `numbers` and `prior` say.

    Raises `FieldError` whose field is `space.<name>.<part>`.
    """
    field = f"space.{name}"
    check_range(numbers, field)
    if prior is not None:
        check_prior(prior, numbers, f"{field}.prior")
    checked = make_specials(specials, numbers, f"{field}.special")
    parameter = Parameter(
        name, numbers, (), checked, unit, tuple(conditions), default=default, prior=prior
    )
    return _checked(parameter)


def make_categorical(
    name: str,
    choices: Sequence[OptionValue],
    *,
    conditions: Sequence[Condition] = (),
    default: OptionValue | None = None,
) -> Parameter:
    """A checked categorical parameter.

    Raises `FieldError` whose field is `space.<name>.<part>`, for repeated or too few choices.
    """
    field = f"space.{name}.choices"
    for index, choice in enumerate(choices):
        if any(same_value(choice, earlier) for earlier in choices[:index]):
            raise FieldError(f"{field}[{index}]", why="the same choice twice", found=choice)
    if len(choices) < 2:
        allowed = "at least 2 choices; a single value belongs under options"
        raise FieldError(field, found=len(choices), allowed=allowed)
    return _checked(
        Parameter(name, choices=tuple(choices), conditions=tuple(conditions), default=default)
    )


def _checked(parameter: Parameter) -> Parameter:
    """The parameter, its name and its default found to be right."""
    name, default = parameter.name, parameter.default
    if not is_option_name(name):
        why = "not an option's name"
        raise FieldError(f"space.{name}", why=why, found=name, allowed=OPTION_NAME_ALLOWED)
    if default is not None and not parameter.contains(default):
        raise FieldError(f"space.{name}.default", found=default, allowed=parameter.describe())
    return parameter
