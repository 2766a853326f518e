"""From what a program tells of a phase to a PhaseMeasurement; what it does not tell is None."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lsmtune.programs.histogram_output import HistogramText
from lsmtune.records.engine import Build
from lsmtune.records.measurement import Latency, PhaseMeasurement
from lsmtune.records.workload import Phase
from lsmtune.runners.program import StepOutput

_ASSERTIONS = "Assertions are enabled"


@dataclass(frozen=True)
class Told:
    """What a program says of one phase. `own_type` is the type whose latency is the phase's."""

    operations: int
    elapsed_s: float
    throughput_ops_s: float
    latencies: Mapping[str, Latency] = field(default_factory=dict)
    own_type: str | None = None
    keys_found: int | None = None
    keys_missing: int | None = None
    operations_by_type: Mapping[str, int] | None = None


def phase_measurement(
    phase: Phase, told: Told, output: StepOutput, *, alone: bool
) -> PhaseMeasurement:
    """The measurement of `phase`.

    `alone`: the process did nothing else, so that its processor time is that of the phase, with
    what opening and closing the database take. Elapsed time is the program's own figure.
    """
    own = told.latencies.get(told.own_type) if told.own_type is not None else None
    cpu_us = output.cpu_s * 1e6 / told.operations if alone and told.operations else None
    return PhaseMeasurement(
        name=phase.name,
        kind=phase.kind.value,
        operation=phase.operation or ("mix" if phase.mix is not None else None),
        threads=phase.threads,
        operations=told.operations,
        elapsed_s=told.elapsed_s,
        drain_s=None,
        throughput_ops_s=told.throughput_ops_s,
        sustained_throughput_ops_s=None,
        cut_short=False,
        user_bytes_written=None,
        user_bytes_read=None,
        rss_bytes_max=output.rss_bytes_max,
        database_bytes=output.database_bytes,
        started_unix_us=output.started_unix_us,
        finished_unix_us=output.finished_unix_us,
        latency_us_mean=None if own is None else own.latency_us_mean,
        latency_us_p50=None if own is None else own.latency_us_p50,
        latency_us_p95=None if own is None else own.latency_us_p95,
        latency_us_p99=None if own is None else own.latency_us_p99,
        latency_us_p999=None if own is None else own.latency_us_p999,
        latency_us_max=None if own is None else own.latency_us_max,
        latencies=told.latencies,
        intervals=output.intervals,
        keys_found=told.keys_found,
        keys_missing=told.keys_missing,
        cpu_us_per_operation=cpu_us,
        operations_by_type=told.operations_by_type,
    )


def build_told(warnings: Iterable[str]) -> Build:
    """The build of either db_bench, by the warnings that it printed."""
    on = any(warning.startswith(_ASSERTIONS) for warning in warnings)
    return Build.ASSERTIONS_ON if on else Build.RELEASE


def latency_of(histogram: HistogramText) -> Latency | None:
    """The latency that a printed histogram tells; percentiles by the program's own formula."""
    if not histogram.count or histogram.mean_us is None:
        return None
    return Latency(
        count=histogram.count,
        latency_us_mean=histogram.mean_us,
        latency_us_p50=histogram.percentile_us(50.0),
        latency_us_p95=histogram.percentile_us(95.0),
        latency_us_p99=histogram.percentile_us(99.0),
        latency_us_p999=histogram.percentile_us(99.9),
        latency_us_max=histogram.max_us,
    )
