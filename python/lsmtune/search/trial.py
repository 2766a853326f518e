"""A trial of a Search: the handle that its caller holds, and what is known when it has ended."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from lsmtune.errors import InputError
from lsmtune.records.config import OptionValue
from lsmtune.records.measurement import Outcome


class Pruning(Protocol):
    """What a running trial has to know of its Search."""

    def report(self, number: int, step: int, value: float) -> None:
        """Takes an intermediate value of trial `number`."""
        ...

    def should_prune(self, number: int) -> bool:
        """Whether trial `number` should end here."""
        ...


@dataclass(frozen=True)
class Trial:
    """A trial that runs. `parameters` has the active parameters, and the options of every run."""

    number: int
    parameters: Mapping[str, OptionValue]
    _pruning: Pruning = field(repr=False, compare=False)
    _steps: list[int] = field(default_factory=list, repr=False, compare=False)

    def report(self, value: float, step: int | None = None) -> None:
        """The trial has come to `value`, of the only objective; `step` counts up from 1.

        Raises InputError for what is not a finite number.
        """
        if step is None:
            step = max(self._steps, default=0) + 1
        if isinstance(step, bool) or not isinstance(step, int) or step < 0:
            raise InputError("report", "step", found=step, allowed="a whole number, at least 0")
        self._pruning.report(self.number, step, finite("report", "value", value))
        self._steps.append(step)

    def is_of(self, search: Pruning) -> bool:
        """Whether `search` gave this trial."""
        return self._pruning is search

    def should_prune(self) -> bool:
        """Whether the trial looks so bad that it should end here: `tell(trial, pruned=True)`."""
        return self._pruning.should_prune(self.number)


@dataclass(frozen=True)
class FinishedTrial:
    """A trial that ended.

    `values` has one value per objective, None where the trial did not end `ok`; `metrics` all that
    was told. `violations` says by how much each constraint is broken, 0 or less where it holds.
    """

    number: int
    parameters: Mapping[str, OptionValue]
    outcome: Outcome
    values: tuple[float, ...] | None
    metrics: Mapping[str, float]
    violations: Mapping[str, float]

    @property
    def value(self) -> float | None:
        """The value of the first objective, which most searches have alone."""
        return None if self.values is None else self.values[0]

    @property
    def eligible(self) -> bool:
        """Whether it may be the best: it has values and breaks nothing."""
        return self.values is not None and all(v <= 0 for v in self.violations.values())


def finite(source: str, field: str, value: object) -> float:
    """`value` as a number to judge by. Raises InputError for anything else."""
    convert: Callable[[], object] | None = getattr(value, "__float__", None)
    if convert is None or isinstance(value, bool):
        raise InputError(source, field, found=value, allowed="a number")
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):  # an array, or a whole number beyond floats
        raise InputError(source, field, found=value, allowed="a finite number") from None
    if not math.isfinite(number):
        raise InputError(source, field, found=number, allowed="a finite number")
    return number
