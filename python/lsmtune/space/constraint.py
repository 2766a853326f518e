"""A Constraint: a condition that a configuration, or what was measured of it, has to meet."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from lsmtune.errors import InputError, nearest_name
from lsmtune.model.config import OptionValue
from lsmtune.space.expression import Expression, make_expression

# What the baseline measured of the only metric that a constraint names: a guard.
# `baseline.METRIC` is the same of any metric.
BASELINE = "baseline"


class ConstraintKind(StrEnum):
    """When a constraint can be checked."""

    OPTIONS = "options"  # before a run: it names only options and facts of the workload
    OUTCOME = "outcome"  # after a run: it names at least one metric


@dataclass(frozen=True)
class Constraint:
    """A condition as `text`, in one line; made by `make_constraint`.

    `full_names` maps each name of the text to the one under which its value is found. The four
    sets hold the full names of the options, metrics and facts among them, and the metrics of which
    the baseline's value is wanted: `write_amplification <= 1.5 * baseline`. The full name of that
    value is `baseline.write_amplification`.
    """

    text: str
    expression: Expression
    kind: ConstraintKind
    full_names: Mapping[str, str]
    option_names: frozenset[str]
    metric_names: frozenset[str]
    fact_names: frozenset[str]
    baseline_names: frozenset[str] = frozenset()

    def violation(self, values: Mapping[str, OptionValue]) -> float:
        """By how much it is broken, 0 or less where it holds; see `Expression.violation`.

        `values` are by full name. Raises `InputError` where the expression has no value for them.
        """
        names = self.full_names.items()
        return self.expression.violation({name: values[n] for name, n in names if n in values})

    def holds(self, values: Mapping[str, OptionValue]) -> bool:
        """Whether it holds for `values`, by full name. Raises as `violation`."""
        return self.violation(values) <= 0


def broken_by(
    constraints: Iterable[Constraint], cases: Sequence[Mapping[str, OptionValue]]
) -> Iterator[tuple[str, float]]:
    """Each of `constraints` that is broken: its text, and by how much in the worst of `cases`.

    Those after a broken one need no value; else raises as `Constraint.violation`.
    """
    is_broken = False
    for constraint in constraints:
        try:
            worst = max(map(constraint.violation, cases))
        except InputError:
            if not is_broken:
                raise
            continue
        if worst > 0:
            is_broken = True
            yield constraint.text, worst


def guard_limit(text: str) -> tuple[str, float] | None:
    """The only metric of the guard `text`, and how many times the baseline's value it may be.

    None where the guard names anything else, or its limit is no multiple of the baseline's value.
    """
    expression = make_expression(text, "guard", "")
    metrics = {name.removeprefix(f"{BASELINE}.") for name in expression.names - {BASELINE}}
    if len(metrics) != 1 or metrics == expression.names:
        return None
    (metric,) = metrics

    def holds(ratio: float, base: float = 1.0) -> bool:
        values = {metric: ratio * base, BASELINE: base, f"{BASELINE}.{metric}": base}
        return expression.violation(values) <= 0

    try:
        # By bisection: a guard may be any expression.
        low, high = (1.0, 1e6) if holds(1.0) else (1e-6, 1.0)
        while high > (1.0 + 1e-6) * low:
            middle = math.sqrt(low * high)
            low, high = (middle, high) if holds(middle) else (low, middle)
        # Not a lower bound, nor `baseline + 3`: 4 times a baseline of 1, 1.3 times one of 10.
        is_ratio = all(holds(low, base) and not holds(high, base) for base in (1.0, 10.0))
    except InputError:  # a division by zero, say
        return None
    return (metric, float(f"{low:.5g}")) if is_ratio else None


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
    name of the only option that ends so (`block_cache`). `baseline` is the baseline's value of the
    one metric that is named, `baseline.METRIC` that of any. Raises `InputError` for a text that is
    no condition or names nothing of the candidate, for a name that is none of these or that several
    options end in, and for `baseline` where not one metric is named.
    """
    expression = make_expression(text, source, field)
    if not expression.is_condition:
        why = "is a value, not a condition"
        raise InputError(source, field, why=why, found=text, allowed="a comparison such as a <= b")
    if not expression.names:
        why = "names no option, metric or fact"
        raise InputError(source, field, why=why, found=text)
    options, metrics = frozenset(option_names), frozenset(metric_names)
    of_baseline = {f"{BASELINE}.{metric}" for metric in metrics}
    known = options | metrics | frozenset(fact_names) | of_baseline
    full_names = {
        name: _full_name(name, options, known, source, field)
        for name in sorted(expression.names - {BASELINE})
    }
    used = frozenset(full_names.values())
    used_options = used & options
    used_metrics = (used & metrics) - options
    if BASELINE in expression.names:
        if len(used_metrics) != 1:
            why = f"{BASELINE} stands for the baseline's value of one metric"
            allowed = f"one metric beside it, or {BASELINE}.METRIC"
            raise InputError(source, field, why=why, found=text, allowed=allowed)
        full_names[BASELINE] = f"{BASELINE}.{min(used_metrics)}"
    from_baseline = frozenset(full_names.values()) & of_baseline
    if used <= of_baseline:
        why = "names nothing of the candidate, only the baseline's values"
        metric = min(from_baseline).removeprefix(f"{BASELINE}.")
        allowed = f"a metric of the candidate beside them, such as {metric} <= 2 * {BASELINE}"
        raise InputError(source, field, why=why, found=text, allowed=allowed)
    return Constraint(
        text=" ".join(text.split()),
        expression=expression,
        kind=ConstraintKind.OUTCOME if used_metrics or from_baseline else ConstraintKind.OPTIONS,
        full_names=MappingProxyType(full_names),
        option_names=used_options,
        metric_names=used_metrics,
        fact_names=used - used_options - used_metrics - of_baseline,
        baseline_names=frozenset(name.removeprefix(f"{BASELINE}.") for name in from_baseline),
    )


def _full_name(
    name: str, options: frozenset[str], known: frozenset[str], source: str, field: str
) -> str:
    if name in known:
        return name
    ending = sorted(option for option in options if option.endswith(f".{name}"))
    if not ending:
        why = "no such option, metric or fact"
        nearest = nearest_name(name, known | {o.rpartition(".")[2] for o in options})
        raise InputError(source, field, why=why, found=name, nearest=nearest)
    if len(ending) > 1:
        why = "the last part of several options"
        raise InputError(source, field, why=why, found=name, allowed=", ".join(ending))
    return ending[0]
