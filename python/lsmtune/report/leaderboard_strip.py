"""Where the marks of a phase's plot go: rounds, mean and interval of every team. Geometry only."""

from __future__ import annotations

from dataclasses import dataclass

from lsmtune.contest.tables import PhaseTable, TeamRow

_MARGIN = 0.04  # of the span, on either side, so that no mark touches an end


@dataclass(frozen=True)
class Mark:
    """One round's run at `place`."""

    place: float
    round: int
    is_outlier: bool


@dataclass(frozen=True)
class Strip:
    """One team; places in percent of the width. `low` and `high` are None with one round."""

    team: str
    marks: tuple[Mark, ...]
    mean: float
    low: float | None
    high: float | None


def strips(
    phase: PhaseTable, rounds: tuple[int, ...], outliers: frozenset[tuple[str, int]]
) -> tuple[Strip, ...]:
    """The rows of the plot, on one scale; `outliers` are teams and rounds."""
    known = [x for row in phase.rows for x in (*row.values, row.mean_low, row.mean_high)]
    values = [value for value in known if value is not None]
    low, high = min(values), max(values)
    span = (high - low) or abs(high) or 1.0
    start, whole = low - _MARGIN * span, (high - low) + 2 * _MARGIN * span

    def place(value: float) -> float:
        return round(100 * (value - start) / whole, 2)

    def strip(row: TeamRow) -> Strip:
        marks = (
            Mark(place(value), number, (row.team, number) in outliers)
            for number, value in zip(rounds, row.values, strict=True)
        )
        bounds = (None if each is None else place(each) for each in (row.mean_low, row.mean_high))
        return Strip(row.team, tuple(marks), place(row.mean), *bounds)

    return tuple(strip(row) for row in phase.rows)
