"""The rungs at which a pruner looks at a trial: pure functions of what runs have shown so far."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from lsmtune.records.measurement import Interval, Measurement
from lsmtune.records.workload import Workload
from lsmtune.spec import DataRungs, TimeRungs


@dataclass(frozen=True)
class Report:
    """What a pruner is told: a value at a step that grows with what the trial has cost."""

    step: int
    value: float


class TimeReports:
    """Turns the interval series of a measure phase into reports, one per rung passed.

    The value is the rate since the phase began; the step counts the rungs from 1.
    """

    def __init__(self, rungs: TimeRungs) -> None:
        self._every_s = rungs.every_s
        self._step = 0

    def take(self, interval: Interval) -> Report | None:
        """The report due with `interval`, if it reached a new rung."""
        # Interval ends fall a little after their nominal time, never before it.
        step = int(interval.elapsed_s / self._every_s)
        if step <= self._step:
            return None
        self._step = step
        return Report(step, interval.operations_total / interval.elapsed_s)


def time_reports(rungs: TimeRungs, measurement: Measurement, metric: str) -> Iterator[Report]:
    """The reports that a stored run gave while it ran, in order.

    A program of the user's own has steps of its own choice, at which it reports `metric`.
    """
    for said in measurement.intermediate:
        if metric in said.metrics:
            yield Report(said.step, said.metrics[metric])
    reports = TimeReports(rungs)
    for interval in _measured_intervals(measurement):
        report = reports.take(interval)
        if report is not None:
            yield report


def _measured_intervals(measurement: Measurement) -> Iterable[Interval]:
    measured = [phase for phase in measurement.phases if phase.kind == "measure"]
    return measured[-1].intervals if measured else measurement.intervals_unfinished


def smaller(workload: Workload, num: int) -> Workload:
    """`workload` with `num` keys: every phase shrinks by the same factor, to 1 operation at least.

    A phase whose size is a duration keeps it.
    """
    factor = num / workload.num
    phases = tuple(
        replace(phase, operations_per_thread=max(1, round(phase.operations_per_thread * factor)))
        if phase.operations_per_thread is not None
        else phase
        for phase in workload.phases
    )
    return replace(workload, num=num, phases=phases)


def rung_workloads(rungs: DataRungs, workload: Workload) -> tuple[Workload, ...]:
    """The workload of each rung, the last one being the study's own."""
    return (*(smaller(workload, num) for num in rungs.num[:-1]), workload)
