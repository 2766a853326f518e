"""The baseline of a study: measured once under every workload, before the search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lsmtune.records.goal import Goal
from lsmtune.records.measurement import Measurement, Outcome
from lsmtune.storage.measurements import StoredMeasurement


@dataclass(frozen=True)
class Baseline:
    """The newest run that ended well under each workload, in the order of the workloads."""

    runs: tuple[StoredMeasurement, ...]

    @property
    def measurements(self) -> list[Measurement]:
        """What they observed."""
        return [run.measurement for run in self.runs]

    @property
    def wall_s(self) -> float:
        """Seconds that they cost together."""
        return sum(run.wall_s for run in self.runs)


def stored_baseline(rows: Sequence[StoredMeasurement], goal: Goal, workloads: int) -> Baseline:
    """What is stored of the baseline; workloads beyond the last of its runs are still to be run."""
    newest = {
        row.workload: row
        for row in rows
        if row.measurement.outcome is Outcome.OK and _observed(goal, row.measurement)
    }
    runs: list[StoredMeasurement] = []
    for workload in range(workloads):
        if workload not in newest:
            break
        runs.append(newest[workload])
    return Baseline(tuple(runs))


def _observed(goal: Goal, measurement: Measurement) -> bool:
    return all(objective.value(measurement) is not None for objective in goal.objectives)
