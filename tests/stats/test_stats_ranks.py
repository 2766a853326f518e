"""Ranks and outliers against independent computations, and their promises by simulation."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from lsmtune.stats.intervals import holm_adjusted
from lsmtune.stats.ranks import (
    Matrix,
    Relation,
    adjusted_p_values,
    better_in_total,
    grubbs,
    outliers,
    proved_better,
    rank_intervals,
    ranks,
)

ALPHA = 0.05
TEAMS, ROUNDS, PHASES = 6, 5, 4
CONTESTS = 1500

Noise = Callable[[np.random.Generator, tuple[int, int]], NDArray[np.float64]]


def normal(random: np.random.Generator, shape: tuple[int, int]) -> NDArray[np.float64]:
    return random.normal(0.0, 0.02, shape)


def drifting(random: np.random.Generator, shape: tuple[int, int]) -> NDArray[np.float64]:
    """All runs of a round share what the machine does; some teams scatter more than others."""
    shared = np.cumsum(random.normal(0.0, 0.1, (shape[0], 1)), axis=0)
    return shared + random.normal(0.0, 0.02, shape) * np.geomspace(0.2, 5.0, shape[1])


def spiky(random: np.random.Generator, shape: tuple[int, int]) -> NDArray[np.float64]:
    """One run in ten is a fifth faster, as the one that decided a contest."""
    return random.normal(0.0, 0.01, shape) + 0.2 * (random.random(shape) < 0.1)


def skewed(random: np.random.Generator, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Runs are slowed down, and never sped up."""
    return -random.exponential(0.03, shape)


NOISES = [normal, drifting, spiky, skewed]


def contest(
    random: np.random.Generator, noise: Noise, effects: NDArray[np.float64]
) -> list[Relation]:
    """What is proved in each phase of one simulated contest; `effects` are (phases, teams)."""
    tables = [np.exp(effect + noise(random, (ROUNDS, len(effect)))) for effect in effects]
    return [proved_better(each, 1.0 - ALPHA) for each in adjusted_p_values(tables)]


def most(rate: float, trials: int) -> float:
    """The share that a rate of `rate` exceeds once in 10,000 times."""
    return float(stats.binom.ppf(0.9999, trials, rate)) / trials


@pytest.mark.parametrize("noise", NOISES)
def test_equal_teams_are_separated_no_more_often_than_stated(noise: Noise) -> None:
    random = np.random.default_rng(1)
    effects = np.zeros((PHASES, TEAMS))
    wrong = sum(
        any(better.any() for better in contest(random, noise, effects)) for _ in range(CONTESTS)
    )
    assert wrong / CONTESTS <= most(ALPHA, CONTESTS)


@pytest.mark.parametrize("noise", [normal, drifting, spiky])
def test_ranks_of_teams_that_differ_are_in_their_intervals(noise: Noise) -> None:
    """Some teams are equal, some differ by about the noise, some by much: one statement for all."""
    random = np.random.default_rng(2)
    base = np.array([0.0, 0.0, 0.02, 0.02, 0.05, 0.4])
    effects = np.array([np.roll(base, phase) for phase in range(PHASES)])
    true_ranks = np.array([ranks(effect) for effect in effects])
    totals = true_ranks.sum(axis=0)
    wrong = separated = 0
    for _ in range(CONTESTS // 3):
        betters = contest(random, noise, effects)
        intervals = [rank_intervals(better) for better in betters]
        right = all(
            interval.low <= rank <= interval.high
            for row, true in zip(intervals, true_ranks, strict=True)
            for interval, rank in zip(row, true, strict=True)
        )
        ahead = better_in_total(betters)
        right = right and all(totals[i] < totals[j] for i, j in np.argwhere(ahead))
        wrong += not right
        separated += sum(int(better.sum()) for better in betters)
    assert wrong / (CONTESTS // 3) <= most(ALPHA, CONTESTS // 3)
    # The one that is ahead by much is told from the five others in nearly every phase.
    if noise is normal:
        assert separated / (CONTESTS // 3) > 0.9 * 5 * PHASES


def test_normal_samples_have_outliers_no_more_often_than_stated() -> None:
    random = np.random.default_rng(3)
    wrong = sum(bool(outliers(random.normal(size=(24, 5)).tolist())) for _ in range(600))
    assert wrong / 600 <= most(ALPHA, 600)


def test_rounded_samples_have_outliers_no_more_often_than_stated() -> None:
    """Two of three percentiles of a histogram often tie: 80 % of contests had a sure outlier."""
    random = np.random.default_rng(6)
    wrong = 0
    for _ in range(200):
        rounded = np.round(np.exp(random.normal(0.0, 0.02, (40, 3))), 3)
        wrong += bool(outliers(np.log(rounded).tolist(), resolution=0.001))
    assert wrong / 200 <= most(ALPHA, 200)


def test_equal_teams_of_rounded_values_are_separated_no_more_often_than_stated() -> None:
    """Where the rounds of two teams tie, their difference does not scatter: it was sure, always."""
    random = np.random.default_rng(7)
    wrong = 0
    for _ in range(200):
        tables = np.exp(np.round(random.normal(0.0, 0.005, (PHASES, 2, TEAMS)), 3))
        found = adjusted_p_values([*tables], resolution=0.001)
        wrong += any(proved_better(each, 1.0 - ALPHA).any() for each in found)
    assert wrong / 200 <= most(ALPHA, 200)


def test_a_resolution_costs_little_where_the_noise_is_larger() -> None:
    random = np.random.default_rng(8)
    table = np.exp(random.normal([0.4, 0.0], 0.02, (5, 2)))
    (found,) = adjusted_p_values([table], resolution=0.002)
    (plain,) = adjusted_p_values([table])
    assert plain[0, 1] < found[0, 1] < 0.01


@pytest.mark.parametrize("resolution", [0.0, 0.002])
def test_one_run_that_is_a_fifth_faster_is_an_outlier(resolution: float) -> None:
    random = np.random.default_rng(4)
    found = 0
    for _ in range(100):
        samples = random.normal(0.0, 0.005, (24, 5))
        samples[7, 3] += 0.2
        called = outliers(samples.tolist(), resolution=resolution)
        found += [(o.sample, o.index) for o in called] == [(7, 3)]
    assert found >= 80


# Critical values of the one-sided test at 2.5 %, which is the two-sided one at 5 %: F. E. Grubbs,
# G. Beck, "Extension of sample sizes and percentage points", Technometrics 14, 1972, table I.
@pytest.mark.parametrize(("n", "critical"), [(5, 1.715), (10, 2.290), (20, 2.709)])
def test_grubbs_against_the_published_table(n: int, critical: float) -> None:
    def sample(deviations: float) -> list[float]:
        """n values of which the last lies so many standard deviations from the mean."""
        rest = np.where(np.arange(n - 1) % 2, 1.0, -1.0)
        low, high = 1.0, 1e6
        for _ in range(100):
            middle = (low + high) / 2
            is_below = grubbs([*rest, middle]).deviations < deviations
            low, high = (middle, high) if is_below else (low, middle)
        return [*rest, low]

    assert grubbs(sample(critical - 0.003)).p_value > 0.05
    assert grubbs(sample(critical + 0.003)).p_value < 0.05


def test_grubbs_of_values_that_are_all_but_one_the_same() -> None:
    assert grubbs([1.0, 1.0, 1.0, 1.0]).p_value == 1.0
    found = grubbs([1.0, 1.0, 2.0, 1.0])
    assert found.index == 2
    assert found.p_value < 1e-6


def test_holm_against_a_worked_example() -> None:
    # 0.01 * 4, 0.02 * 3, 0.03 * 2, and 0.005 * 4 first: sorted 0.005, 0.01, 0.03, 0.04.
    found = holm_adjusted([0.01, 0.04, 0.03, 0.005])
    assert found == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm_adjusted([]).size == 0


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20))
def test_holm_keeps_order_and_bounds(p_values: list[float]) -> None:
    found = holm_adjusted(p_values)
    assert (found >= np.array(p_values) - 1e-15).all()
    assert (found <= np.minimum(1.0, np.array(p_values) * len(p_values)) + 1e-15).all()
    order = np.argsort(p_values, kind="stable")
    assert (np.diff(found[order]) >= 0).all()


def test_p_values_agree_with_scipys_paired_test() -> None:
    random = np.random.default_rng(5)
    table = np.exp(random.normal(0.0, 0.1, (5, 3)))
    logs = np.log(table)
    raw = {
        (i, j): stats.ttest_rel(logs[:, i], logs[:, j], alternative="greater").pvalue
        for i, j in itertools.permutations(range(3), 2)
    }
    adjusted = holm_adjusted(list(raw.values()))
    (found,) = adjusted_p_values([table])
    for (i, j), expected in zip(raw, adjusted, strict=True):
        assert found[i, j] == pytest.approx(expected)
    assert (np.diag(found) == 1.0).all()


def test_a_lower_latency_is_better() -> None:
    table = np.array([[1.0, 2.0], [1.01, 2.03], [0.99, 1.98], [1.0, 2.01]])
    (faster,) = adjusted_p_values([table], higher_is_better=False)
    assert proved_better(faster).tolist() == [[False, True], [False, False]]
    assert ranks([1.0, 2.0, 1.0], higher_is_better=False) == [1, 3, 1]


def test_one_round_and_equal_values_prove_nothing() -> None:
    assert (adjusted_p_values([np.array([[1.0, 9.0]])])[0] == 1.0).all()
    assert not proved_better(adjusted_p_values([np.ones((5, 3))])[0]).any()


def test_the_same_ratio_in_every_round_is_sure() -> None:
    table = np.array([[2.0, 1.0], [4.0, 2.0], [8.0, 4.0]])
    assert proved_better(adjusted_p_values([table])[0]).tolist() == [[False, True], [False, False]]


def relation(pairs: set[tuple[int, int]], items: int) -> Relation:
    return proved_better(
        np.array([[0.0 if (i, j) in pairs else 1.0 for j in range(items)] for i in range(items)])
    )


def test_a_tie_is_not_transitive_and_an_order_is() -> None:
    # 0 is better than 2; 1 is told from neither: it shares the first rank with 0, the last with 2.
    found = rank_intervals(relation({(0, 2)}, 3))
    assert [(each.low, each.high) for each in found] == [(1, 2), (1, 3), (2, 3)]
    assert relation({(0, 1), (1, 2)}, 3)[0, 2]


@st.composite
def partial_orders(draw: st.DrawFn) -> Relation:
    """Of four items, better ones first."""
    pairs = st.sets(st.sampled_from(list(itertools.combinations(range(4), 2))))
    names = draw(st.permutations(range(4)))
    return relation({(names[i], names[j]) for i, j in draw(pairs)}, 4)


def rankings(better: Relation) -> list[dict[int, int]]:
    """Every order of the items, without ties, that `better` allows: item to rank."""
    orders = itertools.permutations(range(len(better)))
    return [
        {item: 1 + place for place, item in enumerate(order)}
        for order in orders
        if not any(better[j, i] for i, j in itertools.combinations(order, 2))
    ]


@given(partial_orders())
def test_rank_intervals_are_those_of_all_orders_that_are_possible(better: Relation) -> None:
    possible = rankings(better)
    for item, interval in enumerate(rank_intervals(better)):
        assert interval.low == min(order[item] for order in possible)
        assert interval.high == max(order[item] for order in possible)


@settings(max_examples=40)
@given(partial_orders(), partial_orders())
def test_better_in_total_is_what_no_order_contradicts(one: Relation, other: Relation) -> None:
    ahead = better_in_total([one, other])
    for i, j in itertools.permutations(range(4), 2):
        worst = sum(
            max(order[i] - order[j] for order in rankings(better)) for better in (one, other)
        )
        assert bool(ahead[i, j]) == (worst < 0)
    assert not np.diag(ahead).any()


@pytest.mark.parametrize(
    "table", [np.ones(3), np.array([[1.0, 0.0]]), np.array([[1.0, np.nan]]), np.array([[-1.0]])]
)
def test_what_is_no_table_of_positive_numbers_is_refused(table: Matrix) -> None:
    with pytest.raises(ValueError, match=r"a table has rounds and items|above zero"):
        adjusted_p_values([table])
