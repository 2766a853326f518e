"""Standings of scores that are made up, and scores of runs."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from contest_parts import run, scores
from hypothesis import given, settings
from hypothesis import strategies as st

from lsmtune.errors import InputError
from lsmtune.experiment.contest_scores import scores_of_runs
from lsmtune.experiment.standings import standings_of
from lsmtune.experiment.store import StoredMeasurement
from lsmtune.model.measurement import Outcome
from lsmtune.model.workload import Phase, PhaseKind, Workload

METRIC = "throughput_ops_s"
CLEAR = {"fast": [200.0, 202.0, 199.0, 201.0, 200.5], "slow": [100.0, 101.5, 99.0, 100.0, 100.7]}


def test_a_clear_winner_is_first_in_phase_and_in_total() -> None:
    found = standings_of(scores({"load": CLEAR, "run": CLEAR}))
    assert [(row.team, row.rank_low, row.rank_high) for row in found.totals] == [
        ("fast", 1, 1),
        ("slow", 2, 2),
    ]
    assert [(row.sum_low, row.sum_high) for row in found.totals] == [(2, 2), (4, 4)]
    (pair,) = found.phases[0].separations
    assert (pair.better, pair.worse) == ("fast", "slow")
    assert pair.ratio == pytest.approx(2.0, rel=0.01)
    assert found.outliers == ()


def test_teams_that_win_one_phase_each_share_the_first_rank() -> None:
    swapped = {"fast": CLEAR["slow"], "slow": CLEAR["fast"]}
    found = standings_of(scores({"load": CLEAR, "run": swapped}))
    assert [(row.rank_low, row.rank_by_mean) for row in found.totals] == [(1, 1), (1, 1)]
    assert [(row.sum_low, row.sum_high) for row in found.totals] == [(3, 3), (3, 3)]


def test_one_round_ranks_by_mean_and_proves_nothing() -> None:
    found = standings_of(scores({"run": {"a": [3.0], "b": [2.0], "c": [1.0]}}))
    (phase,) = found.phases
    assert [(row.team, row.rank_by_mean) for row in phase.rows] == [("a", 1), ("b", 2), ("c", 3)]
    assert all((row.rank_low, row.rank_high) == (1, 3) for row in phase.rows)
    assert phase.rows[0].mean_low is None


def test_equal_means_share_a_rank() -> None:
    found = standings_of(scores({"run": {"a": [3.0, 1.0], "b": [2.0, 2.0], "c": [1.0, 1.0]}}))
    assert [row.rank_by_mean for row in found.phases[0].rows] == [1, 1, 3]


def test_the_lower_latency_wins() -> None:
    found = standings_of(replace(scores({"run": CLEAR}), metric="latency_us_p99"))
    assert found.totals[0].team == "slow"
    (pair,) = found.phases[0].separations
    assert (pair.better, round(pair.ratio)) == ("slow", 2)


def test_an_outlier_that_decides_nothing_is_named_all_the_same() -> None:
    fast = [200.0, 202.0, 300.0, 201.0, 200.5]
    (outlier,) = standings_of(scores({"run": {**CLEAR, "fast": fast}})).outliers
    assert (outlier.team, outlier.round) == ("fast", 3)
    assert outlier.ratio == pytest.approx(1.49, abs=0.01)
    assert not outlier.decides_first
    assert not outlier.order_changes
    assert not outlier.decides_total


def test_percentiles_that_tie_make_no_outlier_of_the_third() -> None:
    """A histogram has three digits: 12.31, 12.31 and 12.40 us had a sure outlier, at p = 0."""
    ties = scores({"run": {"fast": [12.31, 12.31, 12.40], "slow": [24.85, 24.71, 24.95]}})
    far = scores({"run": {"fast": [12.31, 12.31, 12.31, 24.62], "slow": [24.9, 24.7, 25.0, 24.8]}})
    ties, far = (replace(each, metric="latency_us_p99") for each in (ties, far))
    assert standings_of(ties).outliers == ()
    assert [each.round for each in standings_of(far).outliers] == [4]


def test_percentiles_that_tie_separate_nobody() -> None:
    """Two rounds of 12.31 us and two of 12.34 us were a separation that is sure, at p = 0."""
    ties = scores({"run": {"fast": [12.31, 12.31], "slow": [12.34, 12.34]}})
    (phase,) = standings_of(replace(ties, metric="latency_us_p50")).phases
    assert phase.separations == ()
    assert len(standings_of(ties).phases[0].separations) == 1  # a rate is not rounded


@settings(max_examples=50)
@given(
    st.lists(st.lists(st.floats(1.0, 1e6), min_size=3, max_size=3), min_size=1, max_size=5).flatmap(
        lambda rows: st.tuples(st.just(rows), st.permutations("abc"))
    )
)
def test_the_order_of_teams_and_units_do_not_matter(
    given_rows: tuple[list[list[float]], list[str]],
) -> None:
    rows, order = given_rows
    by_team = {team: [row[i] for row in rows] for i, team in enumerate("abc")}
    one = standings_of(scores({"run": by_team}))
    shuffled = {team: [1024.0 * x for x in by_team[team]] for team in order}
    other = standings_of(scores({"run": shuffled}))

    def told(found: object) -> dict[str, tuple[int, ...]]:
        totals = found.totals  # type: ignore[attr-defined]
        return {r.team: (r.rank_by_mean, r.rank_by_median, r.rank_low, r.rank_high) for r in totals}

    assert told(one) == told(other)


def complete(rounds: int) -> list[StoredMeasurement]:
    places = itertools.product(range(rounds), ("a", "b"))
    return [run(team, number, load=100.0 + number, get=50.0) for number, team in places]


def test_scores_are_those_of_complete_rounds() -> None:
    runs = [*complete(3), run("a", 3, load=1.0, get=1.0)]
    found, failed = scores_of_runs(runs, ["a", "b"], ["load", "get"], METRIC)
    assert failed == ()
    assert found.rounds == (1, 2, 3)
    assert found.values["load"] == {"a": (100.0, 101.0, 102.0), "b": (100.0, 101.0, 102.0)}


def test_a_team_of_which_a_run_failed_is_not_ranked_and_holds_nobody_up() -> None:
    runs = [*complete(2), run("c", 0, load=9.0, get=9.0), run("c", 1, Outcome.TIMEOUT)]
    found, (failed,) = scores_of_runs(runs, ["a", "b", "c"], ["load", "get"], METRIC)
    assert found.teams == ("a", "b")
    assert found.rounds == (1, 2)
    assert (failed.team, failed.round) == ("c", 2)
    assert failed.why == "timeout: it fell over"


def test_a_metric_that_a_run_does_not_know() -> None:
    runs = complete(1)
    found, failed = scores_of_runs(runs, ["a", "b"], ["load"], "latency_us_p99")
    assert found.teams == ()
    assert failed[0].why == "latency_us_p99 of load is not known"


def test_a_throughput_of_zero_is_refused() -> None:
    runs = [run("a", 0, load=0.0), run("b", 0, load=1.0)]
    with pytest.raises(InputError, match=r"of a in round 1, load; found 0\.0; allowed: above 0"):
        scores_of_runs(runs, ["a", "b"], ["load"], METRIC)


def test_phases_are_those_that_are_measured() -> None:
    phases = (
        Phase("load", PhaseKind.LOAD, "fillseq", operations_per_thread=1),
        Phase("settle", PhaseKind.SETTLE),
        Phase("get", PhaseKind.MEASURE, "readrandom", operations_per_thread=1),
    )
    assert Workload("w", phases, 1).measured_names == ["get"]
