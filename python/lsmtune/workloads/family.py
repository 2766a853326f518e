"""What a family of workloads is: a name, its parameters, and how phases are made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lsmtune.records.workload import Workload
from lsmtune.workloads.parameter import WorkloadParameter

Given = Mapping[str, Any]
Build = Callable[[Given, str], Workload]
Prepare = Callable[[Mapping[str, object], str], dict[str, object]]


@dataclass(frozen=True)
class Figure:
    """A figure that a family stands on: what it is, its value, and who says so.

    `source` is empty for what nobody has published: `value` is then what stands in for it.
    """

    name: str
    value: str
    source: str = ""


@dataclass(frozen=True)
class WorkloadFamily:
    """Workloads of one name that differ in parameters.

    `build` takes every parameter, typed, and the source that errors name. `no_effect` maps the
    parameters that the family refuses to the reason; `ignored` those that it accepts and has no
    use for, which the user is told. `prepare` turns what was given, names of `also` included, into
    the names of `parameters`, and raises InputError for what cannot stand together. `sizes` are the
    parameters that grow with the workload: first the one that says how many keys there are.
    """

    name: str
    description: str
    parameters: Mapping[str, WorkloadParameter]
    build: Build
    no_effect: Mapping[str, str] = field(default_factory=dict)
    ignored: Mapping[str, str] = field(default_factory=dict)
    also: frozenset[str] = frozenset()
    prepare: Prepare = lambda given, _source: dict(given)
    figures: tuple[Figure, ...] = ()
    sizes: tuple[str, ...] = ("num",)
