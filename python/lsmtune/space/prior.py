"""A Prior: how probable each number of a range is thought to be before anything is known.

A `normal` has the mean `mean` and the standard deviation `sd`. Of a `lognormal` the natural
logarithm has them. A `beta` is beta(`alpha`, `beta`) on the range, `low` standing for 0 and `high`
for 1.

Each is truncated to the range. The Optuna variable of a parameter with a prior is the *quantile*,
a float in [0, 1] named `<name>~`: whatever draws it uniformly draws the number from the prior, and
a sampler that learns sees probable numbers far apart and improbable ones close together.

A number owns the *cell* from halfway to the number below it to halfway to the one above, and with
it a share of the quantiles. The number at a quantile is found by bisection over the cells, and the
quantile of a number is the middle of its share, so one is exactly the inverse of the other. A float
without a step gets one: a power of ten, a billion of them or more in the range. A number more than
eight standard deviations above the mean owns no quantile that a double can hold: it is not in the
space, and the parameter says so.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Annotated, Literal

import scipy
from pydantic import ConfigDict, StrictFloat

from lsmtune.errors import FieldError
from lsmtune.model.fields import described
from lsmtune.space.range import Number, Range

# The two numbers that each distribution has.
_NUMBERS = {"normal": ("mean", "sd"), "lognormal": ("mean", "sd"), "beta": ("alpha", "beta")}
_ABOVE_ZERO = frozenset({"sd", "alpha", "beta"})
_FLOAT_STEPS = 10**9


@dataclass(frozen=True)
class Prior:
    """A distribution by name, and those of the four numbers that it has."""

    # Mappings may become a Prior also where they were never JSON; its numbers stay strict.
    __pydantic_config__ = ConfigDict(extra="forbid", defer_build=True)

    distribution: Annotated[
        Literal["normal", "lognormal", "beta"], described("normal, lognormal, beta")
    ]
    mean: Annotated[StrictFloat | None, described("of normal; of the logarithm in lognormal")] = (
        None
    )
    sd: Annotated[StrictFloat | None, described("standard deviation, as for mean")] = None
    alpha: Annotated[StrictFloat | None, described("first shape of beta")] = None
    beta: Annotated[StrictFloat | None, described("second shape of beta")] = None

    @property
    def parameters(self) -> tuple[float, float]:
        """The two numbers of this distribution."""
        one, two = _NUMBERS[self.distribution]
        return getattr(self, one), getattr(self, two)

    def check(self) -> Prior:
        """Itself. Raises `FieldError` for numbers that it lacks, does not have, or cannot take."""
        needed = _NUMBERS[self.distribution]
        for name in ("mean", "sd", "alpha", "beta"):
            if getattr(self, name) is not None and name not in needed:
                why = f"{self.distribution} has no {name}"
                raise FieldError(name, why=why, allowed=" and ".join(needed))
        for name, value in zip(needed, self.parameters, strict=True):
            allowed = "a number above 0" if name in _ABOVE_ZERO else "a finite number"
            if value is None:
                raise FieldError(name, why="is missing", allowed=allowed)
            if not math.isfinite(value) or (name in _ABOVE_ZERO and value <= 0):
                raise FieldError(name, found=value, allowed=allowed)
        return self

    def describe(self) -> str:
        """The prior in words, for messages: `normal(mean 8, sd 2)`."""
        (one, two), (first, second) = _NUMBERS[self.distribution], self.parameters
        return f"{self.distribution}({one} {first:g}, {two} {second:g})"

    def share_below(self, number: float, low: float, high: float) -> float:
        """The probability (0 to 1) of a number below `number`, if all lie from `low` to `high`."""
        if number <= low:
            return 0.0
        if number >= high:
            return 1.0
        first, second = self.parameters
        if self.distribution == "beta":
            return float(scipy.special.betainc(first, second, (number - low) / (high - low)))
        values = [number, low, high]
        if self.distribution == "lognormal":
            values = [math.log(x) if x > 0 else -math.inf for x in values]
        return _truncated_normal(*((x - first) / second for x in values))


def _truncated_normal(number: float, low: float, high: float) -> float:
    """The share below `number` of a standard normal between `low` and `high`, all in deviations."""
    if low > 0:
        # Mirrored, because what lies above a number far out has no room next to 1 in a double.
        return 1.0 - _truncated_normal(-number, -high, -low)
    ndtr = scipy.special.ndtr
    below, total = ndtr(number) - ndtr(low), ndtr(high) - ndtr(low)
    return float(below / total) if total > 0 else math.nan


@dataclass(frozen=True)
class PriorScale:
    """The numbers of a range in order, each with its share of the quantiles under a prior."""

    numbers: Range
    prior: Prior

    def value_at(self, quantile: float) -> Number:
        """The number whose cell holds `quantile` (0 to 1)."""
        return self._number(self._index_at(quantile))

    def drawn_of(self, value: Number) -> float:
        """The middle of the quantiles that `value_at` turns into `value`."""
        lower, upper = self.share_of(value)
        middle = (lower + upper) / 2
        return middle if middle < upper else lower

    def share_of(self, value: Number) -> tuple[float, float]:
        """The quantiles that `value_at` turns into `value`: from the first up to the second."""
        index = self._index_of(value)
        return self._share_below(index), self._share_below(index + 1)

    def contains(self, value: Number) -> bool:
        """Whether `value_at` can return `value`."""
        if not self.numbers.contains(value):
            return False
        index = self._index_of(value)
        return self._number(index) == value and self._index_at(self.drawn_of(value)) == index

    def describe(self) -> str:
        """What `contains` accepts, in words."""
        words = f"{self.numbers.describe()}, where {self.prior.describe()}"
        first, last = self.value_at(0.0), self.value_at(1.0)
        if (first, last) != (self._number(0), self._number(self._last)):
            words += f" reaches {first} to {last}"
        if not self.numbers.integer and self.numbers.step is None and self.numbers.bins is None:
            words += f" moves in steps of {self._step:f}"
        return words

    @cached_property
    def _step(self) -> Decimal:
        """The distance between two numbers of the range, but for `bins`."""
        if self.numbers.step is not None:
            return Decimal(str(self.numbers.step))
        if self.numbers.integer:
            return Decimal(1)
        width = Decimal(str(self.numbers.high)) - Decimal(str(self.numbers.low))
        return Decimal(10) ** ((width / _FLOAT_STEPS).adjusted())

    @cached_property
    def _last(self) -> int:
        """The index of `high`."""
        if self.numbers.bins is not None:
            return len(self.numbers.binned) - 1
        width = Decimal(str(self.numbers.high)) - Decimal(str(self.numbers.low))
        return math.ceil(width / self._step)

    def _number(self, index: int) -> Number:
        if self.numbers.bins is not None:
            return self.numbers.binned[index]
        if self.numbers.integer:
            return int(self.numbers.low) + index * int(self._step)
        if index == self._last:
            return float(self.numbers.high)
        return float(Decimal(str(self.numbers.low)) + index * self._step)

    def _index_of(self, value: Number) -> int:
        if self.numbers.bins is not None:
            return bisect_left(self.numbers.binned, value)
        steps = (Decimal(str(value)) - Decimal(str(self.numbers.low))) / self._step
        return self._last if value == self.numbers.high else round(steps)

    def _index_at(self, quantile: float) -> int:
        """The first index whose cell ends above `quantile`; for 1, the first that ends at 1."""
        lower, upper = 0, self._last
        while lower < upper:
            middle = (lower + upper) // 2
            end = self._share_below(middle + 1)
            if end > quantile or end >= 1.0:
                upper = middle
            else:
                lower = middle + 1
        return lower

    def _share_below(self, index: int) -> float:
        """The share of the quantiles before the cell of `index`; 1 after the last cell."""
        if index == 0 or index > self._last:
            start = self.support[0 if index == 0 else 1]
        else:
            before, number = self._number(index - 1), self._number(index)
            start = before + (number - before) / 2
        return self.prior.share_below(start, *self.support)

    @cached_property
    def support(self) -> tuple[float, float]:
        """Where the first cell begins and the last one ends.

        The outermost numbers own a whole cell each, like all others, so that none is less probable
        for being on the edge; a lognormal's begins at 0 at the least.
        """
        low, high = self._number(0), self._number(self._last)
        below = low - (self._number(1) - low) / 2
        above = high + (high - self._number(self._last - 1)) / 2
        return max(below, 0.0) if self.prior.distribution == "lognormal" else below, above


def check_prior(prior: Prior, numbers: Range, field: str) -> None:
    """Whether `prior` can be searched over the checked range `numbers`.

    Raises `FieldError` for a log scale (unless it places `bins`), because the prior itself says
    what is far apart; for a lognormal below zero; and where next to nothing of the prior lies
    within the range.
    """
    if numbers.log and numbers.bins is None:
        why = "a prior takes the place of the log scale"
        raise FieldError(field, why=why, allowed="no log; lognormal is the prior like it")
    if prior.distribution == "lognormal" and numbers.low < 0:
        why = f"a lognormal has no numbers below 0, and low is {numbers.low}"
        raise FieldError(field, why=why, allowed="a range from 0 upwards")
    low, high = PriorScale(numbers, prior).support
    if math.isnan(prior.share_below(low + (high - low) / 2, low, high)):
        why = f"{prior.describe()} has nothing within {numbers.low} to {numbers.high}"
        raise FieldError(field, why=why, allowed="a prior that overlaps the range")
