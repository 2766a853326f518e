"""From the constraints of a study file to Constraints whose names are all known."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from lsmtune.engines.names import ENGINE_KINDS
from lsmtune.engines.options import catalogue_defaults, option_catalogue
from lsmtune.errors import InputError
from lsmtune.records.config import OptionValue
from lsmtune.records.objective import METRICS
from lsmtune.space import Constraint, ConstraintKind, Space, make_constraint

# What an expression can name besides options and metrics; `facts_of` has their values.
FACTS = ("num", "key_bytes", "value_bytes", "data_bytes", "threads", "memory_model_bytes")


def make_constraints(
    texts: Sequence[str],
    field: str,
    engine: str,
    space: Space,
    given: Sequence[Mapping[str, OptionValue]],
    metrics: Sequence[str],
    source: str,
) -> tuple[Constraint, ...]:
    """The constraints `texts` of `field`.

    `given` are the mappings of options that the study sets outside the space, those of every run
    first. Raises `InputError` for a text that is no expression, and for a name that is no option,
    metric or fact, or an option that some candidate leaves alone and of which neither the study
    nor the catalogue knows a default.
    """
    catalogue = option_catalogue(engine) if engine in ENGINE_KINDS else {}
    set_by_study = {p.name for p in space.parameters} | {name for g in given for name in g}
    options = sorted(set_by_study | catalogue.keys())
    with_value = catalogue_defaults(engine).keys() | always_known(space) | given[0].keys()
    made = []
    for index, text in enumerate(texts):
        place = f"{field}[{index}]"
        constraint = make_constraint(text, options, metrics, FACTS, source, place)
        refuse_unknown(constraint, with_value, source, place)
        made.append(constraint)
    return tuple(made)


def always_known(space: Space) -> set[str]:
    """The parameters that have a value in every configuration of `space`, or a default."""
    return {p.name for p in space.parameters if not p.conditions or p.default is not None}


def refuse_unknown(
    constraint: Constraint, with_value: Collection[str], source: str, place: str
) -> None:
    """Raises `InputError` for an option of `constraint` that is not among `with_value`."""
    for name in sorted(constraint.option_names):
        if name not in with_value:
            why = f"{name} has no value that is known here while nothing sets it"
            allowed = f"{name} under options, or in the space with a default"
            raise InputError(source, place, why=why, allowed=allowed)


def outcome_only(
    constraints: Sequence[Constraint], field: str, source: str
) -> tuple[Constraint, ...]:
    """`constraints`, each of which must name a metric. Raises `InputError` otherwise."""
    for index, constraint in enumerate(constraints):
        if constraint.kind is not ConstraintKind.OUTCOME:
            why = "names no metric"
            raise InputError(source, f"{field}[{index}]", why=why, allowed=", ".join(METRICS))
    return tuple(constraints)
