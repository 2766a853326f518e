"""How YCSB-cpp is called for one phase of a Workload: its properties, from the phase's mix.

Facts from `core/core_workload.cc` and `core/ycsbc.cc`: a load inserts `recordcount` records from
`insertstart` on; a run chooses among the records 0 to `recordcount - 1` and inserts from
`recordcount`; zipfian requests are drawn over the records and twice the inserts to be expected; a
proportion that is not given has a default above zero; keys begin with `user`. Nothing of it has a
seed (`utils::ThreadLocalRandomInt`), and nothing ends it by time.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from lsmtune.driver.runner import DATABASE
from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue
from lsmtune.model.measurement import PhaseMeasurement
from lsmtune.model.metrics import LATENCIES, PERCENTILES
from lsmtune.model.request import RunRequest
from lsmtune.model.workload import Durability, Mix, Phase, Workload, YcsbKeys
from lsmtune.programs.output import cannot, check_performable, performing
from lsmtune.programs.program import (
    STDOUT,
    FoundProgram,
    Observed,
    Plan,
    Program,
    Step,
    StepOutput,
    follow_totals,
    options_for,
    phase_measurement,
    settle_warnings,
    value_warnings,
)
from lsmtune.programs.registry import YCSB_CPP_NAME as NAME
from lsmtune.programs.ycsb_cpp_output import YcsbPhase, parse_status, parse_ycsb_log
from lsmtune.workloads.ycsb import KEY_PREFIX, scattered_inserts
from lsmtune.workloads.ycsb_properties import ZIPFIAN_THETA

_PROPORTIONS = {
    "get": "readproportion",
    "update": "updateproportion",
    "insert": "insertproportion",
    "scan": "scanproportion",
    "read_modify_write": "readmodifywriteproportion",
}
_FIELD_LENGTHS = {
    "constant": ("constant", "size"),
    "uniform": ("uniform", "high"),
    "zipfian": ("zipfian", "high"),
}
_LEAST_LENGTH = 1  # core_workload.cc, GetFieldLenGenerator


def check(workload: Workload, engine_name: str) -> None:
    """Raises InputError for the first thing in `workload` that YCSB-cpp cannot perform."""
    can_sync = (Durability.SYNC,) if engine_name != "leveldb" else ()
    check_performable(NAME, workload, (Durability.WAL, *can_sync), ycsb=True)
    if workload.keys is None or workload.keys.prefix != KEY_PREFIX:
        raise cannot(NAME, "keys", why="its keys are YCSB's, `user` and a number", allowed="ycsb-a")
    for _, phase in performing(workload):
        properties(workload, phase)


def is_load(phase: Phase) -> bool:
    """Whether `phase` is performed by `-load`: it inserts records, and does nothing else."""
    return phase.mix is not None and phase.mix.names == {"insert"} and phase.mix.records == 0


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
    return {
        "threadcount": str(phase.threads),
        "zeropadding": str(keys.zero_padding),
        "insertorder": keys.order.value,
        **_row(phase, mix, workload),
        **_operations(phase, mix),
    }


def _cannot(phase: Phase, field: str, stated: object, allowed: str) -> Exception:
    return cannot(NAME, f"{phase.name}: {field}", found=stated, allowed=allowed)


def _operations(phase: Phase, mix: Mix) -> dict[str, str]:
    if is_load(phase):
        start = mix.first if mix.insert_from is None else mix.insert_from
        return {"recordcount": str(phase.operations), "insertstart": str(start)}
    if mix.first != 0:
        raise _cannot(phase, "insertstart", mix.first, "0: it chooses among records from 0 on")
    if mix.insert_from not in (None, mix.records):
        raise _cannot(phase, "insertcount", mix.records, f"recordcount, {mix.insert_from}")
    if mix.operation_by_key:
        allowed = "none: it draws operations and keys each by itself"
        raise _cannot(phase, "operation_by_key", mix.operation_by_key, allowed)
    shares = phase.shares
    unknown = [name for name in shares if name not in _PROPORTIONS]
    if unknown:
        raise _cannot(phase, "operations", unknown[0], ", ".join(_PROPORTIONS))
    scans: dict[str, str] = {}
    if (lengths := mix.scan_lengths) is not None:
        bounds = dict(lengths.parameters)
        theta = bounds.get("theta", ZIPFIAN_THETA)
        if lengths.name not in ("uniform", "zipfian") or theta != ZIPFIAN_THETA:
            raise _cannot(phase, "scanlengthdistribution", lengths.name, "uniform, zipfian")
        scans = {
            "minscanlength": str(bounds["low"]),
            "maxscanlength": str(bounds["high"]),
            "scanlengthdistribution": lengths.name,
        }
    return {
        "recordcount": str(mix.records),
        "operationcount": str(phase.operations),
        **{proportion: repr(shares.get(name, 0.0)) for name, proportion in _PROPORTIONS.items()},
        **_requests(phase, mix, shares.get("insert", 0.0)),
        **scans,
    }


def _requests(phase: Phase, mix: Mix, inserts: float) -> dict[str, str]:
    name, given = mix.keys.name, dict(mix.keys.parameters)
    if name == "uniform":
        return {"requestdistribution": "uniform"}
    theta = given.get("theta", ZIPFIAN_THETA)
    if name == "latest" and theta == ZIPFIAN_THETA:
        return {"requestdistribution": "latest"}
    if name != "scrambled_zipfian":
        stated = f"{name} with theta {theta}" if name == "latest" else name
        raise _cannot(phase, "requestdistribution", stated, "uniform, zipfian, latest")
    expected = mix.records + scattered_inserts(phase.operations or 0, inserts)
    items = given.get("items", mix.records)
    if items != expected:
        raise _cannot(phase, "requestdistribution: items", items, str(expected))
    constant = {} if theta == ZIPFIAN_THETA else {"zipfian_const": repr(theta)}
    return {"requestdistribution": "zipfian", **constant}


def _row(phase: Phase, mix: Mix, workload: Workload) -> dict[str, str]:
    """Fields, their names and lengths; a mix that writes nothing says nothing of them."""
    row = mix.value_sizes
    if row is None and not mix.names - {"get", "scan"}:
        row = next(
            (p.mix.value_sizes for p in workload.phases if p.mix and p.mix.value_sizes), None
        )
    if row is None or row.name != "row":
        stated = "none" if row is None else row.name
        raise _cannot(phase, "value_sizes", stated, "rows of fields, as in ycsb-a")
    given: dict[str, Any] = dict(row.parameters)
    fields, names_bytes, length = (given[name] for name in ("fields", "names_bytes", "length"))
    digits = sum(len(str(number)) for number in range(fields))
    prefix, rest = divmod(int(names_bytes) - digits, fields)
    if rest or prefix < 0:
        raise _cannot(phase, "fieldnameprefix", names_bytes, "names of a prefix and a number")
    kind, most = _FIELD_LENGTHS.get(length.name, ("", ""))
    lengths: dict[str, Any] = dict(length.parameters)
    if not kind or lengths.get("low", _LEAST_LENGTH) != _LEAST_LENGTH:
        allowed = "constant; uniform, zipfian from 1"
        raise _cannot(phase, "fieldlengthdistribution", length.name, allowed)
    return {
        "fieldcount": str(fields),
        "fieldnameprefix": "field"[:prefix].ljust(prefix, "_"),
        "field_len_dist": kind,
        "fieldlength": str(int(lengths[most])),
    }


def _blind_to(workload: Workload, index: int) -> frozenset[str]:
    """Percentiles but 99 and 99.9 of everything; of a mix, any latency of all types together.

    A read-modify-write is a mix by itself: its read and its update are told, each alone.
    """
    mix = workload.phases[index].mix
    names = frozenset[str]() if mix is None else mix.names
    if len(names) == 1 and "read_modify_write" not in names:
        return frozenset(PERCENTILES) - {"latency_us_p99", "latency_us_p999"}
    return LATENCIES


NO_SEED = "YCSB-cpp has no seed: it draws other keys in every run"
VALUES = "YCSB-cpp writes random letters"


# --- YCSB-cpp as a runner: one process for each phase, options by properties

ENGINE_FILE = "engine.properties"
OPTIONS = "OPTIONS"
NO_SETTLE = "YCSB-cpp cannot wait for compactions: its run starts from a tree that is busy"
_TYPE = {"INSERT": "insert", "READ": "get", "UPDATE": "update", "SCAN": "scan", "DELETE": "delete"}
_FAILED = "-FAILED"
# Properties that lsmtune sets itself, in the exporter's file.
_OWN = ("dbname", "destroy", "format")
# And those that the properties of a run do not always name, flags of the same effect among them.
_ALWAYS_OWN = ("t", "run", "load", "threads", "doload", "dotransaction", "status", "dbname")
_ALWAYS_OWN_OF_ENGINE = ("sync", "optionsfile")


def _plan(request: RunRequest, executable: FoundProgram) -> Plan:
    """One process for each phase."""
    workload, engine = request.workload, request.engine.name
    engine_files = _engine_files(request, executable)
    workload_file = "workload.properties"
    steps = []
    for index, phase in performing(workload):
        own = {
            f"{engine}.dbname": str(request.directory / DATABASE),
            f"{engine}.format": "single",
            f"{engine}.destroy": "false",
            "status.interval": "1",
            **properties(workload, phase),
        }
        if workload.durability is Durability.SYNC:
            own[f"{engine}.sync"] = "true"
        text = "".join(f"{name}={value}\n" for name, value in own.items())
        texts = {**engine_files, workload_file: text}
        of_engine = [line.partition("=")[0] for line in texts[ENGINE_FILE].splitlines()]
        of_engine += [f"{engine}.{name}" for name in _ALWAYS_OWN_OF_ENGINE]
        # A read-modify-write counts twice in a status, as a read and an update.
        rewrites = phase.mix is not None and "read_modify_write" in phase.mix.names
        what = "-load" if is_load(phase) else "-run"
        step = Step(
            arguments=(what, "-db", engine, "-P", ENGINE_FILE, "-P", workload_file, "-s"),
            phases=(index,),
            read=partial(_read, index, phase),
            files={name: partial(iter, (text,)) for name, text in texts.items()},
            follow={} if rewrites else {STDOUT: partial(follow_totals, _progress)},
            own=(*_ALWAYS_OWN, *own, *of_engine),
        )
        steps.append(step)
    warnings = settle_warnings(workload, NO_SEED, NO_SETTLE) + value_warnings(workload, VALUES)
    return Plan(tuple(steps), warnings)


def _engine_files(request: RunRequest, executable: FoundProgram) -> dict[str, str]:
    """The properties of the engine; an OPTIONS file for options that have no property."""
    engine, config = request.engine.name, request.config
    try:
        text = options_for(NAME, "properties", engine, config.options)
    except InputError:
        # With an options file YCSB-cpp does not look at `rocksdb.sync`.
        if engine != "rocksdb" or request.workload.durability is Durability.SYNC:
            raise
        # The file's value of this counts, and its default is no.
        options: dict[str, OptionValue] = {**config.options, "create_if_missing": True}
        file = options_for(NAME, "rocksdb-options", engine, options, executable.version)
        return {OPTIONS: file, ENGINE_FILE: f"rocksdb.optionsfile={OPTIONS}\n"}
    own = tuple(f"{engine}.{name}=" for name in _OWN)
    kept = [line for line in text.splitlines() if not line.startswith(own)]
    return {ENGINE_FILE: "\n".join(kept) + "\n"}


def _read(index: int, phase: Phase, output: StepOutput) -> Observed:
    log = parse_ycsb_log(output.text(), NAME)
    printed = log.phases[-1]
    # A read or update that fails is of a record that is not there.
    failures = tuple(
        f"{latency.count} operations were {name}"
        for name, latency in printed.by_type.items()
        if name.endswith(_FAILED) and name.removesuffix(_FAILED) not in ("READ", "UPDATE")
    )
    return Observed({index: _measured(printed, phase, output)}, (*log.notes, *failures))


def _measured(printed: YcsbPhase, phase: Phase, output: StepOutput) -> PhaseMeasurement:
    """What found nothing is `READ-FAILED` or `UPDATE-FAILED`."""
    latencies = {_TYPE[name]: each for name, each in printed.by_type.items() if name in _TYPE}
    counts: dict[str, int] = {}
    for name, latency in printed.by_type.items():
        kind = _TYPE.get(name.removesuffix(_FAILED))
        if kind is not None:
            counts[kind] = counts.get(kind, 0) + latency.count
    if phase.mix is not None and "read_modify_write" in phase.mix.names:
        counts = _rewritten(counts, phase.mix)
    keys_found, keys_missing = _lookups(printed, phase)
    return phase_measurement(
        phase,
        output,
        alone=True,
        operations=printed.operations,
        elapsed_s=printed.elapsed_s,
        throughput_ops_s=printed.throughput_ops_s,
        latencies=latencies,
        keys_found=keys_found,
        keys_missing=keys_missing,
        operations_by_type=counts or None,
    )


def _lookups(printed: YcsbPhase, phase: Phase) -> tuple[int | None, int | None]:
    """Keys found and missing as lsmtune's driver counts them.

    An update begins with a lookup, which counts. A read-modify-write counts once, and is a READ and
    an UPDATE here, so that only reads are counted; beside updates of their own neither is known.
    Nor is it where there are scans, which never fail, whatever they find.
    """
    named = phase.mix.names if phase.mix is not None else frozenset()
    if "scan" in named or {"update", "read_modify_write"} <= named:
        return None, None
    types = {"READ"} if "read_modify_write" in named else {"READ", "UPDATE"}
    counts = {name: latency.count for name, latency in printed.by_type.items()}
    tried = [name for name in counts if name.removesuffix(_FAILED) in types]
    if not tried:
        return None, None
    missing = sum(counts[name] for name in tried if name.endswith(_FAILED))
    return sum(counts[name] for name in tried) - missing, missing


def _rewritten(counts: dict[str, int], mix: Mix) -> dict[str, int]:
    """Operations in the words of the mix: a read-modify-write was a read and an update.

    How many of each there were cannot be told where both stand in the mix; then nothing is.
    """
    if "update" in mix.names:
        return {}
    rewrites = counts.pop("update", 0)
    reads = counts.pop("get", 0) - rewrites
    whole = {"read_modify_write": rewrites, **counts}
    return {"get": reads, **whole} if reads else whole


def _progress(line: str) -> tuple[float, int] | None:
    """Whole seconds and operations of a status line."""
    status = parse_status(line)
    return None if status is None else (float(status.elapsed_s), status.operations)


PROGRAM = Program(
    name=NAME,
    engines=("leveldb", "rocksdb"),
    executables=("ycsb-{engine}", "ycsb-cpp", "ycsb"),
    answer=re.compile(r"^ *-load: run the loading phase of the workload", re.MULTILINE),
    check=check,
    blind_to=_blind_to,
    note=f"each phase is a process of its own; {NO_SEED}",
    plan=_plan,
)
