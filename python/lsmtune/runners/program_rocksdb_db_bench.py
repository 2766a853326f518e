"""RocksDB's db_bench as a runner: one process for each phase, options by an OPTIONS file.

A file and not flags, because db_bench has defaults of its own for what no flag says, and an OPTIONS
file takes RocksDB's; only the size of the block cache has to be a flag as well, which outweighs the
file (`InitializeOptionsGeneral`).
"""

from __future__ import annotations

from collections.abc import Callable

from lsmtune.errors import InputError
from lsmtune.programs import rocksdb_db_bench_call as call
from lsmtune.programs.db_bench_output import BenchmarkResult, parse_db_bench
from lsmtune.programs.db_bench_words import TIMED_TYPE
from lsmtune.programs.mixgraph_call import BENCHMARK as MIXGRAPH
from lsmtune.programs.performing import performing, settled_after
from lsmtune.programs.report_interval_output import HEADING
from lsmtune.records.measurement import Interval, Latency
from lsmtune.records.request import RunRequest
from lsmtune.records.workload import Phase, Workload
from lsmtune.runners.native_run import DATABASE
from lsmtune.runners.program import (
    Follow,
    FoundProgram,
    Introduction,
    Observed,
    Plan,
    Program,
    Step,
    StepOutput,
)
from lsmtune.runners.program_options import exported
from lsmtune.runners.program_phase import Told, build_told, latency_of, phase_measurement

OPTIONS = "OPTIONS"
REPORT = "report.csv"
_CACHE = "block_based_table_factory.block_cache"
# What mixgraph calls the types of a mix; a seek goes on through its entries.
_MIX_TYPES = {"read": "get", "write": "put", "seek": "scan"}


def _plan(request: RunRequest, found: FoundProgram) -> Plan:
    workload = request.workload
    text = exported(call.NAME, "rocksdb-options", "rocksdb", request.config, found.version)
    steps = tuple(_step(request, index, phase, text) for index, phase in performing(workload))
    return Plan(steps, call.differences(workload))


def _step(request: RunRequest, index: int, phase: Phase, text: str) -> Step:
    workload = request.workload
    settle = settled_after(workload, index)
    load_seed = request.seed if request.load_seed is None else request.load_seed
    report = REPORT if settle is None else ""
    arguments = call.arguments(
        workload,
        index,
        database=str(request.directory / DATABASE),
        seed=load_seed if phase.kind.value == "load" else request.seed,
        settle=settle is not None,
        report=report,
    )
    cache = request.config.engine_options().get(_CACHE)
    return Step(
        arguments=(
            *arguments,
            f"--options_file={OPTIONS}",
            *(() if cache is None else (f"--cache_size={cache}",)),
        ),
        phases=(index,) if settle is None else (index, settle),
        read=_reader(workload, index, alone=settle is None),
        files={OPTIONS: lambda: iter((text,)), REPORT: lambda: iter(())},
        followed=REPORT if report else None,
        follow=follow_report if report else None,
    )


def _reader(workload: Workload, index: int, *, alone: bool) -> Callable[[StepOutput], Observed]:
    phase = workload.phases[index]
    benchmark = call.benchmark(workload, index)

    def read(output: StepOutput) -> Observed:
        said = parse_db_bench(output.errors() + "\n" + output.text(), call.NAME)
        result = said.result_of(benchmark)
        if result is None:
            why = said.skipped.get(benchmark, "printed no result")
            raise InputError(call.NAME, benchmark, why=why, found="; ".join(said.notes) or None)
        told = _told(result, phase)
        measured = phase_measurement(phase, told, output, alone=alone)
        return Observed({index: measured}, said.warnings, said.version, build_told(said.warnings))

    return read


def _told(result: BenchmarkResult, phase: Phase) -> Told:
    if result.operations is None or result.elapsed_s is None:
        # Before RocksDB 7.0: seconds of all threads together by their operations, and their rate.
        allowed = "RocksDB 7.0 or newer, which prints seconds and operations"
        raise InputError(call.NAME, result.name, why="printed neither", allowed=allowed)
    latencies = _latencies(result, phase)
    keys = _keys(result) if phase.threads == 1 else (None, None)
    counts = {name: latency.count for name, latency in latencies.items()}
    if phase.mix is None:
        counts = {TIMED_TYPE[result.name]: result.operations}
    return Told(
        operations=result.operations,
        elapsed_s=result.elapsed_s,
        throughput_ops_s=float(result.throughput_ops_s),
        latencies=latencies,
        own_type=next(iter(latencies)) if len(latencies) == 1 else None,
        keys_found=keys[0],
        keys_missing=keys[1],
        operations_by_type=counts,
    )


def _latencies(result: BenchmarkResult, phase: Phase) -> dict[str, Latency]:
    """By lsmtune's types; mixgraph prints a histogram of each type that it performed."""
    if phase.mix is None:
        printed = {TIMED_TYPE[result.name]: result.histograms[0]} if result.histograms else {}
    else:
        types = _MIX_TYPES if result.name == MIXGRAPH else {"write": "insert"}
        printed = {types[h.what]: h for h in result.histograms if h.what in types}
    found = {name: latency_of(histogram) for name, histogram in printed.items()}
    return {name: latency for name, latency in found.items() if latency is not None}


def _keys(result: BenchmarkResult) -> tuple[int | None, int | None]:
    """Keys found and missing; what db_bench says of them is of one thread only."""
    if result.mixgraph is not None:
        tried = result.mixgraph.gets + result.mixgraph.seeks
        return result.mixgraph.found, tried - result.mixgraph.found
    if result.keys_found is None or result.keys_tried is None:
        return None, None
    return result.keys_found, result.keys_tried - result.keys_found


def follow_report() -> Follow:
    """Reads the lines of `--report_file`; the program's memory at that moment is not in them."""
    done = 0
    before_s = 0.0

    def follow(line: str) -> Interval | None:
        nonlocal done, before_s
        if HEADING.fullmatch(line) or not line:
            return None
        elapsed, _, rate = line.partition(",")
        elapsed_s = float(elapsed)
        interval_s = elapsed_s - before_s
        operations = round(int(rate) * interval_s)
        done, before_s = done + operations, elapsed_s
        return Interval(elapsed_s, interval_s, operations, done, float(rate), None)

    return follow


def _introduced(text: str) -> Observed:
    said = parse_db_bench(text, call.NAME)
    return Observed({}, said.warnings, said.version, build_told(said.warnings))


PROGRAM = Program(
    info=call.INFO,
    plan=_plan,
    introduction=Introduction(("--benchmarks=", "--num=1", "--db={database}"), _introduced),
)
