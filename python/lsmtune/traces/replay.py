"""A workload that replays a trace: on a database that another workload loads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lsmtune.errors import InputError
from lsmtune.records.workload import Phase, PhaseKind, Replay, Workload


def replay_workload(trace: Path, load: Workload, speed: float | None, threads: int) -> Workload:
    """The load phases of `load`, or its first phase as a load, settled; then the trace.

    `speed` 1 is the trace's own pace, None as fast as it goes. Raises InputError for a trace that
    is not a file.
    """
    if not trace.is_file():
        raise InputError(str(trace), why="no such file", allowed="a query trace of RocksDB")
    loads = [phase for phase in load.phases if phase.kind is PhaseKind.LOAD]
    if not loads:
        loads = [replace(phase, kind=PhaseKind.LOAD) for phase in load.phases[:1]]
    replayed = Phase(
        "replay",
        PhaseKind.MEASURE,
        replay=Replay(str(trace.resolve()), speed),
        threads=threads,
    )
    settle = Phase("settle", PhaseKind.SETTLE)
    return replace(load, name=f"replay-{trace.name}", phases=(*loads, settle, replayed))
