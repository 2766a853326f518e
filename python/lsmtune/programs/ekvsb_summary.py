"""The figures of `ekvsb summary` of a phase that lsmtune's driver, or another program, performed.

ekvsb sums the operations' own times up; what lies between them is left out. A phase tells their
mean, so that their sum is known, and percentiles from a histogram, where ekvsb takes them from all
times in order. What is not told is None.
"""

from __future__ import annotations

from lsmtune.records.measurement import PhaseMeasurement

_US_PER_S = 1e6


def summary_of_phase(phase: PhaseMeasurement) -> dict[str, object]:
    """The document, in ekvsb's words and units (seconds).

    Operations that failed end a run, so that there are no errors. `min` is in no measurement.
    Writes, and reads of which it is not told whether they found their keys, are unknowns; the
    lookups of updates count as reads.
    """
    exists, absents = phase.keys_found or 0, phase.keys_missing or 0
    elapsed_s = _within_s(phase)
    return {
        "oks": phase.operations,
        "errors": 0,
        "existence": {
            "exists": exists,
            "absents": absents,
            "unknowns": max(0, phase.operations - exists - absents),
        },
        "elapsed": elapsed_s,
        "ops": phase.operations / elapsed_s if elapsed_s else None,
        "latency": {
            "min": None,
            "median": _seconds(phase.latency_us_p50),
            "p95": _seconds(phase.latency_us_p95),
            "p99": _seconds(phase.latency_us_p99),
            "max": _seconds(phase.latency_us_max),
        },
    }


def _within_s(phase: PhaseMeasurement) -> float | None:
    """Seconds within operations; None where latencies are not told of all of them."""
    if phase.latency_us_mean is not None:
        return phase.latency_us_mean * phase.operations / _US_PER_S
    told = phase.latencies.values()
    if sum(each.count for each in told) < phase.operations:
        return None
    return sum(each.latency_us_mean * each.count for each in told) / _US_PER_S


def _seconds(latency_us: float | None) -> float | None:
    return None if latency_us is None else latency_us / _US_PER_S
