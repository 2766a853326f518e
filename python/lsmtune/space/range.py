"""A Range of numbers and its Optuna distribution.

`log` together with `step` is not in Optuna. An integer range with both is searched as the multiples
of its step: the Optuna variable is `value / step`, an integer on a log scale, under a name that
says so (`write_buffer_size/1048576`). Both bounds must then be multiples of the step. For floats
the pair is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

from optuna.distributions import FloatDistribution, IntDistribution

from lsmtune.errors import InputError

Number = int | float

# TPE and the random sampler compute in doubles: beyond this, integers are no longer exact.
INTEGER_MAX = 2**53


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both reachable; integers when `integer`."""

    low: Number
    high: Number
    log: bool = False
    step: Number | None = None
    integer: bool = True

    @property
    def scale(self) -> int:
        """What an Optuna value is multiplied by: the step of a stepped log range, else 1."""
        return int(self.step) if self.log and self.step is not None and self.integer else 1

    def distribution(self) -> IntDistribution | FloatDistribution:
        """The Optuna distribution, in units of `scale`."""
        if not self.integer:
            return FloatDistribution(self.low, self.high, log=self.log, step=self.step)
        low, high = int(self.low) // self.scale, int(self.high) // self.scale
        step = 1 if self.log or self.step is None else int(self.step)
        return IntDistribution(low, high, log=self.log, step=step)

    def contains(self, value: object) -> bool:
        """Whether `value` is a number that a search can reach."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        if self.integer and value != math.floor(value):
            return False
        if not self.low <= value <= self.high:
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
        step = f" in steps of {self.step}" if self.step is not None else ""
        return f"{self.low} to {self.high}{step}"


def _steps(low: Number, value: Number, step: Number) -> Decimal:
    """How many steps `value` is from `low`, from the decimal text of each (0.1 is a tenth)."""
    return (Decimal(str(value)) - Decimal(str(low))) / Decimal(str(step))


def make_range(numbers: Range, source: str, field: str) -> Range:
    """`numbers` if it is a range that can be searched; `field` is the parameter's dotted name.

    Raises `InputError` for bounds out of order, a log scale that reaches zero, and steps that do
    not lead from `low` to `high`.
    """
    for bound in ("low", "high"):
        value = getattr(numbers, bound)
        if not math.isfinite(value) or (numbers.integer and abs(value) > INTEGER_MAX):
            allowed = f"-{INTEGER_MAX} to {INTEGER_MAX}" if numbers.integer else "a finite number"
            raise InputError(source, f"{field}.{bound}", found=value, allowed=allowed)
    if numbers.low >= numbers.high:
        raise InputError(
            source, f"{field}.low", found=numbers.low, allowed=f"less than high ({numbers.high})"
        )
    if numbers.log and numbers.low <= 0:
        raise InputError(
            source, f"{field}.low", found=numbers.low, allowed="more than 0 on a log scale"
        )
    if numbers.step is not None:
        _check_step(numbers, numbers.step, source, field)
    return numbers


def _check_step(numbers: Range, step: Number, source: str, field: str) -> None:
    if not math.isfinite(step) or step <= 0:
        raise InputError(source, f"{field}.step", found=step, allowed="more than 0")
    if numbers.log and not numbers.integer:
        raise InputError(
            source, f"{field}.step", found=step, why="a log scale of floats has no steps"
        )
    if numbers.log and numbers.low % step != 0:
        first = math.ceil(numbers.low / step) * step
        raise InputError(
            source,
            f"{field}.low",
            found=numbers.low,
            allowed=f"a multiple of step ({step}) on a log scale; the first one is {first}",
        )
    steps = _steps(numbers.low, numbers.high, step)
    if steps % 1 != 0:
        reachable = Decimal(str(numbers.low)) + math.floor(steps) * Decimal(str(step))
        raise InputError(
            source,
            f"{field}.high",
            found=numbers.high,
            why=f"steps of {step} from {numbers.low} do not reach it",
            allowed=f"{reachable.normalize():f} is the last value reached",
        )
