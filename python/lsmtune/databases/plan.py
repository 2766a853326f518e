"""Which phases of a workload a golden database stands for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import takewhile

from lsmtune.records.workload import Durability, PageCache, Phase, PhaseKind, Workload

_PREPARING = (PhaseKind.LOAD, PhaseKind.SETTLE)
_SETTLE = Phase("settle", PhaseKind.SETTLE)


@dataclass(frozen=True)
class LoadPlan:
    """A workload cut in two.

    `load` is the workload that makes the golden database: the leading load and settle phases, of
    which the last is a settle phase. `run` is the workload of a run on a copy of it: it begins
    with the phases of `load`, so that phases keep their places, and has the rest behind them.
    """

    load: Workload
    run: Workload

    @property
    def phases(self) -> int:
        """How many phases of `run` the golden database stands for."""
        return len(self.load.phases)


def load_plan(workload: Workload) -> LoadPlan | None:
    """How `workload` is cut; None when it does not begin with a load, or is nothing else.

    None as well where a trace loads it: the driver then has no ledger to leave for the copies.

    A load that is not settled at its end gets a settle phase there: a database with compactions
    to do would do other ones in each copy.

    Nothing of the load is measured, so `sync` is left out of it: the files are synced as a whole
    before the first copy, and `wal` makes the same ones without waiting for each write.
    """
    leading = tuple(takewhile(lambda phase: phase.kind in _PREPARING, workload.phases))
    rest = workload.phases[len(leading) :]
    if not rest or all(phase.kind is not PhaseKind.LOAD for phase in leading):
        return None
    if any(phase.replay is not None for phase in leading):
        return None
    if leading[-1].kind is not PhaseKind.SETTLE:
        leading = (*leading, _SETTLE)
    sync = workload.durability is Durability.SYNC
    load = replace(
        workload,
        phases=leading,
        durability=Durability.WAL if sync else workload.durability,
        page_cache=PageCache.WARM,
    )
    return LoadPlan(load, replace(workload, phases=(*leading, *rest)))
