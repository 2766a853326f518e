"""How YCSB-cpp is called for one phase of a Workload: its properties, from the phase's mix.

Facts from `core/core_workload.cc` and `core/ycsbc.cc`: a load inserts `recordcount` records from
`insertstart` on; a run chooses among the records 0 to `recordcount - 1` and inserts from
`recordcount`; zipfian requests are drawn over the records and twice the inserts to be expected; a
proportion that is not given has a default above zero; keys begin with `user`. Nothing of it has a
seed (`utils::ThreadLocalRandomInt`), and nothing ends it by time.
"""

from __future__ import annotations

import math

from lsmtune.programs.info import LATENCIES, ProgramInfo
from lsmtune.programs.performing import (
    cannot,
    check_closed_loop,
    check_durability,
    check_one_database,
    performing,
)
from lsmtune.records.workload import Distribution, Durability, Mix, Phase, Workload, YcsbKeys

NAME = "ycsb-cpp"
LOAD_MIX = (("insert", 1.0),)
_PROPORTIONS = {
    "get": "readproportion",
    "update": "updateproportion",
    "insert": "insertproportion",
    "scan": "scanproportion",
    "read_modify_write": "readmodifywriteproportion",
}
_THETA = 0.99  # zipfian_generator.h, kZipfianConst
_PREFIX = "user"
_FIELD_LENGTHS = {
    "constant": ("constant", "size"),
    "uniform": ("uniform", "high"),
    "zipfian": ("zipfian", "high"),
}
_LEAST_LENGTH = 1  # core_workload.cc, GetFieldLenGenerator


def check(workload: Workload, engine_name: str) -> None:
    """Raises InputError for the first thing in `workload` that YCSB-cpp cannot perform."""
    check_one_database(NAME, workload)
    check_closed_loop(NAME, workload)
    logged = {Durability.WAL}
    check_durability(
        NAME, workload, logged if engine_name == "leveldb" else logged | {Durability.SYNC}
    )
    if workload.keys is None or workload.keys.prefix != _PREFIX:
        raise cannot(NAME, "keys", why="its keys are YCSB's, `user` and a number", allowed="ycsb-a")
    for _, phase in performing(workload):
        properties(workload, phase)


def is_load(phase: Phase) -> bool:
    """Whether `phase` is performed by `-load`: it inserts records, and does nothing else."""
    return phase.mix is not None and phase.mix.operations == LOAD_MIX and phase.mix.records == 0


def properties(workload: Workload, phase: Phase) -> dict[str, str]:
    """The properties of core workload that perform `phase`.

    Raises InputError, naming the phase's field, for what YCSB-cpp has no property of.
    """
    mix = phase.mix
    if mix is None:
        raise _cannot(phase, "operation", phase.operation, "a mix of operations, as in ycsb-a")
    if phase.duration_s is not None:
        raise _cannot(phase, "duration_s", phase.duration_s, "a number of operations")
    if phase.operations is None:
        raise _cannot(phase, "operations", None, "a number of operations over all threads")
    keys = workload.keys or YcsbKeys()
    found = {
        "threadcount": str(phase.threads),
        "zeropadding": str(keys.zero_padding),
        "insertorder": keys.order.value,
        **_row(phase, mix, workload),
    }
    return found | (_load(phase, mix) if is_load(phase) else _run(phase, mix))


def _cannot(phase: Phase, field: str, found: object, allowed: str) -> Exception:
    return cannot(NAME, f"{phase.name}: {field}", found=found, allowed=allowed)


def _load(phase: Phase, mix: Mix) -> dict[str, str]:
    return {"recordcount": str(phase.operations), "insertstart": str(mix.first)}


def _run(phase: Phase, mix: Mix) -> dict[str, str]:
    if mix.first != 0:
        raise _cannot(phase, "insertstart", mix.first, "0: it chooses among records from 0 on")
    if mix.insert_from not in (None, mix.records):
        raise _cannot(phase, "insertcount", mix.records, f"recordcount, {mix.insert_from}")
    if mix.operation_by_key:
        allowed = "none: it draws operations and keys each by itself"
        raise _cannot(phase, "operation_by_key", mix.operation_by_key, allowed)
    total = math.fsum(weight for _, weight in mix.operations)
    shares = {name: weight / total for name, weight in mix.operations}
    unknown = [name for name in shares if name not in _PROPORTIONS]
    if unknown:
        raise _cannot(phase, "operations", unknown[0], ", ".join(_PROPORTIONS))
    return {
        "recordcount": str(mix.records),
        "operationcount": str(phase.operations),
        **{said: repr(shares.get(name, 0.0)) for name, said in _PROPORTIONS.items()},
        **_requests(phase, mix, shares.get("insert", 0.0)),
        **_scans(phase, mix.scan_lengths),
    }


def _requests(phase: Phase, mix: Mix, inserts: float) -> dict[str, str]:
    name, given = mix.keys.name, dict(mix.keys.parameters)
    if name == "uniform":
        return {"requestdistribution": "uniform"}
    theta = given.get("theta", _THETA)
    if name == "latest" and theta == _THETA:
        return {"requestdistribution": "latest"}
    if name != "scrambled_zipfian":
        found = f"{name} with theta {theta}" if name == "latest" else name
        raise _cannot(phase, "requestdistribution", found, "uniform, zipfian, latest")
    expected = mix.records + int((phase.operations or 0) * inserts * 2)
    items = given.get("items", mix.records)
    if items != expected:
        raise _cannot(phase, "requestdistribution: items", items, str(expected))
    constant = {} if theta == _THETA else {"zipfian_const": repr(theta)}
    return {"requestdistribution": "zipfian", **constant}


def _scans(phase: Phase, lengths: Distribution | None) -> dict[str, str]:
    if lengths is None:
        return {}
    given = dict(lengths.parameters)
    if lengths.name not in ("uniform", "zipfian") or given.get("theta", _THETA) != _THETA:
        raise _cannot(phase, "scanlengthdistribution", lengths.name, "uniform, zipfian")
    return {
        "minscanlength": str(given["low"]),
        "maxscanlength": str(given["high"]),
        "scanlengthdistribution": lengths.name,
    }


def _row(phase: Phase, mix: Mix, workload: Workload) -> dict[str, str]:
    """Fields, their names and lengths; a mix that writes nothing says nothing of them."""
    row = mix.value_sizes
    if row is None and not {name for name, _ in mix.operations} - {"get", "scan"}:
        row = next(
            (p.mix.value_sizes for p in workload.phases if p.mix and p.mix.value_sizes), None
        )
    if row is None or row.name != "row":
        found = "none" if row is None else row.name
        raise _cannot(phase, "value_sizes", found, "rows of fields, as in ycsb-a")
    given = dict(row.parameters)
    fields, names_bytes, length = (given[name] for name in ("fields", "names_bytes", "length"))
    if not isinstance(fields, int) or not isinstance(length, Distribution):
        raise _cannot(phase, "value_sizes", row, "rows of fields, as in ycsb-a")
    digits = sum(len(str(number)) for number in range(fields))
    prefix, rest = divmod(int(_plain(names_bytes)) - digits, fields)
    if rest or prefix < 0:
        raise _cannot(phase, "fieldnameprefix", names_bytes, "names of a prefix and a number")
    kind, most = _FIELD_LENGTHS.get(length.name, ("", ""))
    lengths = dict(length.parameters)
    if not kind or lengths.get("low", _LEAST_LENGTH) != _LEAST_LENGTH:
        allowed = "constant; uniform, zipfian from 1"
        raise _cannot(phase, "fieldlengthdistribution", length.name, allowed)
    return {
        "fieldcount": str(fields),
        "fieldnameprefix": "field"[:prefix].ljust(prefix, "_"),
        "field_len_dist": kind,
        "fieldlength": str(int(_plain(lengths[most]))),
    }


def _plain(value: object) -> float:
    if not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number")
    return float(value)


def _blind_to(phase: Phase) -> frozenset[str]:
    """Percentiles 50 and 95 of everything; and of a mix, any latency of all its types together."""
    if phase.mix is not None and len(phase.mix.operations) == 1:
        return frozenset({"latency_us_p50", "latency_us_p95"})
    return LATENCIES


NO_SEED = "YCSB-cpp has no seed: it draws other keys in every run"
INFO = ProgramInfo(
    name=NAME,
    engines=("leveldb", "rocksdb"),
    executables=("ycsb-{engine}", "ycsb-cpp", "ycsb"),
    check=check,
    blind_to=_blind_to,
    note=f"each phase is a process of its own; {NO_SEED}",
)
