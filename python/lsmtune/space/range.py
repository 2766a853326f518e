"""A Range of numbers: which numbers it holds, and its Optuna distribution.

`log` together with `step` is not in Optuna. An integer range with both is searched as the multiples
of its step: the Optuna variable is `value / step`, an integer on a log scale, under a name that
says so (`write_buffer_size/1048576`). Both bounds must then be multiples of the step. For floats
the pair is refused.

`bins` makes a range hold that many numbers, evenly spaced on its scale from `low` to `high`; of
integers, rounded ones, so that a narrow range has fewer. Floats are rounded to 12 significant
digits, so that they can be written down. The Optuna variable is then the index of the number, an
integer under a name that says so (`cache_size#50`).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from optuna.distributions import FloatDistribution, IntDistribution

from lsmtune.errors import FieldError

Number = int | float

# TPE and the random sampler compute in doubles: beyond this, integers are no longer exact.
INTEGER_MAX = 2**53

BINS_MAX = 10_000  # more than any sampler tells apart, and little to hold in memory
_DIGITS = 12
_LISTED_MAX = 12  # how many numbers a message lists one by one


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both reachable; integers when `integer`.

    With `bins`, only that many of them; it excludes `step`.
    """

    low: Number
    high: Number
    log: bool = False
    step: Number | None = None
    integer: bool = True
    bins: int | None = None

    @property
    def scale(self) -> int:
        """What an Optuna value is multiplied by: the step of a stepped log range, else 1."""
        return int(self.step) if self.log and self.step is not None and self.integer else 1

    @property
    def suffix(self) -> str:
        """What the name of the Optuna variable ends with, where it does not hold the number."""
        if self.bins is not None:
            return f"#{self.bins}"
        return "" if self.scale == 1 else f"/{self.scale}"

    @cached_property
    def binned(self) -> tuple[Number, ...]:
        """The numbers that `bins` leaves, ascending; empty without it."""
        if self.bins is None:
            return ()
        kind = int if self.integer else float
        inner = []
        for index in range(1, self.bins - 1):
            share = index / (self.bins - 1)
            if self.log:
                number = math.exp((1 - share) * math.log(self.low) + share * math.log(self.high))
            else:
                number = (1 - share) * self.low + share * self.high
            number = round(number) if self.integer else float(f"{number:.{_DIGITS}g}")
            # The logarithm's rounding error can carry a number over a bound that lies close by.
            inner.append(min(max(number, self.low), self.high))
        return tuple(sorted({kind(self.low), *inner, kind(self.high)}))

    def listed(self, limit: int) -> Sequence[Number] | None:
        """Every number, ascending; None for a continuum and for more than `limit` of them."""
        if self.bins is not None:
            return self.binned if len(self.binned) <= limit else None
        if not self.integer and self.step is None:
            return None
        step = self.step or 1
        count = round((self.high - self.low) / step) + 1
        if count > limit:
            return None
        numbers = (self.low + index * step for index in range(count))
        return [int(number) if self.integer else self.on_grid(number) for number in numbers]

    def distribution(self) -> IntDistribution | FloatDistribution:
        """The Optuna distribution, in units of `scale`; of the index, with `bins`."""
        if self.bins is not None:
            return IntDistribution(0, len(self.binned) - 1)
        if not self.integer:
            return FloatDistribution(self.low, self.high, log=self.log, step=self.step)
        low, high = int(self.low) // self.scale, int(self.high) // self.scale
        step = 1 if self.log or self.step is None else int(self.step)
        return IntDistribution(low, high, log=self.log, step=step)

    def value_at(self, drawn: Number) -> Number:
        """The number for a value of the Optuna variable."""
        if self.bins is not None:
            return self.binned[int(drawn)]
        return drawn * self.scale if self.integer else self.on_grid(drawn)

    def drawn_of(self, value: Number) -> Number:
        """The value of the Optuna variable for a number of the range; inverse of `value_at`."""
        if self.bins is not None:
            return bisect_left(self.binned, value)
        return int(value) // self.scale if self.integer else float(value)

    def nearest(self, value: float) -> Number:
        """The number of the range that is nearest to a finite `value`."""
        inside = min(max(value, self.low), self.high)
        if self.bins is not None:
            return min(self.binned, key=lambda number: abs(number - inside))
        if self.step is None:
            return round(inside) if self.integer else float(inside)
        steps = round(_steps(self.low, inside, self.step))
        return int(self.low) + steps * int(self.step) if self.integer else self.on_grid(inside)

    def contains(self, value: object) -> bool:
        """Whether `value` is a number that a search can reach."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        if self.bins is not None:
            return value in self.binned
        # First of all: what is endless, or no number, has no whole part to compare with.
        if not self.low <= value <= self.high:
            return False
        if self.integer and value != math.floor(value):
            return False
        return self.step is None or _steps(self.low, value, self.step) % 1 == 0

    def on_grid(self, value: float) -> float:
        """`value`, freed of the rounding that repeated addition of a float `step` leaves."""
        if self.step is None:
            return value
        steps = round(_steps(self.low, value, self.step))
        return float(Decimal(str(self.low)) + steps * Decimal(str(self.step)))

    def describe(self) -> str:
        """The range in words, for messages."""
        if 0 < len(self.binned) <= _LISTED_MAX:
            return ", ".join(str(number) for number in self.binned)
        if self.bins is not None:
            scale = " on a log scale" if self.log else ""
            return f"{len(self.binned)} values from {self.low} to {self.high}, evenly spaced{scale}"
        step = f" in steps of {self.step}" if self.step is not None else ""
        return f"{self.low} to {self.high}{step}"


def _steps(low: Number, value: Number, step: Number) -> Decimal:
    """How many steps `value` is from `low`, from the decimal text of each (0.1 is a tenth)."""
    return (Decimal(str(value)) - Decimal(str(low))) / Decimal(str(step))


def check_range(numbers: Range, field: str) -> None:
    """Whether `numbers` can be searched; `field` is the parameter's dotted name.

    Raises `FieldError` for bounds out of order or too far apart for a double, a log scale that
    reaches zero, steps that are too many or do not lead from `low` to `high`, and bins that are
    too few or too many.
    """
    low, high, step, bins = numbers.low, numbers.high, numbers.step, numbers.bins
    for bound, value in (("low", low), ("high", high)):
        # In this order: of a whole number of 400 digits `isfinite` raises OverflowError.
        if (numbers.integer and abs(value) > INTEGER_MAX) or not math.isfinite(value):
            allowed = f"-{INTEGER_MAX} to {INTEGER_MAX}" if numbers.integer else "a finite number"
            raise FieldError(f"{field}.{bound}", found=value, allowed=allowed)
    if low >= high:
        raise FieldError(f"{field}.low", found=low, allowed=f"less than high ({high})")
    if not math.isfinite(high - low):  # Optuna draws a share of it
        raise FieldError(f"{field}.high", found=high, allowed="bounds with a finite distance")
    if numbers.log and low <= 0:
        raise FieldError(f"{field}.low", found=low, allowed="more than 0 on a log scale")
    if numbers.log and not math.isfinite(high / low):
        raise FieldError(f"{field}.high", found=high, allowed="bounds with a finite ratio")
    if bins is not None and not 2 <= bins <= BINS_MAX:
        raise FieldError(f"{field}.bins", found=bins, allowed=f"2 to {BINS_MAX}")
    if bins is not None and step is not None:
        raise FieldError(f"{field}.bins", found=bins, why="bins and step exclude each other")
    if step is not None:
        _check_step(numbers, step, field)


def _check_step(numbers: Range, step: Number, field: str) -> None:
    low = numbers.low
    if not 0 < step < math.inf:
        raise FieldError(f"{field}.step", found=step, allowed="more than 0")
    if numbers.log and not numbers.integer:
        raise FieldError(f"{field}.step", found=step, why="a log scale of floats has no steps")
    if numbers.log and low % step != 0:
        first = math.ceil(low / step) * step
        allowed = f"a multiple of step ({step}) on a log scale; the first one is {first}"
        raise FieldError(f"{field}.low", found=low, allowed=allowed)
    steps = _steps(low, numbers.high, step)
    # Doubles, in which samplers compute, do not tell more of them apart.
    if steps > INTEGER_MAX:
        allowed = f"at most {INTEGER_MAX} steps from {low} to {numbers.high}"
        raise FieldError(f"{field}.step", found=step, allowed=allowed)
    if steps % 1 != 0:
        last = Decimal(str(low)) + math.floor(steps) * Decimal(str(step))
        why = f"steps of {step} from {low} do not reach it"
        allowed = f"{last.normalize():f} is the last value reached"
        raise FieldError(f"{field}.high", found=numbers.high, why=why, allowed=allowed)
