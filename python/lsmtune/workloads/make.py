"""From a workload's name and parameters to its phases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lsmtune.errors import InputError, nearest_name
from lsmtune.records.workload import Durability, PageCache, Phase, PhaseKind, Workload
from lsmtune.workloads.named import NAMED_WORKLOADS, NamedWorkload
from lsmtune.workloads.parameters import WORKLOAD_PARAMETERS, ParameterValue


def make_workload(name: str, parameters: Mapping[str, object], source: str) -> Workload:
    """The workload `name`; `parameters` not given take their defaults.

    Values may be text as a command line gives it. Raises `InputError` that names `source` and the
    field: an unknown name, a value out of bounds, a parameter without effect in this workload.
    """
    named = _named(name, source)
    given = complete_parameters(name, parameters, source)
    _check_shares(named, given, source)
    return Workload(
        name=named.name,
        phases=_phases(named, given),
        num=given["num"],
        key_bytes=given["key_bytes"],
        value_bytes=given["value_bytes"],
        compression_ratio=given["compression_ratio"],
        durability=Durability(given["durability"]),
        page_cache=PageCache(given["page_cache"]),
    )


def complete_parameters(name: str, parameters: Mapping[str, object], source: str) -> dict[str, Any]:
    """Every parameter that has an effect in the workload `name`, typed, defaults filled in.

    Raises `InputError` as `make_workload` does.
    """
    named = _named(name, source)
    complete: dict[str, ParameterValue] = {
        parameter.name: parameter.default
        for parameter in WORKLOAD_PARAMETERS.values()
        if parameter.name not in named.no_effect
    }
    for key, value in parameters.items():
        complete[key] = _parsed(named, key, value, source)
    if parameters.get("reads") is not None and complete.get("duration_s") is not None:
        raise InputError(
            source, "reads", why="has no effect together with duration_s", allowed="one of the two"
        )
    return complete


def _check_shares(named: NamedWorkload, given: Mapping[str, Any], source: str) -> None:
    if named.passes and given["num"] % given["threads"]:
        raise InputError(
            source,
            "threads",
            found=given["threads"],
            allowed=f"a divisor of num, {given['num']}",
            why="the threads share the keys evenly",
        )


def _named(name: str, source: str) -> NamedWorkload:
    if name not in NAMED_WORKLOADS:
        raise InputError(
            source,
            "name",
            found=name,
            allowed=", ".join(NAMED_WORKLOADS),
            nearest=nearest_name(name, NAMED_WORKLOADS),
        )
    return NAMED_WORKLOADS[name]


def _parsed(named: NamedWorkload, key: str, value: object, source: str) -> ParameterValue:
    effective = [known for known in WORKLOAD_PARAMETERS if known not in named.no_effect]
    if key not in WORKLOAD_PARAMETERS:
        raise InputError(
            source,
            key,
            why="unknown workload parameter",
            allowed=", ".join(effective),
            nearest=nearest_name(key, WORKLOAD_PARAMETERS),
        )
    if key in named.no_effect:
        raise InputError(source, key, why=f"has no effect in {named.name}: {named.no_effect[key]}")
    return WORKLOAD_PARAMETERS[key].parse(value, source)


def _phases(named: NamedWorkload, given: Mapping[str, Any]) -> tuple[Phase, ...]:
    if named.passes:
        return _passes(named, given)
    measure = Phase(
        name=named.name,
        kind=PhaseKind.MEASURE,
        operation=named.name,
        operations_per_thread=_operations_per_thread(given),
        duration_s=given.get("duration_s"),
        threads=given["threads"],
        rate_ops_s=given["rate_ops_s"],
        seek_nexts=given.get("seek_nexts", 0),
    )
    if not named.loaded:
        return (measure,)
    load = Phase("load", PhaseKind.LOAD, given["load"], operations_per_thread=given["num"])
    phases = [load, Phase("settle", PhaseKind.SETTLE)]
    if given.get("warmup_operations"):
        phases.append(
            Phase(
                name="warmup",
                kind=PhaseKind.WARMUP,
                operation=named.name,
                operations_per_thread=given["warmup_operations"],
                threads=given["threads"],
                seek_nexts=given.get("seek_nexts", 0),
            )
        )
    return (*phases, measure)


def _passes(named: NamedWorkload, given: Mapping[str, Any]) -> tuple[Phase, ...]:
    return tuple(
        Phase(
            name=name,
            kind=PhaseKind.MEASURE,
            operation=operation,
            operations_per_thread=given["num"] // given["threads"],
            threads=given["threads"],
            rate_ops_s=given["rate_ops_s"],
        )
        for name, operation in named.passes
    )


def _operations_per_thread(given: Mapping[str, Any]) -> int | None:
    if given.get("duration_s") is not None:
        return None
    reads: int | None = given.get("reads")
    num: int = given["num"]
    return num if reads is None else reads
