"""ekvsb as a runner: one process performs all phases, whose records are told apart by number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from lsmtune.errors import InputError
from lsmtune.programs import ekvsb_call as call
from lsmtune.programs.ekvsb_output import EkvsbRecord, EkvsbSummary, Summing, read_records
from lsmtune.programs.performing import performing
from lsmtune.records.measurement import Latency, PhaseMeasurement
from lsmtune.records.request import RunRequest
from lsmtune.records.workload import PhaseKind, Workload
from lsmtune.runners.native_run import DATABASE
from lsmtune.runners.program import FoundProgram, Observed, Plan, Program, Step, StepOutput
from lsmtune.runners.program_phase import Told, phase_measurement

WORKLOAD = "workload.json"
NO_SETTLE = "ekvsb cannot wait for compactions: its next phase starts from a tree that is busy"
_TYPE = {"PUT": "put", "GET": "get", "DELETE": "delete"}
_US_PER_S = 1e6


def _plan(request: RunRequest, _found: FoundProgram) -> Plan:
    workload = request.workload
    options = call.option_arguments(request.config.engine_options())
    phases = performing(workload)
    step = Step(
        arguments=("run", "rocksdb", str(request.directory / DATABASE), *options),
        phases=tuple(index for index, _ in phases),
        read=_reader(workload),
        files={WORKLOAD: _tasks(workload, request.seed)},
        stdin=WORKLOAD,
    )
    settles = any(phase.kind is PhaseKind.SETTLE for phase in workload.phases)
    return Plan((step,), (call.WITHIN, NO_SETTLE) if settles else (call.WITHIN,))


def _tasks(workload: Workload, seed: int) -> Callable[[], Iterator[str]]:
    return lambda: call.tasks_json(workload, seed)


def _reader(workload: Workload) -> Callable[[StepOutput], Observed]:
    def read(output: StepOutput) -> Observed:
        with output.stdout.open(encoding="utf-8", errors="replace") as lines:
            records = read_records(lines, call.NAME)
            return Observed(_phases(workload, records, output))

    return read


def _phases(
    workload: Workload, records: Iterator[EkvsbRecord], output: StepOutput
) -> Mapping[int, PhaseMeasurement]:
    """Each phase's records, in the order in which they were asked for."""
    found: dict[int, PhaseMeasurement] = {}
    phases = performing(workload)
    for index, phase in phases:
        wanted, summing, method = call.operations_of(workload, phase), Summing(), ""
        for _ in range(wanted):
            record = next(records, None)
            if record is None:
                why = f"ended after {summing.count} of {wanted} operations of {phase.name}"
                raise InputError(call.NAME, why=why)
            method = record.method
            summing.add(record)
        summary = summing.summary()
        if summary.errors:
            why = f"{summary.errors} of {wanted} operations of {phase.name} failed"
            raise InputError(call.NAME, why=why)
        told = _told(summary, _TYPE[method])
        found[index] = phase_measurement(phase, told, output, alone=len(phases) == 1)
    return found


def _told(summary: EkvsbSummary, timed: str) -> Told:
    count = summary.oks + summary.errors
    latency, reads = summary.latency, timed == "get"
    return Told(
        operations=count,
        elapsed_s=summary.elapsed_s,
        throughput_ops_s=summary.ops or 0.0,
        latencies={
            timed: Latency(
                count=count,
                latency_us_mean=summary.elapsed_s / count * _US_PER_S,
                latency_us_p50=latency.median_s * _US_PER_S,
                latency_us_p95=latency.p95_s * _US_PER_S,
                latency_us_p99=latency.p99_s * _US_PER_S,
                latency_us_p999=None,
                latency_us_max=latency.max_s * _US_PER_S,
            )
        },
        own_type=timed,
        keys_found=summary.exists if reads else None,
        keys_missing=summary.absents if reads else None,
        operations_by_type={timed: count},
    )


PROGRAM = Program(
    info=call.INFO,
    plan=_plan,
)
