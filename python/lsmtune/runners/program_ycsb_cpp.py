"""YCSB-cpp as a runner: one process for each phase, options by properties."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from lsmtune.errors import InputError
from lsmtune.programs import ycsb_cpp_call as call
from lsmtune.programs.performing import performing
from lsmtune.programs.ycsb_cpp_output import YcsbLatency, YcsbPhase, parse_status, parse_ycsb_log
from lsmtune.records.config import OptionValue
from lsmtune.records.measurement import Interval, Latency
from lsmtune.records.request import RunRequest
from lsmtune.records.workload import Durability, Phase, PhaseKind
from lsmtune.runners.native_run import DATABASE
from lsmtune.runners.program import (
    Follow,
    FoundProgram,
    Observed,
    Plan,
    Program,
    Step,
    StepOutput,
)
from lsmtune.runners.program_options import exported, exported_options
from lsmtune.runners.program_phase import Told, phase_measurement

ENGINE_FILE = "engine.properties"
OPTIONS = "OPTIONS"
NO_SETTLE = "YCSB-cpp cannot wait for compactions: its run starts from a tree that is busy"
_TYPE = {"INSERT": "insert", "READ": "get", "UPDATE": "update", "SCAN": "scan", "DELETE": "delete"}
_FAILED = "-FAILED"
# Properties that lsmtune sets itself, in the exporter's file.
_OWN = ("dbname", "destroy", "format")


def _plan(request: RunRequest, found: FoundProgram) -> Plan:
    workload = request.workload
    files = _engine_files(request, found)
    steps = tuple(_step(request, index, phase, files) for index, phase in performing(workload))
    settles = any(phase.kind is PhaseKind.SETTLE for phase in workload.phases)
    return Plan(steps, (call.NO_SEED, NO_SETTLE) if settles else (call.NO_SEED,))


def _engine_files(request: RunRequest, found: FoundProgram) -> dict[str, str]:
    """The properties of the engine; an OPTIONS file for options that have no property."""
    engine, config = request.engine.name, request.config
    try:
        text = exported(call.NAME, "properties", engine, config)
    except InputError:
        if engine != "rocksdb":
            raise
        if request.workload.durability is Durability.SYNC:
            raise  # with an options file YCSB-cpp does not look at `rocksdb.sync`
        # The file's value of this counts, and its default is no.
        options: dict[str, OptionValue] = {**config.options, "create_if_missing": True}
        version = found.version
        file = exported_options(call.NAME, "rocksdb-options", engine, options, version)
        return {OPTIONS: file, ENGINE_FILE: f"rocksdb.optionsfile={OPTIONS}\n"}
    own = tuple(f"{engine}.{name}=" for name in _OWN)
    kept = [line for line in text.splitlines() if not line.startswith(own)]
    return {ENGINE_FILE: "\n".join(kept) + "\n"}


def _step(request: RunRequest, index: int, phase: Phase, files: Mapping[str, str]) -> Step:
    workload, engine = request.workload, request.engine.name
    own = {
        f"{engine}.dbname": str(request.directory / DATABASE),
        f"{engine}.format": "single",
        f"{engine}.destroy": "false",
        "status.interval": "1",
        **call.properties(workload, phase),
    }
    if workload.durability is Durability.SYNC:
        own[f"{engine}.sync"] = "true"
    workload_file = "workload.properties"
    texts = {**files, workload_file: "".join(f"{name}={value}\n" for name, value in own.items())}
    rewrites = "read_modify_write" in dict(phase.mix.operations if phase.mix is not None else ())
    what = "-load" if call.is_load(phase) else "-run"
    return Step(
        arguments=(what, "-db", engine, "-P", ENGINE_FILE, "-P", workload_file, "-s"),
        phases=(index,),
        read=_reader(index, phase),
        files={name: _pieces(text) for name, text in texts.items()},
        # A read-modify-write counts twice in a status, as a read and an update.
        followed=None if rewrites else "",
        follow=None if rewrites else _follow,
    )


def _pieces(text: str) -> Callable[[], Iterator[str]]:
    return lambda: iter((text,))


def _reader(index: int, phase: Phase) -> Callable[[StepOutput], Observed]:
    def read(output: StepOutput) -> Observed:
        log = parse_ycsb_log(output.text(), call.NAME)
        measured = phase_measurement(phase, _told(log.phases[-1], phase), output, alone=True)
        return Observed({index: measured}, (*log.notes, *_failures(log.phases[-1])))

    return read


def _told(said: YcsbPhase, phase: Phase) -> Told:
    """What found nothing is `READ-FAILED` or `UPDATE-FAILED`."""
    latencies = {
        _TYPE[name]: _latency(latency) for name, latency in said.by_type.items() if name in _TYPE
    }
    counts: dict[str, int] = {}
    for name, latency in said.by_type.items():
        kind = _TYPE.get(name.removesuffix(_FAILED))
        if kind is not None:
            counts[kind] = counts.get(kind, 0) + latency.count
    found, missing = _lookups(said, phase)
    return Told(
        operations=said.operations,
        elapsed_s=said.elapsed_s,
        throughput_ops_s=said.throughput_ops_s,
        latencies=latencies,
        own_type=next(iter(latencies)) if len(latencies) == 1 else None,
        keys_found=found,
        keys_missing=missing,
        operations_by_type=_by_type(counts, phase) or None,
    )


def _lookups(said: YcsbPhase, phase: Phase) -> tuple[int | None, int | None]:
    """Keys found and missing as lsmtune's driver counts them.

    An update begins with a lookup, which counts. A read-modify-write counts once, and is a READ and
    an UPDATE here, so that only reads are counted; beside updates of their own neither is known.
    Nor is it where there are scans, which never fail, whatever they find.
    """
    named = {name for name, _ in phase.mix.operations} if phase.mix is not None else set()
    if "scan" in named or {"update", "read_modify_write"} <= named:
        return None, None
    types = {"READ"} if "read_modify_write" in named else {"READ", "UPDATE"}
    counts = {name: latency.count for name, latency in said.by_type.items()}
    tried = [name for name in counts if name.removesuffix(_FAILED) in types]
    if not tried:
        return None, None
    missing = sum(counts[name] for name in tried if name.endswith(_FAILED))
    return sum(counts[name] for name in tried) - missing, missing


def _by_type(counts: dict[str, int], phase: Phase) -> dict[str, int]:
    """Operations in the words of the mix: a read-modify-write was a read and an update.

    How many of each there were cannot be told where both stand in the mix; then nothing is.
    """
    named = dict(phase.mix.operations) if phase.mix is not None else {}
    if "read_modify_write" not in named:
        return counts
    if "update" in named:
        return {}
    rewrites = counts.pop("update", 0)
    reads = counts.pop("get", 0) - rewrites
    return {**({"get": reads} if reads else {}), "read_modify_write": rewrites, **counts}


def _failures(said: YcsbPhase) -> tuple[str, ...]:
    """Writes and scans that failed; a read or update that does is of a record that is not there."""
    return tuple(
        f"{latency.count} operations were {name}"
        for name, latency in said.by_type.items()
        if name.endswith(_FAILED) and name.removesuffix(_FAILED) not in ("READ", "UPDATE")
    )


def _latency(said: YcsbLatency) -> Latency:
    return Latency(
        count=said.count,
        latency_us_mean=said.latency_us_mean,
        latency_us_p50=None,
        latency_us_p95=None,
        latency_us_p99=said.latency_us_p99,
        latency_us_p999=said.latency_us_p999,
        latency_us_max=said.latency_us_max,
    )


def _follow() -> Follow:
    """Reads status lines: their counts are of the phase from its start, in whole seconds."""
    done, before_s = 0, 0.0

    def follow(line: str) -> Interval | None:
        nonlocal done, before_s
        status = parse_status(line)
        if status is None or status.elapsed_s <= before_s:
            return None
        interval_s = status.elapsed_s - before_s
        operations = status.operations - done
        done, before_s = status.operations, float(status.elapsed_s)
        rate = operations / interval_s
        return Interval(float(status.elapsed_s), interval_s, operations, done, rate, None)

    return follow


PROGRAM = Program(
    info=call.INFO,
    plan=_plan,
)
