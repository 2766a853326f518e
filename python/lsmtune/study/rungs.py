"""The rungs at which a pruner looks at a trial: pure functions of what runs have shown so far."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from lsmtune.records.measurement import Interval, Measurement
from lsmtune.records.workload import Distribution, Mix, Phase, Workload
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

    The records that a mix finds, and those over which it scatters its choices, shrink with it. A
    phase whose size is a duration keeps it, and a replay its trace.
    """
    factor = num / workload.num
    phases = tuple(_smaller_phase(phase, factor) for phase in workload.phases)
    return replace(workload, num=num, phases=phases)


def _smaller_phase(phase: Phase, factor: float) -> Phase:
    each, whole = phase.operations_per_thread, phase.operations
    return replace(
        phase,
        operations_per_thread=None if each is None else _some(each, factor),
        operations=None if whole is None else _some(whole, factor),
        mix=None if phase.mix is None else _smaller_mix(phase.mix, factor),
        companions=tuple(
            replace(beside, mix=None if beside.mix is None else _smaller_mix(beside.mix, factor))
            for beside in phase.companions
        ),
    )


def _smaller_mix(mix: Mix, factor: float) -> Mix:
    records, first = _some(mix.records, factor), round(mix.first * factor)
    insert_from = None
    if mix.insert_from is not None:
        # Rounding must not let new records fall on old ones.
        insert_from = max(first + records, round(mix.insert_from * factor))
    items = mix.keys.get("items")
    keys = mix.keys
    if isinstance(items, int):
        scattered = max(records, round(items * factor))
        parameters = {**dict(keys.parameters), "items": scattered}
        keys = Distribution(keys.name, tuple(parameters.items()))
    return replace(mix, records=records, first=first, insert_from=insert_from, keys=keys)


def _some(count: int, factor: float) -> int:
    """`count` times `factor`; what is not nothing does not become nothing."""
    return max(1, round(count * factor)) if count else 0


def rung_workloads(rungs: DataRungs, workload: Workload) -> tuple[Workload, ...]:
    """The workload of each rung, the last one being the study's own."""
    return (*(smaller(workload, num) for num in rungs.num[:-1]), workload)
