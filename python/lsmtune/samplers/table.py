"""All configurations of some values for each parameter, numbered, without listing them.

Conditions make a tree of the plain product: a parameter that is not active has no value. How many
configurations hang below a node depends only on which later parameters are already known to be
inactive, so the numbers are counted once per such set, and the configuration of a number is found
by walking down. A table of 10**30 configurations costs no more than one of ten.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lsmtune.records.config import OptionValue
from lsmtune.space import Parameter, Range, Space
from lsmtune.space.condition import Condition
from lsmtune.space.range import Number

_Off = frozenset[str]  # later parameters that are known to be inactive


@dataclass(frozen=True)
class _Branch:
    """Values of a parameter after which the same later parameters are off."""

    values: Sequence[OptionValue]
    off: _Off


class ConfigTable:
    """The configurations of `space` in which each parameter has one of its `values`.

    `values` maps every parameter's name to at least one value, none twice; a `range` will do.
    """

    def __init__(self, space: Space, values: Mapping[str, Sequence[OptionValue]]) -> None:
        self._order = space.evaluation_order
        self._dependents = {
            parameter.name: [
                (later.name, condition)
                for later in self._order
                for condition in later.conditions
                if condition.name == parameter.name
            ]
            for parameter in self._order
        }
        self._branches = {p.name: self._branches_of(p, values[p.name]) for p in self._order}
        self._counts: dict[tuple[int, _Off], int] = {}
        self.size: int = self._count(0, frozenset())

    def at(self, index: int) -> dict[str, OptionValue]:
        """The configuration of number `index`, from 0 to `size` - 1."""
        if not 0 <= index < self.size:
            raise IndexError(index)
        found: dict[str, OptionValue] = {}
        off: _Off = frozenset()
        for position, parameter in enumerate(self._order):
            if parameter.name in off:
                off = self._after_inactive(parameter, off)
                continue
            for branch in self._branches[parameter.name]:
                below = self._count(position + 1, off | branch.off)
                if index < len(branch.values) * below:
                    which, index = divmod(index, below)
                    found[parameter.name] = branch.values[which]
                    off |= branch.off
                    break
                index -= len(branch.values) * below
        return found

    def __iter__(self) -> Iterator[dict[str, OptionValue]]:
        """All of them, in order of their numbers."""
        return (self.at(index) for index in range(self.size))

    def _branches_of(
        self, parameter: Parameter, values: Sequence[OptionValue]
    ) -> tuple[_Branch, ...]:
        dependents = self._dependents[parameter.name]
        if not dependents:
            return (_Branch(values, frozenset()),)
        groups: dict[_Off, list[OptionValue]] = {}
        for value in values:
            off = frozenset(n for n, condition in dependents if not _allows(condition, value))
            groups.setdefault(off, []).append(value)
        return tuple(_Branch(group, off) for off, group in groups.items())

    def _after_inactive(self, parameter: Parameter, off: _Off) -> _Off:
        return off | {name for name, _ in self._dependents[parameter.name]}

    def _count(self, position: int, off: _Off) -> int:
        """Configurations of the parameters from `position` on; those in `off` are inactive."""
        if position == len(self._order):
            return 1
        later = frozenset(p.name for p in self._order[position:])
        key = (position, off & later)
        if key not in self._counts:
            self._counts[key] = self._count_anew(position, key[1])
        return self._counts[key]

    def _count_anew(self, position: int, off: _Off) -> int:
        parameter = self._order[position]
        if parameter.name in off:
            return self._count(position + 1, self._after_inactive(parameter, off))
        return sum(
            len(branch.values) * self._count(position + 1, off | branch.off)
            for branch in self._branches[parameter.name]
        )


def _allows(condition: Condition, value: OptionValue) -> bool:
    return condition.holds({condition.name: value})


def every_value(parameter: Parameter, limit: int) -> Sequence[OptionValue] | None:
    """All values of `parameter`, or None when there are more than `limit` (or no end of them)."""
    if parameter.numbers is None:
        return parameter.choices if len(parameter.choices) <= limit else None
    in_range = _every_number(parameter.numbers, limit)
    if in_range is None:
        return None
    # A prior can leave numbers at its ends so improbable that no draw reaches them.
    return [
        *(special.value for special in parameter.specials),
        *(number for number in in_range if parameter.contains(number)),
    ]


def _every_number(numbers: Range, limit: int) -> Sequence[Number] | None:
    if numbers.bins is not None:
        return numbers.binned if len(numbers.binned) <= limit else None
    if not numbers.integer and numbers.step is None:
        return None
    step = numbers.step or 1
    count = round((numbers.high - numbers.low) / step) + 1
    if count > limit:
        return None
    values = (numbers.low + index * step for index in range(count))
    return [int(value) if numbers.integer else numbers.on_grid(value) for value in values]


def whole_table(space: Space, limit: int) -> ConfigTable | None:
    """The table of every configuration of `space`, or None when there are more than `limit`."""
    values: dict[str, Sequence[OptionValue]] = {}
    for parameter in space.parameters:
        found = every_value(parameter, limit)
        if found is None:
            return None
        values[parameter.name] = found
    table = ConfigTable(space, values)
    return table if table.size <= limit else None
