"""An Objective: a pure function from a Measurement to a value with a direction.

Its metric is one of a phase or of the whole run (`METRICS`), or a name that a program of the
user's own reported.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum

from lsmtune.records.measurement import Measurement, Outcome, PhaseMeasurement
from lsmtune.records.totals import TOTAL_METRICS, total_metric


class Direction(StrEnum):
    """Which way is better."""

    MAXIMIZE = "maximize"
    MINIMIZE = "minimize"


HIGHER_IS_BETTER = frozenset({"throughput_ops_s", "sustained_throughput_ops_s"})
_NOT_METRICS = frozenset(
    {"name", "kind", "operation", "threads", "cut_short", "latencies", "intervals"}
    | {"started_unix_us", "finished_unix_us", "operations", "keys_found", "keys_missing"}
    | {"slices", "levels", "files_per_level", "bytes_per_level", "steal_s"}
    | {"page_cache_cached_share", "operations_by_type", "replay"}
)
PHASE_METRICS = tuple(f.name for f in fields(PhaseMeasurement) if f.name not in _NOT_METRICS)
METRICS = (*PHASE_METRICS, *TOTAL_METRICS)
# What a constraint may call a metric for short.
SHORT_NAMES = {"db_bytes": "database_bytes"}


def default_direction(metric: str) -> Direction:
    """The direction in which `metric` is better unless the user says otherwise."""
    return Direction.MAXIMIZE if metric in HIGHER_IS_BETTER else Direction.MINIMIZE


@dataclass(frozen=True)
class Objective:
    """`metric` of the measure phase named `phase`; without a name, of the only or last one."""

    metric: str = "sustained_throughput_ops_s"
    direction: Direction = Direction.MAXIMIZE
    phase: str | None = None

    def value(self, measurement: Measurement) -> float | None:
        """The metric's value, or None when the run did not end `ok` or did not observe it."""
        if measurement.outcome is not Outcome.OK:
            return None
        return metric_value(measurement, self.metric, self.phase_of(measurement))

    def better(self, value: float, other: float) -> bool:
        """Whether `value` is better than `other`; equal values are not."""
        return value > other if self.direction is Direction.MAXIMIZE else value < other

    def phase_of(self, measurement: Measurement) -> PhaseMeasurement | None:
        """The phase that this objective looks at."""
        measured = [p for p in measurement.phases if p.kind == "measure"]
        if self.phase is not None:
            measured = [p for p in measured if p.name == self.phase]
        return measured[-1] if measured else None

    @property
    def label(self) -> str:
        """The metric, with the phase where one is named: what tells objectives of a study apart."""
        return self.metric if self.phase is None else f"{self.phase}.{self.metric}"


def metric_value(
    measurement: Measurement, metric: str, phase: PhaseMeasurement | None
) -> float | None:
    """`metric` of the phase or of the whole run, or as a program reported it; None: not known."""
    metric = SHORT_NAMES.get(metric, metric)
    if metric in TOTAL_METRICS:
        found = total_metric(measurement, metric)
    else:
        found = getattr(phase, metric) if phase is not None and metric in PHASE_METRICS else None
    if found is None:
        found = measurement.reported.get(metric)
    return None if found is None else float(found)
