"""Which values of a catalogue's options to open an engine with, and beside which other options.

A case is one option at one value of its range, its special values or its choices. `settle` adds
what the catalogue says that the value demands: the conditions of the option, and whatever keeps
every constraint. `batches` puts cases that do not meddle with each other into one run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lsmtune.engines.catalogue import OptionInfo, in_version
from lsmtune.engines.library import version_key
from lsmtune.model.config import OptionValue
from lsmtune.space.expression import Expression, make_expression
from lsmtune.space.parameter import same_value

Catalogue = Mapping[str, OptionInfo]
Values = dict[str, OptionValue]


@dataclass(frozen=True)
class Case:
    """`name` at `value`, opened with `options`."""

    name: str
    value: OptionValue
    options: Mapping[str, OptionValue]


@dataclass(frozen=True)
class Rules:
    """The part of a catalogue that one version of the engine has."""

    catalogue: Catalogue
    version: str
    constraints: tuple[tuple[OptionInfo, Expression], ...]

    @property
    def defaults(self) -> Values:
        defaults = {i.name: i.default_in(self.version) for i in self.catalogue.values()}
        return {name: value for name, value in defaults.items() if value is not None}

    def broken(self, options: Values) -> list[Expression]:
        """Constraints that `options` over the defaults break; those of inactive options cannot."""
        values = self.defaults | options
        broken = {
            expression.text: expression
            for info, expression in self.constraints
            # The defaults keep every constraint, so only what was changed can break one; what has
            # no default constrains nothing until it is set.
            if info.name in values
            if info.name in options or not expression.names.isdisjoint(options)
            if expression.names <= values.keys() and active(info, values)
            if not expression.evaluate(values)
        }
        return list(broken.values())


def rules_of(catalogue: Catalogue, version: str) -> Rules:
    there = {name: info for name, info in catalogue.items() if info.exists_in(version)}
    constraints = tuple(
        (info, make_expression(text, "catalogue", info.name))
        for info in there.values()
        for text in constraint_in(info, version)
    )
    return Rules(there, version, constraints)


def constraint_in(info: OptionInfo, version: str) -> tuple[str, ...]:
    """The constraints of the engine's `version`."""
    return in_version(version, info.older_constraint, info.constraint)


def choices_in(info: OptionInfo, version: str) -> tuple[OptionValue, ...]:
    """The `choices` that `version` has."""
    since, key = info.choices_since, version_key(version)
    return tuple(c for c in info.choices if key >= version_key(since.get(str(c))))


def active(info: OptionInfo, values: Mapping[str, OptionValue]) -> bool:
    return all(
        any(same_value(values[name], value) for value in allowed)
        for name, allowed in info.condition.items()
        if name in values
    )


def values_of(info: OptionInfo, version: str) -> list[OptionValue]:
    """The default, both ends, every special value, every choice: each once."""
    listed = [info.default_in(version), info.low, info.high]
    listed += [value for value, _ in info.specials]
    listed += choices_in(info, version)
    found: list[OptionValue] = []
    for value in listed:
        if value is not None and not any(_same(value, other) for other in found):
            found.append(value)
    return found


def _same(one: OptionValue, other: OptionValue) -> bool:
    # To Python `True == 1`; to an engine they are two texts.
    return type(one) is type(other) and one == other


def settle(rules: Rules, name: str, value: OptionValue) -> Values:
    """`name=value` and what it demands; fails where the catalogue demands what cannot be."""
    options: Values = {name: value}
    _activate(rules, name, options)
    for _ in range(8):
        broken = rules.broken(options)
        if not broken:
            return options
        # Of the changes that mend the first one, the change that leaves the fewest others.
        options |= min(
            _repairs(rules, broken[0], options),
            key=lambda change: len(rules.broken(options | change)),
            default={},
        )
    raise AssertionError(f"{name}={value} with {options} breaks {[e.text for e in broken]}")


def _activate(rules: Rules, name: str, options: Values) -> None:
    """Says the conditions of `name`, even at their defaults, as every space that has it does."""
    for other, allowed in rules.catalogue[name].condition.items():
        had = [rules.defaults.get(other, ""), *choices_in(rules.catalogue[other], rules.version)]
        options.setdefault(other, next(h for h in had if any(same_value(h, a) for a in allowed)))
        _activate(rules, other, options)


def _repairs(rules: Rules, broken: Expression, options: Values) -> Iterator[Values]:
    """Changes of an option that `options` leaves open, after which `broken` holds."""
    for name in sorted(broken.names - options.keys()):
        for value in values_of(rules.catalogue[name], rules.version):
            if broken.evaluate(rules.defaults | options | {name: value}):
                yield {name: value}


def cases_of(rules: Rules, info: OptionInfo) -> list[Case]:
    return [
        Case(info.name, value, settle(rules, info.name, value))
        for value in values_of(info, rules.version)
    ]


def batches(rules: Rules, cases: list[Case]) -> list[list[Case]]:
    """The cases, in groups that can share a run: no option at two values, nothing broken."""
    found: list[tuple[list[Case], Values]] = []
    for case in cases:
        for together, options in found:
            if _fits(rules, case, options):
                together.append(case)
                options.update(case.options)
                break
        else:
            found.append(([case], dict(case.options)))
    return [together for together, _ in found]


def _fits(rules: Rules, case: Case, options: Values) -> bool:
    if not all(_same(options.get(name, value), value) for name, value in case.options.items()):
        return False
    merged = options | dict(case.options)
    values = rules.defaults | merged
    return not rules.broken(merged) and all(active(rules.catalogue[n], values) for n in merged)
