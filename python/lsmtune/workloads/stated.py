"""A workload as it was stated: by name, parameters and properties, with what is to be said of it.

Properties may be of YCSB or of an engine: the files that YCSB-cpp is called with hold both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lsmtune.errors import InputError
from lsmtune.records.workload import Workload
from lsmtune.workloads.family import WorkloadFamily
from lsmtune.workloads.make import complete_parameters, find_family, ignored_parameters
from lsmtune.workloads.properties_file import SETTING, Properties, Property
from lsmtune.workloads.ycsb_effect import proportions_remark, without_effect
from lsmtune.workloads.ycsb_properties import ALIASES, RECORDS

ENGINE_PREFIXES = ("leveldb.", "rocksdb.")
_OTHER_PREFIXES = ("basic.", "basicdb.", "lmdb.", "sqlite.", "wiredtiger.")
_SYNC = "rocksdb.sync"


@dataclass(frozen=True)
class Stated:
    """A workload, and how it was stated.

    `parameters` are all that have an effect, typed; `given` those that were stated, as they were.
    `engine` are properties of engines. `notes` say, a line each, what has no effect.
    """

    workload: Workload
    parameters: Mapping[str, Any] = field(default_factory=dict)
    given: Mapping[str, object] = field(default_factory=dict)
    engine: Properties = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def state_workload(
    name: str, parameters: Mapping[str, object], source: str, properties: Properties | None = None
) -> Stated:
    """The workload `name` with `properties`, and over them `parameters`, which `source` states.

    Raises InputError at the place where a property or a parameter stands that cannot be meant.
    """
    family = find_family(name, source)
    own, engine, notes = _split(family, properties or {})
    sync = engine.get(_SYNC)
    if sync is not None and sync.value.lower() in ("true", "1") and "durability" not in parameters:
        parameters = {**parameters, "durability": "sync"}
        notes.append(f"{sync.where}: {_SYNC}: read as durability: sync")
        del engine[_SYNC]
    _refuse_disagreement(own, parameters, source)
    given = {**{key: found.value for key, found in own.items()}, **parameters}
    try:
        complete = complete_parameters(name, given, source)
        workload = family.build(complete, source)
    except InputError as error:
        raise _at_its_place(error, own, parameters) from None
    ignored = (*ignored_parameters(name, given, source), *without_effect(given, complete))
    for key, why in ignored:
        where = own[key].where if key in own and key not in parameters else source
        notes.append(f"{where}: {key}: has no effect: {why}")
    remark = proportions_remark(given, complete)
    notes += [f"{source}: {remark}"] if remark else []
    without = {*dict(ignored), "workload"}
    effective = {key: value for key, value in given.items() if key not in without}
    return Stated(workload, complete, effective, engine, tuple(notes))


def _split(
    family: WorkloadFamily, properties: Properties
) -> tuple[dict[str, Property], dict[str, Property], list[str]]:
    """Properties of the workload, properties of engines, and what is said of all others."""
    own: dict[str, Property] = {}
    engine: dict[str, Property] = {}
    notes: list[str] = []
    for name, found in properties.items():
        if found.hidden_line is not None:
            notes.append(f"{found.where}: {name}: replaces the value of line {found.hidden_line}")
        if name.startswith(ENGINE_PREFIXES):
            engine[name] = found
        elif name.startswith(_OTHER_PREFIXES):
            notes.append(f"{found.where}: {name}: has no effect: it is of another database")
        elif RECORDS.name not in family.parameters:
            why = f"has no effect in {family.name}, which has no properties of YCSB"
            raise InputError(found.where, name, found=found.value, why=why)
        else:
            own[name] = found
    return own, engine, notes


def _refuse_disagreement(
    own: Mapping[str, Property], parameters: Mapping[str, object], source: str
) -> None:
    """Files are there to be changed by flags; one flag does not silently change another."""
    for key, value in parameters.items():
        if key in own and own[key].source == SETTING and own[key].value != str(value):
            why = f"says something else than {SETTING}, {own[key].value}"
            raise InputError(source, key, found=value, why=why, allowed="one of the two")


def _at_its_place(
    error: InputError, own: Properties, parameters: Mapping[str, object]
) -> InputError:
    """`error` with the place of the property that it is of, and the name that it has there."""
    names = (error.field, *(name for name, of in ALIASES.items() if of == error.field))
    stated = [name for name in names if name in own and name not in parameters]
    if error.field in parameters or not stated:
        return error
    return InputError(
        own[stated[0]].where,
        stated[0],
        found=error.found,
        allowed=error.allowed,
        nearest=error.nearest,
        why=error.why,
    )
