"""What a table of a sweep says beside its numbers: the best cell, edges, interaction, failures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from lsmtune.stats.interaction import interaction
from lsmtune.stats.paired import MINIMUM_PAIRS, paired_ratio
from lsmtune.sweep.axes import Axis
from lsmtune.sweep.result import CellSummary

# With fewer values on an axis each of them is an edge.
_VALUES_WITH_A_MIDDLE = 3
_SIGNIFICANT = 0.05


def table_notes(
    axes: Sequence[Axis],
    cells: Sequence[CellSummary],
    best: int | None,
    values: Sequence[Mapping[int, float]],
    metric: str,
) -> list[str]:
    """A line for each thing to know; `values` of `metric` are those of each cell, by round."""
    if best is None:
        return ["no run of this table ended well"]
    lines = [_best(axes, cells[best], metric) + _as_good(values, best)]
    lines += _edges(axes, cells[best])
    lines += [line for line in (_interaction(axes, values),) if line]
    return lines + list(_missing(cells))


def _best(axes: Sequence[Axis], cell: CellSummary, metric: str) -> str:
    told = ", ".join(f"{a.name}={text}" for a, text in zip(axes, cell.values, strict=True))
    kind = "sustained" if metric.startswith("sustained") else "without the drain"
    return f"most operations per second, {kind}: {told}"


def _as_good(values: Sequence[Mapping[int, float]], best: int) -> str:
    """How many cells cannot be told from the best one by the rounds that both have."""
    others = [found for index, found in enumerate(values) if index != best]
    alike = sum(not _told_apart(values[best], other) for other in others)
    if not alike:
        return ""
    which = "all others" if alike == len(others) else f"{alike} of the {len(others)} others"
    return f"; {which} cannot be told from it by these rounds"


def _told_apart(best: Mapping[int, float], other: Mapping[int, float]) -> bool:
    rounds = [n for n in sorted(set(best) & set(other)) if best[n] > 0.0 and other[n] > 0.0]
    if len(rounds) < MINIMUM_PAIRS:
        return False
    return paired_ratio([best[n] for n in rounds], [other[n] for n in rounds]).excludes_one()


def _edges(axes: Sequence[Axis], cell: CellSummary) -> Iterator[str]:
    """Where the best cell has an end of an axis, the best value may lie beyond it."""
    for axis, index, text in zip(axes, cell.point, cell.values, strict=True):
        last = len(axis.values) - 1
        if len(axis.values) >= _VALUES_WITH_A_MIDDLE and index in (0, last):
            end = "first" if index == 0 else "last"
            yield (
                f"edge: {axis.name}={text} is the {end} value of its axis; "
                "what lies beyond it was not measured"
            )


def _interaction(axes: Sequence[Axis], values: Sequence[Mapping[int, float]]) -> str:
    """Whether one axis acts the same at all values of the others; empty where that cannot be told.

    Only rounds count in which every cell has a value.
    """
    rounds = set.intersection(*(set(found) for found in values)) if values else set()
    table = [[found[number] for number in sorted(rounds)] for found in values]
    grid = np.array(table, dtype=np.float64)
    if not rounds or not (grid > 0.0).all():
        return ""
    found = interaction(grid.reshape(*(len(axis.values) for axis in axes), len(rounds)))
    if found is None:
        return ""
    names = " and ".join(axis.name for axis in axes if len(axis.values) > 1)
    at = ", ".join(
        f"{axis.name}={axis.texts[index]}" for axis, index in zip(axes, found.cell, strict=True)
    )
    away = f"up to {100 * (found.largest - 1):.1f} % (at {at})"
    if found.p_value is None:
        return f"a factor for each of {names} explains the cells to within {away}; one repeat " + (
            "does not tell how much of that is noise"
        )
    told = "p < 0.001" if found.p_value < 0.001 else f"p = {found.p_value:.2g}"
    if found.p_value < _SIGNIFICANT:
        return (
            f"interaction: {names} do not act independently: a factor for each leaves {away} "
            f"unexplained ({told})"
        )
    return f"no interaction of {names} seen beyond the noise of the repeats ({told})"


def _missing(cells: Sequence[CellSummary]) -> Iterator[str]:
    bad = sum(sum(cell.outcomes.values()) - cell.runs_ok for cell in cells)
    runs = sum(sum(cell.outcomes.values()) for cell in cells)
    if bad:
        yield f"{bad} of {runs} runs did not end well; their cells rest on the others"
