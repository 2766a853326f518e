"""Reads that missed a key which had been put: data loss, even if later phases hide it.

The driver reads a sample of keys back at the end of a run. Where a workload ends by deleting all of
them, that sample cannot tell what was lost in the middle, but the reads in the middle can.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from lsmtune.records.measurement import Measurement, Outcome, PhaseMeasurement, RunError
from lsmtune.records.workload import Phase

_PUTS_EVERY_KEY = "filluniquerandom"
_PUT_EVERY_KEY = frozenset({_PUTS_EVERY_KEY, "fillseq"})
_DELETES = frozenset({"deleterandom", "deleteuniquerandom"})
_READS_WHAT_WAS_PUT = frozenset({"readrandom", "readhot", "readuniquerandom"})
_DELETES_IN_MIX = frozenset({"delete", "delete_oldest"})
_KEEPS_NOTHING = "noop"  # the engine that stores no data


def with_lost_reads(
    measurement: Measurement, num: int, before: Sequence[Phase] = (), phases: Sequence[Phase] = ()
) -> Measurement:
    """`measurement` of a workload over `num` keys, as `data_loss` if reads missed what was put.

    `before` are the phases of the workload that an earlier run executed on the database, `phases`
    all of them, without which nothing is known of what a mix read.
    """
    if measurement.outcome is not Outcome.OK or measurement.engine.name == _KEEPS_NOTHING:
        return measurement
    deleting = frozenset(phase.name for phase in phases if _may_delete(phase))
    all_put = _put_all(before, num)
    phase = _first_lossy(measurement.phases, num, deleting, all_put=all_put)
    phase = phase or _first_lossy_mix(measurement.phases, num, phases)
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
    phases: Sequence[PhaseMeasurement], num: int, deleting: Collection[str], *, all_put: bool
) -> PhaseMeasurement | None:
    for phase in phases:
        if phase.operation in _DELETES or phase.name in deleting:
            all_put = False
        elif phase.operation == _PUTS_EVERY_KEY:
            all_put = all_put or phase.operations >= num
        elif all_put and phase.operation in _READS_WHAT_WAS_PUT and phase.keys_missing:
            return phase
    return None


def _first_lossy_mix(
    measured: Sequence[PhaseMeasurement], num: int, phases: Sequence[Phase]
) -> PhaseMeasurement | None:
    """The first phase whose mix missed keys among records that phases before it had all put.

    A mix chooses only among records that were there or that it has inserted itself.
    """
    by_name = {phase.name: phase for phase in measured}
    sure = 0
    for phase in phases:
        if _may_delete(phase):
            return None
        mix, found = phase.mix, by_name.get(phase.name)
        # Numbers between the records and the first insert belong to nobody.
        whole = mix is not None and mix.insert_from is None and mix.first + mix.records <= sure
        if whole and found is not None and found.keys_missing:
            return found
        sure = max(sure, _surely_put(phase, num, sure))
    return None


def _surely_put(phase: Phase, num: int, sure: int) -> int:
    """How many records from number 0 on `phase` leaves for certain, where `sure` were there."""
    done, mix = phase.operations_whole, phase.mix
    if done is None or phase.duration_s is not None:
        return 0
    if mix is None:
        return num if phase.operation in _PUT_EVERY_KEY and done >= num else 0
    alone = [name for name, _ in mix.operations] == ["insert"]
    follows = mix.first == 0 and mix.records <= sure and mix.insert_from is None
    return mix.records + done if alone and follows else 0


def _may_delete(phase: Phase) -> bool:
    mixes = (phase.mix, *(companion.mix for companion in phase.companions))
    operations = (phase.operation, *(companion.operation for companion in phase.companions))
    if phase.replay is not None or any(operation in _DELETES for operation in operations):
        return True
    return any(
        name in _DELETES_IN_MIX for mix in mixes if mix is not None for name, _ in mix.operations
    )
