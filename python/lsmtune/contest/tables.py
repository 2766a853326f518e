"""The tables of a contest's standings: teams by phase, teams in total, outliers. Records only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lsmtune.records.objective import Direction


@dataclass(frozen=True)
class TeamRow:
    """One team in one phase; `values` by round. The bounds of the mean are None with one round.

    `rank_low` to `rank_high` are the ranks that the rounds leave open.
    """

    team: str
    values: tuple[float, ...]
    mean: float
    mean_low: float | None
    mean_high: float | None
    median: float
    rank_by_mean: int
    rank_by_median: int
    rank_low: int
    rank_high: int


@dataclass(frozen=True)
class Separation:
    """`better` is proved better than `worse`, `ratio` times in the geometric mean.

    `p_value` is adjusted for all pairs of all phases.
    """

    better: str
    worse: str
    ratio: float
    p_value: float


@dataclass(frozen=True)
class PhaseTable:
    """One phase: its teams, the best mean first, and which of them are told apart."""

    phase: str
    rows: tuple[TeamRow, ...]
    separations: tuple[Separation, ...]


@dataclass(frozen=True)
class TotalRow:
    """One team in total. Sums are of ranks over all phases; the smaller is the better.

    `sum_low` to `sum_high`, and `rank_low` to `rank_high`, are what the rounds leave open.
    """

    team: str
    rank_low: int
    rank_high: int
    sum_low: int
    sum_high: int
    rank_by_mean: int
    sum_by_mean: int
    rank_by_median: int
    sum_by_median: int


@dataclass(frozen=True)
class OutlierRow:
    """A run that is far from the other rounds of its team, and what the ranking is without it.

    `p_value` is adjusted for all teams and phases. `ratio` is the run's value over the geometric
    mean of the team's others. `first_*` are the teams on rank 1 of the phase; `total_*` map every
    team to its total rank by mean. Without it: the team's mean is of its other rounds.
    """

    phase: str
    team: str
    round: int
    value: float
    ratio: float
    deviations: float
    p_value: float
    mean: float
    mean_without: float
    rank_by_mean: int
    rank_without: int
    rank_by_median: int
    first_by_mean: tuple[str, ...]
    first_without: tuple[str, ...]
    first_by_median: tuple[str, ...]
    order_changes: bool
    total_by_mean: Mapping[str, int]
    total_without: Mapping[str, int]

    @property
    def decides_first(self) -> bool:
        """Whether another team is first of the phase without this run."""
        return self.first_by_mean != self.first_without

    @property
    def decides_total(self) -> bool:
        """Whether a total rank by mean is another without this run."""
        return dict(self.total_by_mean) != dict(self.total_without)


@dataclass(frozen=True)
class Standings:
    """All that the scores say; `confidence` is that of all separations together."""

    metric: str
    direction: Direction
    rounds: tuple[int, ...]
    confidence: float
    phases: tuple[PhaseTable, ...]
    totals: tuple[TotalRow, ...]
    outliers: tuple[OutlierRow, ...]
