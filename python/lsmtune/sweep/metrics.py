"""The metrics that a sweep shows of a measure phase, and the rates in bytes that it computes."""

from __future__ import annotations

from lsmtune.records.measurement import Measurement, PhaseMeasurement
from lsmtune.records.totals import total_metric

MB = 10**6

# As the driver observes them.
_OBSERVED = (
    *("throughput_ops_s", "sustained_throughput_ops_s", "elapsed_s", "drain_s"),
    *("latency_us_p50", "latency_us_p99", "compactions", "compaction_read_bytes"),
    *("compaction_write_bytes", "flushes", "flush_bytes", "write_amplification"),
    *("space_amplification", "database_bytes", "cpu_us_per_operation", "stall_s"),
)
# Rates in user bytes: keys and values that were written or read, in 10^6 bytes per second.
RATE_MB = "throughput_mb_s"
SUSTAINED_MB = "sustained_throughput_mb_s"
PHASE_TOTAL_S = "phase_with_drain_s"
TOTAL_S = "total_with_drain_s"
METRICS = (*_OBSERVED, RATE_MB, SUSTAINED_MB, PHASE_TOTAL_S, TOTAL_S)

# Rates and times, which are compared with the first cell; the rest may be zero or is a count.
RATIOS = (
    *("sustained_throughput_ops_s", SUSTAINED_MB, "throughput_ops_s", RATE_MB),
    *("latency_us_p99", PHASE_TOTAL_S),
)


def metrics_of(measurement: Measurement, phase: PhaseMeasurement) -> dict[str, float]:
    """Every metric of `phase` that is known, by name.

    `throughput_mb_s` is keys and values that users wrote and read, over the time of the operations;
    `sustained_throughput_mb_s` over that and the time to flush and drain. `phase_with_drain_s` is
    that time; `total_with_drain_s` the sum of it over all measure phases of the run.
    """
    found: dict[str, float | None] = {name: getattr(phase, name) for name in _OBSERVED}
    moved = (phase.user_bytes_written or 0) + (phase.user_bytes_read or 0)
    if moved > 0 and phase.elapsed_s > 0:
        found[RATE_MB] = moved / MB / phase.elapsed_s
    if phase.drain_s is not None:
        found[PHASE_TOTAL_S] = phase.elapsed_s + phase.drain_s
        if moved > 0 and phase.elapsed_s > 0:
            found[SUSTAINED_MB] = moved / MB / (phase.elapsed_s + phase.drain_s)
    found[TOTAL_S] = total_metric(measurement, TOTAL_S)
    return {name: float(value) for name in METRICS if (value := found.get(name)) is not None}
