"""What runs of the same configuration under the same workload come to: medians, ranges, noise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from lsmtune.analysis.runs import measured
from lsmtune.proof.others import REPORTED
from lsmtune.records.measurement import Measurement, Outcome
from lsmtune.stats.noise import Noise, noise_of

# Of two runs the spread is known within a factor of 30 only.
RUNS_LEAST = 3


@dataclass(frozen=True)
class RepeatRow:
    """One metric of one measure phase over `runs` runs; `low` and `high` are its range.

    `noise` is None with fewer than `RUNS_LEAST` runs, and for values that are not above zero.
    """

    phase: str
    metric: str
    runs: int
    median: float
    low: float
    high: float
    noise: Noise | None


def repeat_rows(measurements: Sequence[Measurement]) -> tuple[RepeatRow, ...]:
    """Each reported metric of each measure phase, over the runs that ended well, in their order."""
    good = [run for run in measurements if run.outcome is Outcome.OK]
    names = dict.fromkeys(phase.name for run in good for phase in measured(run))
    return tuple(row for name in names for row in _rows(name, good))


def _rows(name: str, runs: Sequence[Measurement]) -> Iterator[RepeatRow]:
    phases = [phase for run in runs for phase in measured(run) if phase.name == name]
    for metric in REPORTED:
        values = [value for phase in phases if (value := getattr(phase, metric)) is not None]
        if values:
            yield RepeatRow(
                phase=name,
                metric=metric,
                runs=len(values),
                median=median(values),
                low=min(values),
                high=max(values),
                noise=_noise(values),
            )


def _noise(values: Sequence[float]) -> Noise | None:
    if len(values) < RUNS_LEAST or not all(v > 0 and math.isfinite(v) for v in values):
        return None
    return noise_of(values)
