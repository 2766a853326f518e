"""Latency percentile curves of both arms, from the whole histograms that the runs stored."""

from __future__ import annotations

import math

from lsmtune.analysis.hdr import Histogram, decode, merged
from lsmtune.analysis.runs import arms, workload_label
from lsmtune.analysis.source import StudyRecords
from lsmtune.analysis.tables import Arm, LatencyCurve, LatencyPoint
from lsmtune.records.measurement import Latency, Measurement, Outcome, PhaseMeasurement
from lsmtune.records.objective import Objective
from lsmtune.records.totals import TOTAL_METRICS
from lsmtune.storage.measurements import StoredMeasurement

_NS_PER_US = 1000.0
_POINTS_PER_DECADE = 12
_NAMED = (50.0, 95.0, 99.0, 99.9)


def percentile_grid() -> tuple[float, ...]:
    """Percentiles from 50 to 99.99, even on the scale of -log10(1 - p), the named ones included."""
    low, high = math.log10(2.0), 4.0
    steps = round((high - low) * _POINTS_PER_DECADE)
    even = (low + (high - low) * step / steps for step in range(steps + 1))
    grid = {round(100.0 - 100.0 * 10.0**-scale, 6) for scale in even}
    return tuple(sorted(grid | {50.0, 90.0, *_NAMED, 99.99}))


def latency_curves(records: StudyRecords) -> tuple[tuple[LatencyCurve, ...], tuple[str, ...]]:
    """One curve per operation type and arm, and a line for each histogram that is not readable.

    With several workloads the operation's name begins with the workload's label.

    A curve stops at the percentile beyond which fewer than one operation would lie.
    """
    curves, problems = [], []
    for arm, runs in arms(records).items():
        for operation, latencies in sorted(_by_operation(records, runs).items()):
            histograms = []
            for run, latency in latencies:
                try:
                    histograms.append(decode(latency.histogram_ns_base64))
                except ValueError as error:
                    problems.append(f"run {run}, {operation}: {error}")
            whole = merged(histograms)
            if whole.total:
                runs_seen = len({run for run, _ in latencies})
                most = max(latency.latency_us_max for _, latency in latencies)
                curves.append(_curve(arm, operation, whole, runs_seen, most))
    return tuple(curves), tuple(problems)


def _by_operation(
    records: StudyRecords, runs: list[StoredMeasurement]
) -> dict[str, list[tuple[int, Latency]]]:
    found: dict[str, list[tuple[int, Latency]]] = {}
    for stored in runs:
        if stored.measurement.outcome is not Outcome.OK:
            continue
        label = workload_label(records, stored)
        for phase in _judged_phases(records.objective, stored.measurement):
            for operation, latency in phase.latencies.items():
                if latency.histogram_ns_base64:
                    name = f"{label}: {operation}" if label else operation
                    found.setdefault(name, []).append((stored.id, latency))
    return found


def _judged_phases(objective: Objective, measurement: Measurement) -> list[PhaseMeasurement]:
    """The phases that the objective looks at: all measure phases for a total over them."""
    if objective.metric in TOTAL_METRICS:
        return [phase for phase in measurement.phases if phase.kind == "measure"]
    phase = objective.phase_of(measurement)
    return [] if phase is None else [phase]


def _curve(arm: Arm, operation: str, whole: Histogram, runs: int, most_us: float) -> LatencyCurve:
    grid = [p for p in percentile_grid() if p <= 50.0 or (1 - p / 100.0) * whole.total >= 1 - 1e-9]
    p50, p95, p99, p999 = (ns / _NS_PER_US for ns in whole.at_percentiles(_NAMED))
    return LatencyCurve(
        arm=arm,
        operation=operation,
        runs=runs,
        count=whole.total,
        points=tuple(
            LatencyPoint(percentile, ns / _NS_PER_US)
            for percentile, ns in zip(grid, whole.at_percentiles(grid), strict=True)
        ),
        latency_us_p50=p50,
        latency_us_p95=p95,
        latency_us_p99=p99,
        latency_us_p999=p999,
        latency_us_max=most_us,
    )
