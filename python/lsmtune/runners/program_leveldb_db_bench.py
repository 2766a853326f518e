"""LevelDB's db_bench as a runner: one process for each phase, options by flags."""

from __future__ import annotations

from collections.abc import Callable

from lsmtune.errors import InputError
from lsmtune.programs import leveldb_db_bench_call as call
from lsmtune.programs.db_bench_words import TIMED_TYPE, benchmark_of
from lsmtune.programs.leveldb_db_bench_output import (
    BenchmarkResult,
    parse_leveldb_db_bench,
)
from lsmtune.programs.performing import performing
from lsmtune.records.request import RunRequest
from lsmtune.records.workload import Phase, PhaseKind, Workload
from lsmtune.runners.native_run import DATABASE
from lsmtune.runners.program import (
    FoundProgram,
    Introduction,
    Observed,
    Plan,
    Program,
    Step,
    StepOutput,
)
from lsmtune.runners.program_options import exported_flags
from lsmtune.runners.program_phase import Told, build_told, latency_of, phase_measurement

NO_SETTLE = "LevelDB's db_bench cannot wait for compactions: reads start from a tree that is busy"


def _plan(request: RunRequest, _found: FoundProgram) -> Plan:
    workload = request.workload
    options = exported_flags(call.NAME, "leveldb", request.config)
    database = str(request.directory / DATABASE)
    steps = tuple(
        Step(
            arguments=(*call.arguments(workload, index, database=database), *options),
            phases=(index,),
            read=_reader(workload, index),
        )
        for index, _ in performing(workload)
    )
    settles = any(phase.kind is PhaseKind.SETTLE for phase in workload.phases)
    return Plan(steps, (call.NO_SEED, NO_SETTLE) if settles else (call.NO_SEED,))


def _reader(workload: Workload, index: int) -> Callable[[StepOutput], Observed]:
    phase = workload.phases[index]
    benchmark = benchmark_of(call.NAME, phase, call.BENCHMARKS, first=index == 0)

    def read(output: StepOutput) -> Observed:
        said = parse_leveldb_db_bench(output.errors() + "\n" + output.text(), call.NAME)
        result = said.result_of(benchmark)
        if result is None:
            why = said.skipped.get(benchmark, "printed no result")
            raise InputError(call.NAME, benchmark, why=why, found="; ".join(said.notes) or None)
        told = _told(result, workload, phase)
        measured = phase_measurement(phase, told, output, alone=True)
        return Observed({index: measured}, said.warnings, said.version, build_told(said.warnings))

    return read


def _told(result: BenchmarkResult, workload: Workload, phase: Phase) -> Told:
    timed = TIMED_TYPE[result.name]
    latency = latency_of(result.histogram) if result.histogram is not None else None
    # A histogram counts what was done, which is less where a scan came to the end of the keys.
    operations = call.operations_of(workload, phase) if latency is None else latency.count
    found = result.keys_found if phase.threads == 1 else None
    return Told(
        operations=operations,
        elapsed_s=result.elapsed_s(operations, phase.threads),
        throughput_ops_s=result.throughput_ops_s(phase.threads),
        latencies={} if latency is None else {timed: latency},
        own_type=timed,
        keys_found=found,
        keys_missing=None if found is None else operations - found,
        operations_by_type={timed: operations},
    )


def _introduced(text: str) -> Observed:
    said = parse_leveldb_db_bench(text, call.NAME)
    return Observed({}, said.warnings, said.version, build_told(said.warnings))


PROGRAM = Program(
    info=call.INFO,
    plan=_plan,
    introduction=Introduction(("--benchmarks=", "--num=1", "--db={database}"), _introduced),
)
