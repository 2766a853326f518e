"""A sweep of two axes, and the runs that a store with known rates would have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.experiment.sweep import Axis, AxisKind, Sweep, SweepEngine, SweepWorkload
from lsmtune.experiment.sweep_grid import GridCell, grid
from lsmtune.model.config import Build, EngineIdentity, option_text
from lsmtune.model.measurement import Measurement, Outcome, RunError
from lsmtune.model.workload import PhaseKind
from made_up import made_up_phase

ENGINE = EngineIdentity("leveldb", "1.22", "/lib.so", Build.RELEASE)


def axis(name: str, *values: Any, kind: AxisKind = AxisKind.WORKLOAD) -> Axis:
    return Axis(kind, name, values, tuple(map(option_text, values)))


def sweep_of(**changes: Any) -> Sweep:
    sweep = Sweep(
        version=1,
        name="sizes",
        engine=SweepEngine("leveldb"),
        workloads=(SweepWorkload("fillseq"),),
        axes=(axis("key_bytes", 16, 32, 64), axis("value_bytes", 100, 200, 400)),
        parameters={"num": 1000},
        place=lambda field: ("sweep.yaml", field),
    )
    return replace(sweep, **changes)


def cells_of(sweep: Sweep) -> tuple[GridCell, ...]:
    return grid(sweep, ENGINE)


Rate = Callable[[GridCell, int], float]


def by_size(cell: GridCell, number: int) -> float:
    """Operations per second that fall with the record's size; rounds differ by 10 %."""
    workload = cell.workload
    return 1e6 / (5.0 + (workload.key_bytes + workload.value_bytes) / 100) * 1.1**number


def run_of(
    cell: GridCell, number: int, rate: float, *, drain_s: float | None = 0.5
) -> StoredMeasurement:
    workload = cell.workload
    measured = [p for p in workload.phases if p.kind is PhaseKind.MEASURE]
    elapsed_s = workload.num / rate
    moved = workload.num * (workload.key_bytes + workload.value_bytes)
    whole_s = elapsed_s + (drain_s or 0.0)
    phases = tuple(
        made_up_phase(
            phase.name,
            operation=phase.operation,
            operations=workload.num,
            elapsed_s=elapsed_s,
            drain_s=drain_s,
            throughput_ops_s=rate,
            sustained_throughput_ops_s=None if drain_s is None else workload.num / whole_s,
            user_bytes_written=moved,
            database_bytes=moved,
            latency_us_p99=1e6 / rate * 3,
            compactions=number,
            compaction_write_bytes=moved,
            write_amplification=2.0,
        )
        for phase in measured
    )
    measurement = Measurement(
        outcome=Outcome.OK,
        engine=EngineIdentity("leveldb", "1.22"),
        options=cell.config.engine_options(),
        workload=workload.name,
        seed=1 + number,
        started_unix_s=0.0,
        elapsed_s=whole_s,
        phases=phases,
    )
    return StoredMeasurement(
        0,
        Role.ROUND,
        None,
        None,
        cell.config,
        measurement,
        2.0,
        round=number,
        arm=cell.name,
    )


def failed(run: StoredMeasurement, outcome: Outcome = Outcome.TIMEOUT) -> StoredMeasurement:
    error = RunError(outcome.value, "took too long")
    return replace(
        run, measurement=replace(run.measurement, outcome=outcome, error=error, phases=())
    )


def runs_of(
    cells: Sequence[GridCell], rounds: int, rate: Rate = by_size, **how: Any
) -> list[StoredMeasurement]:
    return [
        run_of(cell, number, rate(cell, number), **how)
        for number in range(rounds)
        for cell in cells
    ]
