"""Metrics of a whole run: sums over its measure phases, for workloads that have several."""

from __future__ import annotations

from lsmtune.records.measurement import Measurement

TOTAL_METRICS = ("total_elapsed_s", "total_with_drain_s")


def total_metric(measurement: Measurement, metric: str) -> float | None:
    """One of TOTAL_METRICS, in seconds; None for another name, a run without measure phases, and
    where one of them does not tell.

    `total_elapsed_s` adds up the phases from their first operation to the end of their last one;
    `total_with_drain_s` adds the time to flush and compact what they wrote, which the next phase or
    user of the database would otherwise pay.
    """
    measured = [phase for phase in measurement.phases if phase.kind == "measure"]
    if metric not in TOTAL_METRICS or not measured:
        return None
    elapsed_s = sum(phase.elapsed_s for phase in measured)
    if metric == "total_elapsed_s":
        return elapsed_s
    drains_s = [phase.drain_s for phase in measured if phase.drain_s is not None]
    return elapsed_s + sum(drains_s) if len(drains_s) == len(measured) else None
