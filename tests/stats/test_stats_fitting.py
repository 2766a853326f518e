"""Models of sizes, rates and keys give known parameters back, by simulation over seeds."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mixgraph_model import hottest, pareto_sizes, power_keys, range_keys, scattered

from lsmtune.stats.fitting import (
    Pareto,
    explained_share,
    fit_pareto,
    fit_sine,
    ks_distance,
    quantiles,
    relative_error,
    shares,
    total_variation,
)
from lsmtune.stats.key_hotness import (
    Grains,
    SortedCurve,
    fit_power_law,
    fit_zipf,
    hit_ratios,
    power_groups,
    uniform_groups,
    zipf_groups,
)
from lsmtune.stats.range_hotness import fit_by_key, fit_two_term_exponential, reads_of_written

ZIPPYDB_RANGES = (14.18, -2.917, 0.0164, -0.08082)
ZIPPYDB_KEYS = (0.002312, 0.3467)
# The published density a * x^b of the social graph, as a share a * x^b of the x hottest.
SOCIAL_KEYS = (0.001636 / (1 - 0.7094), 1 - 0.7094)
SEEDS = range(2)


def counted(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.unique(values, return_counts=True)


@pytest.mark.parametrize(
    ("k", "sigma", "seed"),
    [(0.2615, 25.45, 0), (0.923, 226.409, 1), (0.0819, 50.0, 2)],
    ids=["zippydb", "social", "thin"],
)
def test_db_benchs_pareto_comes_back_within_5_percent(k: float, sigma: float, seed: int) -> None:
    sizes, counts = counted(pareto_sizes(np.random.default_rng(seed), 60_000, k, sigma))
    fit = fit_pareto(sizes, counts, floor=10, wrap=1024)
    assert fit.k == pytest.approx(k, rel=0.05, abs=0.005)
    assert fit.sigma == pytest.approx(sigma, rel=0.05)


def test_a_mass_at_the_floor_misleads_a_fit_that_does_not_know_of_it() -> None:
    sizes, counts = counted(pareto_sizes(np.random.default_rng(1), 100_000, 0.2615, 25.45))
    knowing, not_knowing = fit_pareto(sizes, counts, floor=10), fit_pareto(sizes, counts)
    assert abs(not_knowing.k - 0.2615) > 0.08
    assert knowing.log_likelihood > not_knowing.log_likelihood


@pytest.mark.parametrize("theta", [0.0, 100.0])
def test_a_pareto_without_floor_comes_back(theta: float) -> None:
    u = np.random.default_rng(7).random(50_000)
    sizes, counts = counted(np.ceil(theta + 40.0 * ((1 - u) ** -0.3 - 1) / 0.3))
    fit = fit_pareto(sizes, counts, theta=theta)
    assert (fit.k, fit.sigma) == (pytest.approx(0.3, abs=0.02), pytest.approx(40, rel=0.03))
    assert fit.probabilities(np.arange(theta + 1, 1e5)).sum() == pytest.approx(1, abs=1e-3)


@given(st.floats(-0.2, 1.5), st.floats(1, 500), st.booleans(), st.booleans())
@settings(max_examples=15)
def test_probabilities_of_sizes_add_up_to_one(
    k: float, sigma: float, floored: bool, wrapped: bool
) -> None:
    model = Pareto(0.0, k, sigma, 10 if floored else None, 1024 if wrapped else None, 0.0)
    support = np.arange(0, 1025 if wrapped else 100_000)
    lost = 0.0 if wrapped else 1 - float(model.cdf([support[-1]])[0])
    assert model.probabilities(support).sum() + lost == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(
    "arguments", [([5], [3]), ([1, 2], [3]), ([0, 1], [1, 1]), ([1, 2], [0, 1])]
)
def test_sizes_that_say_nothing_are_refused(arguments: tuple[list[int], list[int]]) -> None:
    with pytest.raises(ValueError, match=r"sizes|shapes|theta"):
        fit_pareto(*arguments)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("period", [20.0, 85.5, 230.0])
def test_a_sine_comes_back_within_5_percent(period: float, seed: int) -> None:
    times = np.arange(0.5, 200)
    true = 5000 + 1000 * np.sin(2 * np.pi * (times + 7) / period)
    fit = fit_sine(times, true + np.random.default_rng(seed).normal(0, 200, len(times)))
    assert fit.period_s == pytest.approx(period, rel=0.05)
    assert fit.amplitude == pytest.approx(1000, rel=0.15)
    assert fit.explained > 0.8
    assert np.abs(fit.at(times) - true).max() < 250


def test_noise_is_not_explained_by_a_sine() -> None:
    rates = np.random.default_rng(3).normal(1000, 50, 300)
    assert fit_sine(np.arange(300.0), rates).explained < 0.2


def test_times_that_do_not_increase_are_refused() -> None:
    with pytest.raises(ValueError, match="increase"):
        fit_sine([0.0] * 10, [1.0] * 10)


@pytest.mark.parametrize("seed", SEEDS)
def test_db_benchs_ranges_come_back_through_its_rounding(seed: int) -> None:
    rng = np.random.default_rng(seed)
    keys = range_keys(rng, 1_000_000, 1_000_000, ZIPPYDB_KEYS, ZIPPYDB_RANGES, 30)
    counts = np.bincount(np.minimum(keys // 33_333, 29), minlength=30)
    stepped = fit_two_term_exponential(counts, np.random.default_rng(1), stepped=True)
    smooth = fit_two_term_exponential(counts, np.random.default_rng(1))
    found = (stepped.a, stepped.b, stepped.c, stepped.d)
    assert found == pytest.approx(ZIPPYDB_RANGES, rel=0.05)
    assert stepped.log_likelihood > smooth.log_likelihood
    assert abs(smooth.d / ZIPPYDB_RANGES[3] - 1) > 0.08  # rounding moved it
    assert total_variation(np.sort(counts)[::-1], stepped.shares()) < 0.005


@pytest.mark.parametrize("true", [(0.6, -0.9, 0.02, -0.05), (0.1, -0.4, 0.05, -0.1)])
def test_ranges_without_rounding_come_back(true: tuple[float, float, float, float]) -> None:
    a, b, c, d = true
    i = np.arange(1, 31)
    p = a * np.exp(b * i) + c * np.exp(d * i)
    counts = np.random.default_rng(2).multinomial(2_000_000, p / p.sum())
    fit = fit_two_term_exponential(
        np.random.default_rng(3).permutation(counts), np.random.default_rng(1)
    )
    assert (fit.b, fit.d) == pytest.approx((b, d), rel=0.1)
    assert (fit.a, fit.c) == pytest.approx((a / p.sum(), c / p.sum()), rel=0.15)


@pytest.mark.parametrize("counts", [[10**9, 10**3, 1, 0, 0, 0], [10**6, 3000, 100, 3, *[0] * 6]])
def test_where_one_range_draws_nearly_everything_both_terms_are_finite(counts: list[int]) -> None:
    """`a` was beyond all floats, in a traceback, or 1e157."""
    fit = fit_two_term_exponential(counts, np.random.default_rng(1))
    assert 0.0 < min(fit.a, fit.c) < max(fit.a, fit.c) < 1e30
    assert fit.shares() == pytest.approx(np.array(counts) / sum(counts), abs=1e-5)


@pytest.mark.parametrize(("true", "seed"), [(ZIPPYDB_KEYS, 0), (SOCIAL_KEYS, 1), ((0.01, 0.25), 2)])
def test_db_benchs_power_law_comes_back_within_10_percent(
    true: tuple[float, float], seed: int
) -> None:
    keys = power_keys(np.random.default_rng(seed), 500_000, 200_000, *true)
    fit = fit_power_law(*hottest(keys), len(keys), 200_000, grains=Grains.SHARED)
    assert (fit.a, fit.b) == pytest.approx(true, rel=0.1)


def test_db_benchs_power_law_within_ranges_comes_back_within_10_percent() -> None:
    num, ranges = 5_000_000, 30
    keys = range_keys(
        np.random.default_rng(1), 1_000_000, num, ZIPPYDB_KEYS, ZIPPYDB_RANGES, ranges
    )
    counts = np.bincount(np.minimum(keys // (num // ranges), ranges - 1), minlength=ranges)
    fit = fit_power_law(*hottest(keys), len(keys), num, counts, grains=Grains.SHARED)
    assert (fit.a, fit.b) == pytest.approx(ZIPPYDB_KEYS, rel=0.1)


def folded_keys(seed: int, draws: int, num: int, a: float, b: float) -> np.ndarray:
    """As the driver draws keys: by a power law of ranks, each of which goes to a key by a hash."""
    rank = np.ceil((np.random.default_rng(seed).random(draws) / a) ** (1 / b))
    return (scattered(rank) % np.uint64(num)).astype(np.int64)


# Many more ranks than keys, about as many, and fewer.
LAWS = [ZIPPYDB_KEYS, SOCIAL_KEYS, (0.01, 0.43), (0.004, 0.6)]


@pytest.mark.parametrize(("true", "seed"), [(law, seed) for seed, law in enumerate(LAWS)])
def test_the_drivers_power_law_comes_back(true: tuple[float, float], seed: int) -> None:
    keys = folded_keys(seed, 400_000, 50_000, *true)
    fit = fit_power_law(*hottest(keys), len(keys), 50_000)
    assert (fit.a, fit.b) == pytest.approx(true, rel=0.1)


@pytest.mark.parametrize("true", [*LAWS, (1e-5, 1.0), (0.3, 0.5)])
def test_the_groups_of_a_folded_law_are_those_of_a_simulation(true: tuple[float, float]) -> None:
    keys = folded_keys(3, 400_000, 50_000, *true)
    at, drawn = hottest(keys)
    curve = SortedCurve(len(keys), drawn[0] / at[0] * len(keys))
    assert np.abs(curve.cumulative(*power_groups(*true, 50_000), at) - drawn).max() < 0.015


def test_the_groups_of_grains_are_those_of_a_simulation() -> None:
    keys = power_keys(np.random.default_rng(1), 400_000, 50_000, *ZIPPYDB_KEYS)
    at, drawn = hottest(keys)
    curve = SortedCurve(len(keys), drawn[0] / at[0] * len(keys))
    of = {g: power_groups(*ZIPPYDB_KEYS, 50_000, grains=g) for g in Grains}
    off = {g: np.abs(curve.cumulative(*groups, at) - drawn).max() for g, groups in of.items()}
    assert off[Grains.EACH] < 0.015
    # More than a third of the keys are never drawn.
    assert off[Grains.NONE] > 0.1


# A flat one is told worse: keys differ then by how many cold ranks chance gave them, too.
@pytest.mark.parametrize(("theta", "tolerance"), [(0.6, 0.04), (0.9, 0.015), (1.2, 0.01)])
def test_a_scattered_zipfian_comes_back(theta: float, tolerance: float) -> None:
    items, keys = 100_000, 20_000
    weights = np.arange(1, items + 1) ** -theta
    of_key = np.random.default_rng(4).integers(0, keys, items)
    drawn = np.random.default_rng(5).choice(items, 300_000, p=weights / weights.sum())
    found, _ = fit_zipf(*hottest(of_key[drawn]), 300_000, keys, items)
    assert found == pytest.approx(theta, rel=tolerance)


def test_the_sorted_curve_of_uniform_keys_is_that_of_a_simulation() -> None:
    keys = np.random.default_rng(1).integers(0, 10_000, 30_000)
    at, drawn = hottest(keys)
    curve = SortedCurve(30_000, drawn[0] * 30_000)
    assert np.abs(curve.cumulative(*uniform_groups(10_000), at) - drawn).max() < 0.01


@given(st.floats(0.001, 0.5), st.floats(0.05, 1.0), st.integers(20, 10_000), st.integers(1, 20))
@settings(max_examples=50)
def test_groups_add_up(a: float, b: float, keys: int, ranges: int) -> None:
    for grains in Grains:
        width, each = power_groups(a, b, keys, [1.0] * ranges, grains=grains)
        assert (width * each).sum() == pytest.approx(1)
        assert width.sum() <= keys + 1e-6
    width, each = zipf_groups(0.99, 1e10, keys)
    assert ((width * each).sum(), width.sum()) == (pytest.approx(1), pytest.approx(keys))


def test_curves_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="increase"):
        fit_power_law([1, 1, 2], [0.1, 0.2, 0.3], 100, 10)
    with pytest.raises(ValueError, match="ranks of"):
        fit_power_law([1, 2, 20], [0.1, 0.2, 0.3], 100, 10)
    with pytest.raises(ValueError, match="four ranges"):
        fit_two_term_exponential([1, 2, 3], np.random.default_rng(1))


def _lru_hits(keys: list[int], room: int) -> float:
    held: OrderedDict[int, None] = OrderedDict()
    hits = 0
    for key in keys:
        if key in held:
            hits += 1
            held.move_to_end(key)
        else:
            held[key] = None
            if len(held) > room:
                held.popitem(last=False)
    return hits / len(keys)


def test_hit_ratios_are_those_of_a_simulated_cache() -> None:
    width, each = power_groups(0.01, 0.4, 5000)
    weights = np.repeat(each, width.astype(int))
    drawn = np.random.default_rng(1).choice(len(weights), 60_000, p=weights / weights.sum())
    rooms = [10, 100, 1000, 4000, 5000]
    expected = [_lru_hits(drawn.tolist(), room) for room in rooms]
    assert hit_ratios(width, each, rooms, 60_000) == pytest.approx(expected, abs=0.01)


def test_hit_ratios_refuse_what_is_no_distribution() -> None:
    with pytest.raises(ValueError, match="add up"):
        hit_ratios(np.array([2.0]), np.array([0.4]), [1], 10)
    with pytest.raises(ValueError, match="at least one"):
        hit_ratios(np.array([2.0]), np.array([0.5]), [0], 10)


@pytest.mark.parametrize("by_key", [0.0, 0.4, 1.0])
def test_reads_of_written_keys_are_those_of_a_simulation(by_key: float) -> None:
    rng, draws, num, writes = np.random.default_rng(1), 100_000, 20_000, 0.2
    keys = folded_keys(2, draws, num, *ZIPPYDB_KEYS)
    of_key = rng.random(num) < writes
    written = np.where(rng.random(draws) < by_key, of_key[keys], rng.random(draws) < writes)
    first = np.full(num, draws)
    np.minimum.at(first, keys[written], np.flatnonzero(written))
    met = float((first[keys] < np.arange(draws))[~written].mean())
    groups = power_groups(*ZIPPYDB_KEYS, num)
    assert reads_of_written(*groups, writes, by_key, draws) == pytest.approx(met, abs=0.01)
    assert fit_by_key(*groups, writes, draws, met) == pytest.approx(by_key, abs=0.03)


def test_shares_of_writes_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="writes 1"):
        reads_of_written(np.array([1.0]), np.array([1.0]), 1.0, 0.0, 10)


def test_distances_of_known_distributions() -> None:
    assert total_variation([1, 1], [1, 3]) == pytest.approx(0.25)
    assert ks_distance([1, 2], [1, 1], [2, 3], [1, 1]) == pytest.approx(0.5)
    assert ks_distance([3, 1], [1, 2], [1, 3], [4, 2]) == 0.0
    assert quantiles([10, 1], [1, 9], [0.5, 0.9, 0.95, 1.0]).tolist() == [1, 1, 10, 10]
    assert relative_error(11, 10) == pytest.approx(0.1)
    assert (relative_error(0, 0), relative_error(1, 0)) == (0.0, float("inf"))
    assert explained_share([1, 2, 3], [1, 2, 3]) == 1.0
    assert explained_share([1, 1], [1, 2]) == 0.0


@pytest.mark.parametrize("weights", [[], [0, 0], [-1, 2], [float("nan")], [[1.0]]])
def test_weights_that_are_none_are_refused(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="weights"):
        shares(weights)
