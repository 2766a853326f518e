"""A Space: parameters with conditions, in an order in which each can be evaluated."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from optuna.distributions import BaseDistribution

from lsmtune.errors import FieldError, nearest_name
from lsmtune.model.config import OptionValue, option_text
from lsmtune.space.parameter import Condition, Parameter


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Let Optuna warn but not chat, for as long as needed.

    The level goes back to what the embedding program had set.
    """
    logger = logging.getLogger("optuna")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


@dataclass(frozen=True)
class Space:
    """`parameters` in the order of the study file; made by `make_space`, which checks them.

    `evaluation_order` holds the same parameters, each after those its conditions name; ties go by
    name, so that the order of the study file changes no random draw.
    """

    parameters: tuple[Parameter, ...]
    evaluation_order: tuple[Parameter, ...]

    @cached_property
    def by_name(self) -> Mapping[str, Parameter]:
        """The parameters by name."""
        return {parameter.name: parameter for parameter in self.parameters}

    def __getitem__(self, name: str) -> Parameter:
        """The parameter `name`; `KeyError` when there is none."""
        return self.by_name[name]

    def suggest(self, drawn: Callable[[str], Any]) -> dict[str, OptionValue]:
        """Values for the active parameters; the others are absent.

        `drawn` gives the value of an Optuna variable by its name, and is asked once for each that
        decides something.
        """
        values: dict[str, OptionValue] = {}
        for parameter in self.evaluation_order:
            if parameter.is_active(values):
                values[parameter.name] = parameter.suggest(drawn)
        return values

    def distributions(self) -> dict[str, BaseDistribution]:
        """Every Optuna variable of the space (selectors `<name>?` included); not to be changed."""
        return self._distributions

    @cached_property
    def _distributions(self) -> dict[str, BaseDistribution]:
        return {
            variable: distribution
            for parameter in self.evaluation_order
            for variable, distribution in parameter.distributions().items()
        }

    def contains(self, options: Mapping[str, OptionValue]) -> bool:
        """Whether `suggest` can return `options`: all active parameters, and nothing else."""
        active = [p for p in self.evaluation_order if p.is_active(options)]
        return options.keys() == {p.name for p in active} and all(
            parameter.contains(options[parameter.name]) for parameter in active
        )

    def variables_of(self, options: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
        """The Optuna variables (as for `enqueue_trial`) that `suggest` turns into `options`.

        Raises `ValueError` when `options` is not in the space.
        """
        if not self.contains(options):
            raise ValueError(f"not in the space: {dict(options)}")
        variables: dict[str, OptionValue] = {}
        for parameter in self.evaluation_order:
            if parameter.name in options:
                variables |= parameter.variables_of(options[parameter.name])
        return variables

    def point_of(
        self, options: Mapping[str, OptionValue], defaults: Mapping[str, OptionValue] | None = None
    ) -> dict[str, OptionValue] | None:
        """`options` as a point of the space; None when they lie outside (`outside` says why).

        Options that are no parameters are left out; a parameter that they leave alone has its
        default: that of `defaults`, or else its own.
        """
        values = self._filled(options, defaults or {})
        return values if self.contains(values) else None

    def outside(
        self, options: Mapping[str, OptionValue], defaults: Mapping[str, OptionValue] | None = None
    ) -> str:
        """The first parameter that keeps `options` out of the space, and why; empty for none."""
        values = self._filled(options, defaults or {})
        for parameter in self.evaluation_order:
            if not parameter.is_active(values):
                continue
            if parameter.name not in values:
                return f"{parameter.name} has no value and no default that is known"
            if not parameter.contains(values[parameter.name]):
                shown = option_text(values[parameter.name])
                return f"{parameter.name} is {shown}; allowed: {parameter.describe()}"
        return ""

    def _filled(
        self, options: Mapping[str, OptionValue], defaults: Mapping[str, OptionValue]
    ) -> dict[str, OptionValue]:
        values: dict[str, OptionValue] = {}
        for parameter in self.evaluation_order:
            if not parameter.is_active(values):
                continue
            default = defaults.get(parameter.name, parameter.default)
            value = options.get(parameter.name, default)
            if value is not None:
                values[parameter.name] = parameter.spelled(value)
        return values


def make_space(parameters: Sequence[Parameter]) -> Space:
    """A checked space of at least one parameter.

    Raises `FieldError` for conditions on unknown parameters, on themselves, in a circle, or on
    values that can never be.
    """
    if not parameters:
        raise FieldError("space", why="has no parameters", allowed="at least one")
    by_name = {parameter.name: parameter for parameter in parameters}
    for parameter in parameters:
        for condition in parameter.conditions:
            _check_condition(parameter.name, condition, by_name)
    waiting = sorted(parameters, key=lambda parameter: parameter.name)
    ordered: dict[str, Parameter] = {}
    while waiting:
        ready = next((p for p in waiting if all(c.name in ordered for c in p.conditions)), None)
        if ready is None:
            # Each waits for another of them: following that leads into the circle.
            names = {p.name for p in waiting}
            after = {p.name: next(c.name for c in p.conditions if c.name in names) for p in waiting}
            path = [waiting[0].name]
            while after[path[-1]] not in path:
                path.append(after[path[-1]])
            circle = path[path.index(after[path[-1]]) :]
            why = f"conditions in a circle: {' -> '.join([*circle, circle[0]])}"
            raise FieldError(f"space.{circle[0]}.when", why=why)
        waiting.remove(ready)
        ordered[ready.name] = ready
    return Space(tuple(parameters), tuple(ordered.values()))


def _check_condition(name: str, condition: Condition, by_name: Mapping[str, Parameter]) -> None:
    field = f"space.{name}.when.{condition.name}"
    if condition.name == name:
        raise FieldError(field, why="a parameter cannot depend on itself")
    if condition.name not in by_name:
        known = [other for other in by_name if other != name]
        allowed = ", ".join(known) or "no condition, as there is no other parameter"
        nearest = nearest_name(condition.name, known)
        why = "no such parameter in space"
        raise FieldError(field, why=why, allowed=allowed, nearest=nearest)
    other = by_name[condition.name]
    for value in condition.values:
        if not other.contains(value):
            allowed = f"{other.describe()} (the values of {other.name})"
            raise FieldError(field, found=value, allowed=allowed, known=map(str, other.choices))
