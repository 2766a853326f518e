"""Who is where in a contest, what the rounds prove of it, and the leaderboard that says so."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lsmtune.experiment.contest import Disqualified, Entry, Rule, Rules
from lsmtune.experiment.contest_scores import (
    Failed,
    LogFile,
    Scores,
    scores_of_logs,
    scores_of_runs,
)
from lsmtune.experiment.store import StoredMeasurement
from lsmtune.model.config import EngineIdentity, OptionValue
from lsmtune.model.goal import Direction
from lsmtune.model.metrics import BY_NAME
from lsmtune.model.workload import Workload
from lsmtune.stats.intervals import mean_interval
from lsmtune.stats.ranks import (
    Relation,
    adjusted_p_values,
    better_in_total,
    outliers,
    proved_better,
    rank_intervals,
    ranks,
)


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


# --- Standings: who is where in each phase and in total, and which single runs decide that.
#
# Two rankings stand beside each other. The one by mean is what contests publish: teams in the order
# of their mean, ranks added up. The one with ties says what the rounds prove: a team's rank is an
# interval, and teams that are not told apart share ranks (`stats.ranks`).

CONFIDENCE = 0.95
# Of logarithms: a percentile comes from a histogram of three significant digits, and below 2 us of
# whole nanoseconds; of half a microsecond one is 0.2 %.
_RESOLUTION_OF_PERCENTILES = 0.002


def standings_of(scores: Scores, confidence: float = CONFIDENCE) -> Standings:
    """The standings of `scores`, which have at least one round, team and phase."""
    higher = scores.direction is Direction.MAXIMIZE
    is_percentile = BY_NAME[scores.metric].percentile is not None
    resolution = _RESOLUTION_OF_PERCENTILES if is_percentile else 0.0
    tables = [
        np.array([scores.values[phase][team] for team in scores.teams]).T for phase in scores.phases
    ]
    p_values = adjusted_p_values(tables, higher_is_better=higher, resolution=resolution)
    betters = [proved_better(each, confidence) for each in p_values]
    by_mean = _Ranking(scores, scores.values)
    by_median = _Ranking(scores, scores.values, statistics.median)
    phases = [
        PhaseTable(
            phase,
            _rows(scores, phase, better, by_mean, by_median, confidence),
            _separations(scores, phase, better, phase_p_values),
        )
        for phase, better, phase_p_values in zip(scores.phases, betters, p_values, strict=True)
    ]
    return Standings(
        scores.metric,
        scores.direction,
        scores.rounds,
        confidence,
        tuple(phases),
        _totals(scores, betters, by_mean, by_median),
        tuple(_outliers(scores, by_mean, by_median, 1.0 - confidence, resolution)),
    )


class _Ranking:
    """Ranks of the teams in every phase, and in total by the sum of these, ties shown."""

    def __init__(
        self,
        scores: Scores,
        values: Mapping[str, Mapping[str, Sequence[float]]],
        middle: Callable[[Sequence[float]], float] = statistics.fmean,
    ) -> None:
        higher = scores.direction is Direction.MAXIMIZE
        self.ranks: dict[str, dict[str, int]] = {}
        for phase in scores.phases:
            middles = [middle(values[phase][team]) for team in scores.teams]
            of_phase = ranks(middles, higher_is_better=higher)
            self.ranks[phase] = dict(zip(scores.teams, of_phase, strict=True))
        self.sums = {team: sum(each[team] for each in self.ranks.values()) for team in scores.teams}
        totals = ranks(list(self.sums.values()), higher_is_better=False)
        self.totals = dict(zip(scores.teams, totals, strict=True))

    def first(self, phase: str) -> tuple[str, ...]:
        return tuple(team for team, rank in self.ranks[phase].items() if rank == 1)


def _rows(
    scores: Scores,
    phase: str,
    better: Relation,
    by_mean: _Ranking,
    by_median: _Ranking,
    confidence: float,
) -> tuple[TeamRow, ...]:
    rows = []
    for team, rank in zip(scores.teams, rank_intervals(better), strict=True):
        values = scores.values[phase][team]
        mean = mean_interval(values, confidence)
        rows.append(
            TeamRow(
                team=team,
                values=values,
                mean=mean.mean,
                mean_low=mean.low,
                mean_high=mean.high,
                median=mean.median,
                rank_by_mean=by_mean.ranks[phase][team],
                rank_by_median=by_median.ranks[phase][team],
                rank_low=rank.low,
                rank_high=rank.high,
            )
        )
    return tuple(sorted(rows, key=lambda row: row.rank_by_mean))


def _separations(
    scores: Scores,
    phase: str,
    better: Relation,
    p_values: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
) -> tuple[Separation, ...]:
    logs = {team: _log_mean(scores.values[phase][team]) for team in scores.teams}
    sign = 1.0 if scores.direction is Direction.MAXIMIZE else -1.0
    separations = []
    for i, j in np.argwhere(better):
        one, other = scores.teams[i], scores.teams[j]
        ratio = math.exp(sign * (logs[one] - logs[other]))
        separations.append(Separation(one, other, ratio, float(p_values[i, j])))
    return tuple(separations)


def _log_mean(values: Sequence[float]) -> float:
    return statistics.fmean(math.log(value) for value in values)


def _totals(
    scores: Scores, betters: Sequence[Relation], by_mean: _Ranking, by_median: _Ranking
) -> tuple[TotalRow, ...]:
    """One row for each team, in the order of the leaderboard."""
    by_phase = [rank_intervals(better) for better in betters]
    in_total = rank_intervals(better_in_total(betters))
    rows = [
        TotalRow(
            team=team,
            rank_low=in_total[number].low,
            rank_high=in_total[number].high,
            sum_low=sum(intervals[number].low for intervals in by_phase),
            sum_high=sum(intervals[number].high for intervals in by_phase),
            rank_by_mean=by_mean.totals[team],
            sum_by_mean=by_mean.sums[team],
            rank_by_median=by_median.totals[team],
            sum_by_median=by_median.sums[team],
        )
        for number, team in enumerate(scores.teams)
    ]
    return tuple(sorted(rows, key=lambda row: (row.rank_low, row.rank_by_mean, row.rank_high)))


def _outliers(
    scores: Scores, by_mean: _Ranking, by_median: _Ranking, alpha: float, resolution: float
) -> list[OutlierRow]:
    pairs = [(phase, team) for phase in scores.phases for team in scores.teams]
    samples = [[math.log(value) for value in scores.values[phase][team]] for phase, team in pairs]
    rows = []
    for outlier in outliers(samples, alpha, resolution):
        phase, team = pairs[outlier.sample]
        values = scores.values[phase][team]
        rest = [*values[: outlier.index], *values[outlier.index + 1 :]]
        by_team = {**scores.values[phase], team: rest}
        without = _Ranking(scores, {**scores.values, phase: by_team})
        rows.append(
            OutlierRow(
                phase=phase,
                team=team,
                round=scores.rounds[outlier.index],
                value=values[outlier.index],
                ratio=values[outlier.index] / math.exp(_log_mean(rest)),
                deviations=outlier.deviations,
                p_value=outlier.p_value,
                mean=statistics.fmean(values),
                mean_without=statistics.fmean(rest),
                rank_by_mean=by_mean.ranks[phase][team],
                rank_without=without.ranks[phase][team],
                rank_by_median=by_median.ranks[phase][team],
                first_by_mean=by_mean.first(phase),
                first_without=without.first(phase),
                first_by_median=by_median.first(phase),
                order_changes=by_mean.ranks[phase] != without.ranks[phase],
                total_by_mean=by_mean.totals,
                total_without=without.totals,
            )
        )
    return rows


# --- The Leaderboard: standings, and what has to be known beside them.


@dataclass(frozen=True)
class Leaderboard:
    """A contest's result. `standings` is None where no team could be ranked.

    `engine` and `workload` are None for logs, of which it is not known; `options` are what each
    team handed in.
    """

    metric: str
    direction: Direction
    standings: Standings | None
    engine: EngineIdentity | None = None
    workload: str | None = None
    rules: tuple[Rule, ...] = ()
    disqualified: tuple[Disqualified, ...] = ()
    failed: tuple[Failed, ...] = ()
    options: Mapping[str, Mapping[str, OptionValue]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def leaderboard_of_runs(
    runs: Sequence[StoredMeasurement],
    entries: Sequence[Entry],
    disqualified: Sequence[Disqualified],
    rules: Rules,
    engine: EngineIdentity,
    workload: Workload,
    metric: str,
    *,
    warnings: Sequence[str] = (),
    confidence: float = CONFIDENCE,
) -> Leaderboard:
    """The leaderboard of a contest's `runs`. Raises InputError as `scores_of_runs` does."""
    out = {each.team for each in disqualified}
    teams = [entry.name for entry in entries if entry.name not in out]
    scores, failed = scores_of_runs(runs, teams, workload.measured_names, metric)
    can_rank = bool(scores.teams and scores.rounds)
    return Leaderboard(
        metric,
        scores.direction,
        standings_of(scores, confidence) if can_rank else None,
        engine=engine,
        workload=workload.name,
        rules=tuple(rules.constraints),
        disqualified=tuple(disqualified),
        failed=failed,
        options={entry.name: entry.config.options for entry in entries},
        warnings=tuple(warnings),
    )


def leaderboard_of_logs(files: Sequence[LogFile], *, confidence: float = CONFIDENCE) -> Leaderboard:
    """The leaderboard of logs of YCSB-cpp. Raises InputError as `scores_of_logs` does."""
    scores, warnings = scores_of_logs(files)
    standings = standings_of(scores, confidence)
    return Leaderboard(scores.metric, scores.direction, standings, warnings=tuple(warnings))
