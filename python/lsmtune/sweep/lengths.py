"""Whether the runs of a sweep were long enough to say what is sustained: pure."""

from __future__ import annotations

from collections.abc import Sequence

from lsmtune.proof.run_length import factor_wanted, run_length, scaled_num
from lsmtune.records.measurement import Measurement, Outcome
from lsmtune.rounds import CellRun
from lsmtune.sweep.grid import GridCell


def too_short(cells: Sequence[GridCell], runs: Sequence[CellRun]) -> list[str]:
    """A line per workload with cells whose last good run may be too short, with the worst of them.

    `runs` are in the order of the rounds. The worst cell is the one that wants the most keys.
    """
    last = {run.cell: run.measurement for run in runs if run.measurement.outcome is Outcome.OK}
    lines = []
    for workload in dict.fromkeys(cell.workload for cell in cells):
        known = [cell for cell in cells if cell.workload == workload and cell.cell.name in last]
        short = [cell for cell in known if run_length(last[cell.cell.name])]
        if short:
            lines.append(_line(workload, short, len(known), last))
    return lines


def _line(
    workload: str, short: Sequence[GridCell], known: int, last: dict[str, Measurement]
) -> str:
    factors = [factor_wanted(last[cell.cell.name]) or 1.0 for cell in short]
    worst = max(range(len(short)), key=lambda index: factors[index])
    cell = short[worst]
    said = run_length(last[cell.cell.name])[0]
    num = cell.cell.workload.num
    wanted = scaled_num(num, factors[worst])
    advice = f"; num={wanted} may do" if wanted > num else ""
    return (
        f"in {len(short)} of {known} cells of {workload} the runs may be too short to say what is "
        f"sustained ({cell.cell.name}: {said}{advice})"
    )
