"""Reads that missed a key which had been put: data loss, even if later phases hide it.

The driver reads a sample of keys back at the end of a run. Where a workload ends by deleting all of
them, that sample cannot tell what was lost in the middle, but the reads in the middle can.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lsmtune.records.measurement import Measurement, Outcome, PhaseMeasurement, RunError
from lsmtune.records.workload import Phase

_PUTS_EVERY_KEY = "filluniquerandom"
_DELETES = frozenset({"deleterandom", "deleteuniquerandom"})
_READS_WHAT_WAS_PUT = frozenset({"readrandom", "readhot", "readuniquerandom"})
_KEEPS_NOTHING = "noop"  # the engine that stores no data


def with_lost_reads(
    measurement: Measurement, num: int, before: Sequence[Phase] = ()
) -> Measurement:
    """`measurement` of a workload over `num` keys, as `data_loss` if reads missed what was put.

    `before` are the phases of the workload that an earlier run executed on the database.
    """
    if measurement.outcome is not Outcome.OK or measurement.engine.name == _KEEPS_NOTHING:
        return measurement
    phase = _first_lossy(measurement.phases, num, all_put=_put_all(before, num))
    if phase is None:
        return measurement
    message = (
        f"{phase.keys_missing} of {phase.operations} keys that were put not found in {phase.name}"
    )
    error = RunError(Outcome.DATA_LOSS.value, message)
    return replace(measurement, outcome=Outcome.DATA_LOSS, error=error)


def _put_all(before: Sequence[Phase], num: int) -> bool:
    puts = [phase for phase in before if phase.operation == _PUTS_EVERY_KEY]
    return any(
        phase.duration_s is None and (phase.operations_per_thread or 0) * phase.threads >= num
        for phase in puts
    )


def _first_lossy(
    phases: Sequence[PhaseMeasurement], num: int, *, all_put: bool
) -> PhaseMeasurement | None:
    for phase in phases:
        if phase.operation == _PUTS_EVERY_KEY:
            all_put = all_put or phase.operations >= num
        elif phase.operation in _DELETES:
            all_put = False
        elif all_put and phase.operation in _READS_WHAT_WAS_PUT and phase.keys_missing:
            return phase
    return None
