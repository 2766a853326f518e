"""How much is left of a sweep, from what its cells took so far: pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from lsmtune.rounds import CellRun
from lsmtune.sweep.grid import GridCell


def left_s(names: Sequence[str], rounds: int, runs: Iterable[CellRun]) -> float | None:
    """Seconds until each of `names` has run in each of `rounds`; None before any has.

    A cell takes what it took so far, in the mean; one that has not run yet, the mean of the others.
    """
    walls: dict[str, list[float]] = {name: [] for name in names}
    for run in runs:
        if run.cell in walls:
            walls[run.cell].append(run.wall_s)
    means = {name: statistics.fmean(taken) for name, taken in walls.items() if taken}
    if not means:
        return None
    usual = statistics.fmean(means.values())
    each = [(means.get(name, usual), len(walls[name])) for name in names]
    return sum(mean * max(0, rounds - count) for mean, count in each)


def is_rough(names: Sequence[str], runs: Iterable[CellRun]) -> bool:
    """Whether some cell has not run yet, so that `left_s` is a guess for it."""
    return bool(set(names) - {run.cell for run in runs})


def written_bytes(cells: Iterable[GridCell]) -> int:
    """Bytes of keys and values in the databases of one round, as if each was filled once."""
    return sum(
        w.num * (w.key_bytes + w.value_bytes) for w in (cell.cell.workload for cell in cells)
    )
