"""A Condition: a parameter is active only while another one has one of the given values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lsmtune.errors import InputError
from lsmtune.records.config import OptionValue
from lsmtune.space.values import same_value


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
