"""A workload as it is stated: by the name of its family, parameters and properties.

Properties may be of YCSB or of an engine: the files that YCSB-cpp is called with hold both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lsmtune import plugins
from lsmtune.engines.properties import SETTING, Properties, Property
from lsmtune.errors import InputError, by_name, nearest_name
from lsmtune.model.setting import read_settings
from lsmtune.model.workload import Workload
from lsmtune.workloads.db_bench import DB_BENCH_FAMILIES
from lsmtune.workloads.parameter import WorkloadFamily
from lsmtune.workloads.production import PRODUCTION_FAMILIES
from lsmtune.workloads.ycsb import CONTEST, YCSB_FAMILIES
from lsmtune.workloads.ycsb_properties import (
    ALIASES,
    HISTOGRAM,
    RECORDS,
    proportions_remark,
    without_effect,
)

FAMILIES: plugins.Plugins[WorkloadFamily] = plugins.Plugins(
    plugins.WORKLOADS,
    {
        family.name: family
        for family in (*DB_BENCH_FAMILIES, *YCSB_FAMILIES, CONTEST, *PRODUCTION_FAMILIES)
    },
)
WORKLOAD_NAMES = tuple(FAMILIES)


def make_workload(name: str, parameters: Mapping[str, object], source: str) -> Workload:
    """The workload `name`; `parameters` not given take their defaults.

    Values may be text as a command line gives it. Raises `InputError` that names `source` and the
    field: an unknown name, a value out of bounds, a parameter without effect in this workload.
    """
    return state_workload(name, parameters, source).workload


def complete_parameters(name: str, parameters: Mapping[str, object], source: str) -> dict[str, Any]:
    """Every parameter that has an effect in the workload `name`, typed, defaults filled in.

    Raises `InputError` as `make_workload` does.
    """
    family = by_name(FAMILIES, name, source, "name")
    for key in parameters:
        # Of an alias the family may refuse what it stands for.
        refused = next((n for n in (key, ALIASES.get(key)) if n in family.no_effect), None)
        if refused is not None:
            why = f"has no effect in {family.name}: {family.no_effect[refused]}"
            raise InputError(source, key, why=why)
        known = (*family.parameters, *family.also, *family.ignored)
        if key not in known:
            why, allowed = "unknown workload parameter", ", ".join(family.parameters)
            nearest = nearest_name(key, known)
            raise InputError(source, key, why=why, allowed=allowed, nearest=nearest)
    prepared = family.prepare(parameters, source)
    return dict(read_settings(family.parameters.values(), prepared, source))


# --- What to set for a workload of another size, in the words of its family.


def sizes_for(workload: Workload, num: int) -> dict[str, int]:
    """The parameters of its family that give `workload` `num` keys, operations in proportion."""
    family = FAMILIES.get(workload.name)
    keys, *others = ("num",) if family is None else family.sizes
    last = workload.phases[-1].operations
    if last is None:
        return {keys: num}
    return {keys: num, **dict.fromkeys(others, _two_digits(last * (num / workload.num)))}


def _two_digits(wanted: float) -> int:
    """`wanted`, rounded up to two digits."""
    unit = int(10 ** max(0, len(str(math.ceil(wanted))) - 2))
    return math.ceil(round(wanted / unit, 6)) * unit


# Parameters that end the measure phase, where they are set: with more keys alone it is no longer.
_LASTING = ("duration_s", "maxexecutiontime")
_COUNTED = "reads"


def size_advice(
    workload: Workload,
    num: int,
    parameters: Mapping[str, Any],
    form: str = "-w {}={}",
    between: str = " ",
) -> str:
    """What to set for runs that are as much longer: `-w recordcount=N -w operationcount=M`, each in
    this `form`. Of a workload that a duration alone ends, that is the duration, where its name is
    known: that of a plugin's own parameter is not.

    `parameters` are those that the workload was made with. One without any is from a workload file,
    which flags cannot change, also where it has the name of a family; or it replays a trace.
    """
    times, measured = num / workload.num, workload.measured_phases
    counted = any(phase.operations_whole is not None for phase in measured)
    if parameters:
        lasting = {n: parameters[n] for n in _LASTING if parameters.get(n) is not None}
        sizes = sizes_for(workload, num) if counted or not lasting else {}
        if parameters.get(_COUNTED) is not None:
            sizes[_COUNTED] = _two_digits(parameters[_COUNTED] * times)
        sizes |= {name: math.ceil(lasts_s * times) for name, lasts_s in lasting.items()}
        return between.join(form.format(name, value) for name, value in sizes.items())
    if any(phase.replay is not None for phase in workload.phases):
        return f"a trace {times:.3g} times as long"
    lasts = any(phase.duration_s is not None for phase in measured)
    grows = ["num", "the operations"] if counted else []
    grows += ["the durations"] if lasts else []
    listed = " and ".join(filter(None, [", ".join(grows[:-1]), grows[-1]]))
    return f"{times:.3g} times {listed} of the phases in its file"


# --- A workload with its properties, and what is to be said of them.

ENGINE_PREFIXES = ("leveldb.", "rocksdb.")
_OTHER_PREFIXES = ("basic.", "basicdb.", "lmdb.", "sqlite.", "wiredtiger.")
_SYNC, _OF_SYNC = "rocksdb.sync", "rocksdb"


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
    name: str,
    parameters: Mapping[str, object],
    source: str,
    properties: Properties | None = None,
    folder: Path = Path(),
    engine_name: str = "",
) -> Stated:
    """The workload `name` with `properties`, and over them `parameters`, which `source` states.

    A file that one of them names is from `folder`. `engine_name` is the engine that performs it,
    where that is known: a property of another one says nothing of it.

    Raises InputError at the place where a property or a parameter stands that cannot be meant.
    """
    family = by_name(FAMILIES, name, source, "name")
    own, engine, notes = _split(family, properties or {})
    sync = engine.get(_SYNC) if engine_name in ("", _OF_SYNC) else None
    if sync is not None and sync.value.lower() in ("true", "1"):
        order = [*(properties or {}), *parameters]  # of the two, what is stated last counts
        if "durability" not in order[order.index(_SYNC) :]:
            own["durability"] = replace(sync, value="sync")
            notes.append(f"{sync.where}: {_SYNC}: read as durability: sync")
            del engine[_SYNC]
    # Files are there to be changed by later ones and by flags, also where they have a property by
    # its other name, as exported ones have; one flag does not silently change another.
    names = {key: ALIASES.get(key, key) for key in (*own, *parameters)}
    flags = [*parameters, *(key for key, each in own.items() if each.source == SETTING)]
    changed = {names[key] for key in flags}
    last_source = {names[key]: each.source for key, each in own.items()}
    own = {
        key: each
        for key, each in own.items()
        if each.source == SETTING
        or (each.source == last_source[names[key]] and names[key] not in changed)
    }
    for key, value in parameters.items():
        if key in own and own[key].source == SETTING and own[key].value != str(value):
            why = f"says something else than {SETTING}, {own[key].value}"
            raise InputError(source, key, found=value, why=why, allowed="one of the two")
    given = {**{key: stated.value for key, stated in own.items()}, **parameters}
    try:
        complete = complete_parameters(name, given, source)
        files = {HISTOGRAM: str(folder / complete[HISTOGRAM])} if HISTOGRAM in complete else {}
        workload = family.build({**complete, **files}, source)
    except InputError as error:
        # With the place of the property that it is of, and the name that it has there.
        aliases = (alias for alias, name in ALIASES.items() if name == error.field)
        stated = [key for key in (error.field, *aliases) if key in own and key not in parameters]
        if error.field in parameters or not stated:
            raise
        raise error.but(source=own[stated[0]].where, field=stated[0]) from None
    ignored = [(key, family.ignored[key]) for key in given if key in family.ignored]
    ignored += without_effect(given, complete)
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
    for name, stated in properties.items():
        if stated.hidden_line is not None:
            notes.append(f"{stated.where}: {name}: replaces the value of line {stated.hidden_line}")
        if name.startswith(ENGINE_PREFIXES):
            engine[name] = stated
        elif name.startswith(_OTHER_PREFIXES):
            notes.append(f"{stated.where}: {name}: has no effect: it is of another database")
        elif RECORDS.name not in family.parameters:
            why = f"has no effect in {family.name}, which has no properties of YCSB"
            raise InputError(stated.where, name, found=stated.value, why=why)
        else:
            own[name] = stated
    return own, engine, notes
