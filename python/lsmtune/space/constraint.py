"""A Constraint: a condition that a configuration, or what was measured of it, has to meet."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from lsmtune.errors import InputError, nearest_name
from lsmtune.model.config import OptionValue
from lsmtune.space.expression import Expression, make_expression


class ConstraintKind(StrEnum):
    """When a constraint can be checked."""

    OPTIONS = "options"  # before a run: it names only options and facts of the workload
    OUTCOME = "outcome"  # after a run: it names at least one metric


@dataclass(frozen=True)
class Constraint:
    """A condition as `text`, in one line; made by `make_constraint`.

    `full_names` maps each name of the text to the one under which its value is found. The three
    sets hold the full names of the options, metrics and facts among them.
    """

    text: str
    expression: Expression
    kind: ConstraintKind
    full_names: Mapping[str, str]
    option_names: frozenset[str]
    metric_names: frozenset[str]
    fact_names: frozenset[str]

    def resolve(self, name: str) -> str:
        """The full name of a name of the text; `KeyError` for one that is not in it."""
        return self.full_names[name]

    def violation(self, values: Mapping[str, OptionValue]) -> float:
        """By how much it is broken, 0 or less where it holds; see `Expression.violation`.

        `values` are by full name. Raises `InputError` where the expression has no value for them.
        """
        return self.expression.violation(self._as_written(values))

    def holds(self, values: Mapping[str, OptionValue]) -> bool:
        """Whether it holds for `values`, by full name. Raises as `violation`."""
        return self.violation(values) <= 0

    def _as_written(self, values: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
        return {
            written: values[full] for written, full in self.full_names.items() if full in values
        }


def make_constraint(
    text: str,
    option_names: Iterable[str],
    metric_names: Iterable[str],
    fact_names: Iterable[str],
    source: str,
    field: str,
) -> Constraint:
    """A checked constraint; `field` is its dotted name in `source`.

    A name is an option's full name, else a metric's, else a fact's, else the last part of the full
    name of the only option that ends so (`block_cache`). Raises `InputError` for a text that is no
    condition or names nothing, and for a name that is none of these or that several options end in.
    """
    expression = make_expression(text, source, field)
    if not expression.is_condition:
        why = "is a value, not a condition"
        raise InputError(source, field, why=why, found=text, allowed="a comparison such as a <= b")
    if not expression.names:
        why = "names no option, metric or fact"
        raise InputError(source, field, why=why, found=text)
    known = _Names(frozenset(option_names), frozenset(metric_names), frozenset(fact_names))
    full_names = {name: known.full_name(name, source, field) for name in sorted(expression.names)}
    used = frozenset(full_names.values())
    options = used & known.options
    metrics = (used & known.metrics) - options
    return Constraint(
        text=" ".join(text.split()),
        expression=expression,
        kind=ConstraintKind.OUTCOME if metrics else ConstraintKind.OPTIONS,
        full_names=MappingProxyType(full_names),
        option_names=options,
        metric_names=metrics,
        fact_names=used - options - metrics,
    )


@dataclass(frozen=True)
class _Names:
    """What a constraint may name."""

    options: frozenset[str]
    metrics: frozenset[str]
    facts: frozenset[str]

    def full_name(self, name: str, source: str, field: str) -> str:
        if name in self.options | self.metrics | self.facts:
            return name
        ending = sorted(option for option in self.options if option.endswith(f".{name}"))
        if len(ending) == 1:
            return ending[0]
        if ending:
            why = "the last part of several options"
            raise InputError(source, field, why=why, found=name, allowed=", ".join(ending))
        raise InputError(
            source,
            field,
            why="no such option, metric or fact",
            found=name,
            nearest=nearest_name(name, self._spellings()),
        )

    def _spellings(self) -> Collection[str]:
        last_parts = {option.rpartition(".")[2] for option in self.options}
        return self.options | self.metrics | self.facts | last_parts
