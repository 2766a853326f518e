"""How many records a phase leaves behind, as far as its statement tells."""

from __future__ import annotations

from lsmtune.records.workload import Mix, Phase, PhaseKind

_FILLS = frozenset({"fillseq", "filluniquerandom"})
_CHANGE_NUMBERS = frozenset({"insert", "delete_oldest"})


def records_after(phase: Phase, num: int, before: int | None) -> int | None:
    """Records that exist after `phase`, numbered from 0 on; None where that is left to chance.

    `before` are those that exist when it begins. Keys that are chosen at random may be put or
    deleted: they count as there, as the driver's choosers count them.
    """
    if phase.kind is PhaseKind.SETTLE or phase.replay is not None:
        return before
    mixes = [c.mix for c in phase.companions if c.mix is not None]
    if any(_CHANGE_NUMBERS & {name for name, _ in mix.operations} for mix in mixes):
        return None
    if phase.mix is not None:
        return _after_mix(phase.mix, phase)
    if phase.operation in _FILLS:
        done = phase.operations_whole
        return num if done is not None and done >= num else None
    # Written at random: most keys are there, and readers of all of them expect to miss some.
    return num if phase.operation == "fillrandom" else before


def _after_mix(mix: Mix, phase: Phase) -> int | None:
    names = {name for name, _ in mix.operations}
    if not names & _CHANGE_NUMBERS:
        return mix.first + mix.records if mix.first == 0 else None
    alone = names == {"insert"} and phase.duration_s is None and mix.insert_from is None
    if not alone or phase.operations_whole is None or mix.first:
        return None
    return mix.records + phase.operations_whole
