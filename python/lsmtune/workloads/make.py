"""From a workload's name and parameters to its phases, whatever its family."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lsmtune.errors import InputError, nearest_name
from lsmtune.records.workload import Workload
from lsmtune.workloads.family import WorkloadFamily
from lsmtune.workloads.registry import FAMILIES


def make_workload(name: str, parameters: Mapping[str, object], source: str) -> Workload:
    """The workload `name`; `parameters` not given take their defaults.

    Values may be text as a command line gives it. Raises `InputError` that names `source` and the
    field: an unknown name, a value out of bounds, a parameter without effect in this workload.
    """
    return find_family(name, source).build(complete_parameters(name, parameters, source), source)


def complete_parameters(name: str, parameters: Mapping[str, object], source: str) -> dict[str, Any]:
    """Every parameter that has an effect in the workload `name`, typed, defaults filled in.

    Raises `InputError` as `make_workload` does.
    """
    family = find_family(name, source)
    _check_names(family, parameters, source)
    prepared = family.prepare(parameters, source)
    complete: dict[str, Any] = {p.name: p.default for p in family.parameters.values()}
    for key, value in prepared.items():
        complete[key] = family.parameters[key].parse(value, source)
    return complete


def ignored_parameters(
    name: str, parameters: Mapping[str, object], source: str
) -> tuple[tuple[str, str], ...]:
    """The parameters given that have no effect, each with the reason, in the order given."""
    family = find_family(name, source)
    return tuple((key, family.ignored[key]) for key in parameters if key in family.ignored)


def find_family(name: str, source: str, field: str = "name") -> WorkloadFamily:
    """The family `name`. Raises `InputError` with the nearest name for one that is none."""
    if name not in FAMILIES:
        raise InputError(
            source,
            field,
            found=name,
            allowed=", ".join(FAMILIES),
            nearest=nearest_name(name, FAMILIES),
        )
    return FAMILIES[name]


def _check_names(family: WorkloadFamily, parameters: Mapping[str, object], source: str) -> None:
    for key in parameters:
        if key in family.no_effect:
            why = f"has no effect in {family.name}: {family.no_effect[key]}"
            raise InputError(source, key, why=why)
        if key not in {*family.parameters, *family.ignored, *family.also}:
            raise InputError(
                source,
                key,
                why="unknown workload parameter",
                allowed=", ".join(family.parameters),
                nearest=nearest_name(key, [*family.parameters, *family.also, *family.ignored]),
            )
