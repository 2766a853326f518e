"""Standings: who is where in each phase and in total, and which single runs decide that.

Two rankings stand beside each other. The one by mean is what contests publish: teams in the order
of their mean, ranks added up. The one with ties says what the rounds prove: a team's rank is an
interval, and teams that are not told apart share ranks (`stats.ranks`).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from lsmtune.contest.scores import Scores
from lsmtune.contest.tables import (
    OutlierRow,
    PhaseTable,
    Separation,
    Standings,
    TeamRow,
    TotalRow,
)
from lsmtune.records.objective import Direction
from lsmtune.stats.outliers import outliers
from lsmtune.stats.ranks import (
    Relation,
    adjusted_p_values,
    better_in_total,
    mean_interval,
    proved_better,
    rank_intervals,
    ranks,
)

CONFIDENCE = 0.95

Values = Mapping[str, Mapping[str, Sequence[float]]]


def standings_of(scores: Scores, confidence: float = CONFIDENCE) -> Standings:
    """The standings of `scores`, which have at least one round.

    Raises ValueError for scores without a round, team or phase, and as `stats.ranks` does.
    """
    if not (scores.rounds and scores.teams and scores.phases):
        raise ValueError("scores have at least one round, team and phase")
    higher = scores.direction is Direction.MAXIMIZE
    tables = [
        np.array([scores.values[phase][team] for team in scores.teams]).T for phase in scores.phases
    ]
    p_values = adjusted_p_values(tables, higher_is_better=higher)
    betters = [proved_better(each, confidence) for each in p_values]
    by_mean, by_median = _Ranking(scores, scores.values), _Ranking(scores, scores.values, _median)
    phases = []
    for number, phase in enumerate(scores.phases):
        rows = _rows(scores, phase, betters[number], by_mean, by_median, confidence)
        found = _separations(scores, phase, betters[number], p_values[number])
        phases.append(PhaseTable(phase, rows, found))
    return Standings(
        scores.metric,
        scores.direction,
        scores.rounds,
        confidence,
        tuple(phases),
        _totals(scores, betters, by_mean, by_median),
        tuple(_outliers(scores, by_mean, by_median, 1.0 - confidence)),
    )


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values)


def _median(values: Sequence[float]) -> float:
    return statistics.median(values)


class _Ranking:
    """Ranks of the teams in every phase, and in total by the sum of these, ties shown."""

    def __init__(
        self, scores: Scores, values: Values, middle: Callable[[Sequence[float]], float] = _mean
    ) -> None:
        higher = scores.direction is Direction.MAXIMIZE
        self.ranks: dict[str, dict[str, int]] = {}
        for phase in scores.phases:
            middles = [middle(values[phase][team]) for team in scores.teams]
            found = ranks(middles, higher_is_better=higher)
            self.ranks[phase] = dict(zip(scores.teams, found, strict=True))
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
    for team, ranked in zip(scores.teams, rank_intervals(better), strict=True):
        values = scores.values[phase][team]
        around = mean_interval(values, confidence) if len(values) > 1 else None
        rows.append(
            TeamRow(
                team,
                values,
                _mean(values),
                None if around is None else around.low,
                None if around is None else around.high,
                _median(values),
                by_mean.ranks[phase][team],
                by_median.ranks[phase][team],
                ranked.low,
                ranked.high,
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
    found = []
    for i, j in np.argwhere(better):
        one, other = scores.teams[i], scores.teams[j]
        ratio = math.exp(sign * (logs[one] - logs[other]))
        found.append(Separation(one, other, ratio, float(p_values[i, j])))
    return tuple(found)


def _log_mean(values: Sequence[float]) -> float:
    return statistics.fmean(math.log(value) for value in values)


def _totals(
    scores: Scores, betters: Sequence[Relation], by_mean: _Ranking, by_median: _Ranking
) -> tuple[TotalRow, ...]:
    """One row for each team, in the order of the leaderboard."""
    each = [rank_intervals(better) for better in betters]
    total = rank_intervals(better_in_total(betters))
    rows = [
        TotalRow(
            team,
            total[number].low,
            total[number].high,
            sum(intervals[number].low for intervals in each),
            sum(intervals[number].high for intervals in each),
            by_mean.totals[team],
            by_mean.sums[team],
            by_median.totals[team],
            by_median.sums[team],
        )
        for number, team in enumerate(scores.teams)
    ]
    return tuple(sorted(rows, key=lambda row: (row.rank_low, row.rank_by_mean, row.rank_high)))


def _outliers(
    scores: Scores, by_mean: _Ranking, by_median: _Ranking, alpha: float
) -> list[OutlierRow]:
    places = [(phase, team) for phase in scores.phases for team in scores.teams]
    samples = [[math.log(x) for x in scores.values[phase][team]] for phase, team in places]
    found = []
    for outlier in outliers(samples, alpha):
        phase, team = places[outlier.sample]
        values = scores.values[phase][team]
        others = [x for number, x in enumerate(values) if number != outlier.index]
        by_team = {**scores.values[phase], team: others}
        without = _Ranking(scores, {**scores.values, phase: by_team})
        found.append(
            OutlierRow(
                phase=phase,
                team=team,
                round=scores.rounds[outlier.index],
                value=values[outlier.index],
                ratio=values[outlier.index] / math.exp(_log_mean(others)),
                deviations=outlier.deviations,
                p_value=outlier.p_value,
                mean=_mean(values),
                mean_without=_mean(others),
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
    return found
