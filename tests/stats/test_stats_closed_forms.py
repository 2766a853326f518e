"""Models of sizes, rates and keys where the answer is known in closed form."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from lsmtune.stats.fitting import (
    Pareto,
    ecdf,
    explained_share,
    fit_pareto,
    fit_sine,
    ks_distance,
    minimised,
    quantiles,
    relative_error,
    total_variation,
)
from lsmtune.stats.key_hotness import (
    Grains,
    SortedCurve,
    fit_power_law,
    fit_zipf,
    hit_ratios,
    power_groups,
    power_shares,
    uniform_groups,
    zipf_groups,
)
from lsmtune.stats.range_hotness import (
    TwoTermExponential,
    fit_by_key,
    fit_two_term_exponential,
    reads_of_written,
)

# --- distributions of counted values


def test_the_distribution_function_steps_at_its_values() -> None:
    found = ecdf([3, 1, 2], [1, 1, 2], [0.5, 1.0, 2.0, 2.5, 3.0, 9.0])
    assert found.tolist() == [0.0, 0.25, 0.75, 0.75, 1.0, 1.0]
    assert quantiles([3, 1, 2], [1, 1, 2], [0.0, 0.25, 0.26, 0.75, 0.76, 1.0]).tolist() == [
        *(1, 1, 2, 2, 3, 3),
    ]
    # Rounding of a sum of tenths must not make a quantile of it the next value.
    assert quantiles(range(10), [0.1] * 10, [0.3, 0.6, 0.8]).tolist() == [2, 5, 7]
    assert ks_distance([1, 2, 3], [1, 1, 2], [1, 2, 3], [2, 1, 1]) == pytest.approx(0.25)


def test_shares_of_variance_and_errors_by_hand() -> None:
    # Squares about the mean 2.5: 5 in all; the model leaves 1 of them.
    assert explained_share([1, 2, 3, 4], [1, 2, 3, 5]) == pytest.approx(0.8)
    assert explained_share([1, 2, 3, 4], [2.5] * 4) == 0.0
    assert explained_share([1, 2, 3], [3, 2, 1]) == pytest.approx(-3.0)
    assert relative_error(9.0, -10.0) == pytest.approx(1.9)
    assert total_variation([2, 0, 0], [0, 1, 1]) == 1.0
    with pytest.raises(ValueError, match="rows of 2 and 3 outcomes"):
        total_variation([1, 1], [1, 1, 1])


def test_the_best_of_all_starts_is_taken() -> None:
    def loss(point: NDArray[np.float64]) -> float:
        """Two valleys: at -2 it is 1 deep, at 3 it is 4 deep."""
        x = float(point[0])
        return min((x + 2.0) ** 2 - 1.0, (x - 3.0) ** 2 - 4.0)

    for starts in ([(-1.5,), (2.5,)], [(2.5,), (-1.5,)]):
        point, least = minimised(loss, starts, tolerance=(1e-6, 1e-9), most=500)
        assert (point[0], least) == (pytest.approx(3.0, abs=1e-4), pytest.approx(-4.0))
    # Few turns end before the valley's ground.
    assert minimised(loss, [(2.5,)], tolerance=(1e-6, 1e-9), most=2)[1] > -3.9999
    assert minimised(loss, [(2.5,)], tolerance=(1e-6, 1e-9), most=500, calls=4)[1] > -3.9999


# --- sizes


@pytest.mark.parametrize("k", [0.0, 0.3, 1.0, -0.2])
@pytest.mark.parametrize("theta", [0.0, 7.5])
def test_a_pareto_is_scipys_of_the_interval_that_a_size_stands_for(k: float, theta: float) -> None:
    model = Pareto(theta, k, 40.0, None, None, 0.0)
    of_scipy = stats.genpareto(k, loc=theta, scale=40.0)
    sizes = np.array([1, 2, 8, 9, 50, 199, 200, 300])
    assert model.cdf(sizes) == pytest.approx(of_scipy.cdf(sizes), abs=1e-12)
    between = of_scipy.cdf(sizes) - of_scipy.cdf(sizes - 1)
    assert model.probabilities(sizes) == pytest.approx(between, abs=1e-12)


def test_sizes_below_the_floor_are_counted_as_the_floor() -> None:
    model = Pareto(0.0, 0.0, 20.0, 10, None, 0.0)
    found = model.probabilities([1, 9, 10, 11])
    eleven = math.exp(-10 / 20) - math.exp(-11 / 20)
    assert found == pytest.approx([0.0, 0.0, 1.0 - math.exp(-10 / 20), eleven])


@pytest.mark.parametrize("k", [0.0, 0.9])
def test_sizes_above_the_wrap_are_counted_as_their_remainder(k: float) -> None:
    """Every size up to where nothing is left, brought below the wrap one by one."""
    model, wrap = Pareto(0.0, k, 30.0, None, 64, 0.0), 64
    sizes = np.arange(1, 400_000 if k else 40_000)
    plain = Pareto(0.0, k, 30.0, None, None, 0.0).probabilities(sizes)
    expected = np.bincount(np.where(sizes > wrap, sizes % wrap, sizes), plain, wrap + 1)
    assert model.probabilities(np.arange(wrap + 1)) == pytest.approx(expected, rel=0.02, abs=1e-5)


def test_what_is_fitted_is_as_likely_as_it_says() -> None:
    sizes, counts = np.array([5, 12, 30, 64, 90]), np.array([9.0, 6.0, 3.0, 2.0, 1.0])
    for floor, wrap in ((None, None), (5, None), (None, 100), (5, 100)):
        fit = fit_pareto(sizes, counts, floor=floor, wrap=wrap)
        assert (fit.floor, fit.wrap, fit.theta) == (floor, wrap, 0.0)
        said = float(counts @ np.log(fit.probabilities(sizes)))
        assert fit.log_likelihood == pytest.approx(said)
        for k, sigma in ((fit.k + 0.05, fit.sigma), (fit.k, fit.sigma * 1.05)):
            other = Pareto(0.0, k, sigma, floor, wrap, 0.0)
            assert float(counts @ np.log(other.probabilities(sizes))) < said
    # Sizes that never came up change nothing.
    more = fit_pareto([*sizes, 1000], [*counts, 0.0])
    assert more.sigma == pytest.approx(fit_pareto(sizes, counts).sigma)


def test_sizes_that_are_nearly_all_the_same_are_fitted_without_a_warning() -> None:
    """Sigma fell to 0, and numpy said on the terminal that it divides by it."""
    fit = fit_pareto([1, 10**6], [10**6, 1])
    assert fit.sigma > 0.0
    assert fit.probabilities([1])[0] == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize(
    ("sizes", "counts", "theta", "says"),
    [
        ([1, 2], [3], 0.0, r"shapes \(2,\) and \(1,\): allowed: two rows alike"),
        ([[1, 2]], [[3, 3]], 0.0, "allowed: two rows alike"),
        ([5, 5], [1, 2], 0.0, "fewer than two different sizes: nothing to fit"),
        ([4, 9], [1, 2], 4.0, "a size of 4 is not above theta, 4"),
    ],
)
def test_what_cannot_be_fitted_is_told(
    sizes: list[int], counts: list[int], theta: float, says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        fit_pareto(sizes, counts, theta=theta)


# --- rates


@pytest.mark.parametrize("period", [800.0, 160.0, 37.3, 4.5])
def test_a_sine_without_noise_comes_back_as_it_was(period: float) -> None:
    """From a quarter of a period in all to more than four samples of each."""
    times = 50.0 + np.arange(200.0)
    true = 700.0 + 90.0 * np.sin(2 * np.pi * (times + 11.0) / period)
    fit = fit_sine(times, true)
    assert fit.period_s == pytest.approx(period, rel=2e-3)
    assert (fit.amplitude, fit.mean) == (pytest.approx(90, rel=0.02), pytest.approx(700, rel=0.01))
    assert 0.0 <= fit.offset_s < fit.period_s
    assert fit.explained > 0.9999
    assert fit.at(times) == pytest.approx(true, abs=1.0)


def test_a_sine_takes_eight_samples() -> None:
    times = np.arange(8.0)
    assert fit_sine(times, np.sin(2 * np.pi * times / 8.0)).explained > 0.99
    with pytest.raises(ValueError, match="two rows alike of at least 8 numbers"):
        fit_sine(times[:7], times[:7])
    with pytest.raises(ValueError, match="two rows alike"):
        fit_sine(times, np.arange(9.0))
    with pytest.raises(ValueError, match="two rows alike"):
        fit_sine([times] * 9, [times] * 9)
    with pytest.raises(ValueError, match="times must increase"):
        fit_sine([0.0, 1.0, 1.0, *range(2, 8)], range(9))


# --- keys and caches


def test_a_cache_of_keys_that_are_alike() -> None:
    """Of m keys C fit. An idle key stays T = -m ln(1 - C / m) of N accesses, and begins absent."""
    m, room, accesses = 1000, 400.0, 50_000.0
    stay = -m * math.log(1.0 - room / m)
    expected = (stay - room + (accesses - stay) * room / m) / accesses
    # One that holds all misses each key once, those that come up at all.
    seen = m * -math.expm1(-accesses / m)
    # Keys that nobody asks for are in no cache.
    keys, each = np.array([float(m), 70.0]), np.array([1.0 / m, 0.0])
    found = hit_ratios(keys, each, [room, 1000.0], accesses)
    assert found == pytest.approx([expected, 1.0 - seen / accesses], rel=1e-6)
    assert hit_ratios(keys, each, [], accesses).size == 0


@pytest.mark.parametrize(
    ("share", "room", "accesses", "says"),
    [
        (1.0012, 1.0, 1.0, "add up to 1.0012"),
        (0.9988, 1.0, 1.0, "add up to 0.9988"),
        (1.0008, 0.9, 1.0, "allowed: at least one access, and room for at least one key"),
        (1.0, 1.0, 0.9, "at least one access"),
    ],
)
def test_a_cache_that_cannot_be(share: float, room: float, accesses: float, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        hit_ratios(np.array([1.0]), np.array([share]), [room, 2.0], accesses)
    assert hit_ratios(np.array([1.0]), np.array([1.0]), [1.0], 1.0).size == 1


def test_the_power_law_by_hand() -> None:
    assert power_shares([-1, 0, 1, 4, 100, 101], 0.1, 0.5).tolist() == pytest.approx(
        [0.0, 0.0, 0.1, 0.2, 1.0, 1.0]
    )


def test_uniform_keys_by_hand() -> None:
    width, each = uniform_groups(10, [3, 1])
    assert (width.tolist(), each.tolist()) == ([5.0, 5.0], pytest.approx([0.15, 0.05]))
    assert uniform_groups(1, [1, 1, 2])[0].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(("theta", "items"), [(0.5, 500), (0.99, 1_000_000), (1.4, 100_000)])
def test_the_hottest_key_of_a_zipfian(theta: float, items: int) -> None:
    """It draws 1 / H of rank one, H the sum of k^-theta, and its part of all other ranks."""
    keys, first = 500, 1.0 / float((np.arange(1, items + 1) ** -theta).sum())
    width, each = zipf_groups(theta, items, keys)
    # By chance exp(-1 / 500) of rank two fell on another key than rank one, and so on.
    assert width[:2] == pytest.approx([1.0, 1.0], abs=0.004)
    second = first * 2.0**-theta
    assert each[0] == pytest.approx(first + (1.0 - first) / keys, rel=0.01)
    assert each[1] == pytest.approx(second + (1.0 - first - second) / keys, rel=0.01)
    assert (np.diff(each) < 0).all()
    # A key has no rank at all by chance exp(-items / keys).
    assert width.sum() == pytest.approx(keys * -math.expm1(-items / keys))
    assert (width * each).sum() == pytest.approx(1.0)


def test_no_zipfian() -> None:
    for theta, items in ((0.0, 10), (1.0, 10), (0.5, 9)):
        with pytest.raises(ValueError, match=f"theta {theta:g}, {items} items of 10 keys"):
            zipf_groups(theta, items, 10)
    assert zipf_groups(0.5, 10, 10)[0].sum() == pytest.approx(10 * -math.expm1(-1.0))


@pytest.mark.parametrize("grains", Grains)
def test_ranges_draw_what_they_are_said_to_draw(grains: Grains) -> None:
    alone, of_alone = power_groups(0.01, 0.4, 300, grains=grains)
    width, each = power_groups(0.01, 0.4, 600, [3, 0, 1], grains=grains)
    assert (width * each).sum() == pytest.approx(1.0)
    # Groups of the two ranges that are used, hotter one first; a third of the keys each.
    if grains is not Grains.SHARED:
        half = len(width) // 2
        assert (width[:half] * each[:half]).sum() == pytest.approx(0.75)
        assert width[:half] == pytest.approx(width[half:])
        assert width[:half].sum() <= 200 + 1e-6
    # One range is the law itself, and many that are alike are about as many times the same.
    many, of_many = power_groups(0.01, 0.4, 300 * 70, [1.0] * 70, grains=grains)
    if grains is not Grains.SHARED:
        assert many == pytest.approx(70 * alone)
        assert of_many == pytest.approx(of_alone / 70)
    assert (many * of_many).sum() == pytest.approx(1.0)


def test_random_numbers_of_which_a_rank_has_less_than_one_fall_by_chance() -> None:
    """The share of the first x of 1,000 ranks is (x / 1000)**0.5: up to rank 250 it is a number's.

    They have half of the 1,000 numbers. The other half fall on the 750 other keys by chance.
    """
    width, each = power_groups(1000**-0.5, 0.5, 1000, grains=Grains.EACH)
    assert width.sum() == pytest.approx(250 + 750 * -math.expm1(-0.5), rel=0.002)
    assert (width * each).sum() == pytest.approx(1.0)


def test_a_law_of_millions_of_keys_takes_no_memory_by_their_number() -> None:
    """Each rank was counted by itself: gigabytes for the 50,000,000 records that mixgraph has."""
    power_groups(0.01, 0.7, 100, grains=Grains.SHARED)  # loads what it needs
    tracemalloc.start()
    try:
        width, each = power_groups(0.01, 0.7, 5_000_000, grains=Grains.SHARED)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 10 * 2**20
    assert (width * each).sum() == pytest.approx(1.0)


def test_the_curve_of_one_key_and_of_all() -> None:
    curve = SortedCurve(1000, 1000.0)
    one = curve.cumulative(np.array([1.0]), np.array([1.0]), [0, 1])
    assert one == pytest.approx([0.0, 1.0], abs=1e-6)
    # Two keys that draw 0.9 and 0.1 of many accesses come in that order.
    two = SortedCurve(100_000, 90_000.0).cumulative(
        np.array([1.0, 1.0]), np.array([0.1, 0.9]), [1, 2]
    )
    assert two == pytest.approx([0.9, 1.0], abs=0.01)


def test_the_curve_of_keys_that_are_seldom_drawn() -> None:
    """Counts are Poisson's of mean 1: the hottest keys are those with more than 2, 1 and 0."""
    curve = SortedCurve(10_000, 8.0)
    keys, each = np.array([10_000.0]), np.array([1e-4])
    above = [stats.poisson.sf(least - 1, 1.0) for least in (1, 2, 3)]
    drawn = [stats.poisson.sf(least - 2, 1.0) for least in (1, 2, 3)]  # E[n; n >= c] of mean 1
    found = curve.cumulative(keys, each, 10_000 * np.array(above))
    assert found == pytest.approx(drawn, abs=0.003)


@pytest.mark.parametrize(
    ("ranks", "drawn", "says"),
    [
        ([1, 2], [0.1, 0.2], "two rows alike of at least 3 numbers"),
        ([1, 2, 3], [0.1, 0.2], "two rows alike"),
        ([[1, 2, 3]] * 3, [[0.1, 0.2, 0.3]] * 3, "two rows alike"),
        ([0, 2, 3], [0.1, 0.2, 0.3], "^ranks and the shares of the hottest so many must increase$"),
        ([1, 3, 3], [0.1, 0.2, 0.3], "must increase"),
        ([1, 2, 3], [0.0, 0.2, 0.3], "must increase"),
        ([1, 2, 3], [0.1, 0.3, 0.2], "must increase"),
        ([1, 2, 11], [0.1, 0.2, 0.3], "11 ranks of 10 keys"),
    ],
)
def test_no_curve(ranks: list[float], drawn: list[float], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        fit_power_law(ranks, drawn, 100, 10)
    with pytest.raises(ValueError, match=says):
        fit_zipf(ranks, drawn, 100, 10, 10)


def test_a_fit_is_as_likely_as_it_says() -> None:
    """The multinomial likelihood of the shares between ranks, worked out anew."""
    ranks, total, keys = [1, 10, 100, 1000], 20_000, 1000
    drawn = np.array([0.02, 0.08, 0.3, 1.0])
    observed = np.diff([0.0, *drawn, 1.0]) * total

    def likelihood(width: NDArray[np.float64], each: NDArray[np.float64]) -> float:
        curve = SortedCurve(total, drawn[0] * total).cumulative(width, each, ranks)
        expected = np.maximum(np.diff([0.0, *curve, 1.0]), 1e-300)
        return float(observed @ np.log(expected))

    fit = fit_power_law(ranks, drawn, total, keys)
    assert fit.log_likelihood == pytest.approx(likelihood(*power_groups(fit.a, fit.b, keys)))
    for a, b in ((fit.a * 1.1, fit.b), (fit.a, fit.b * 0.9)):
        assert likelihood(*power_groups(a, b, keys)) < fit.log_likelihood
    theta, likely = fit_zipf(ranks, drawn, total, keys, 5000)
    assert likely == pytest.approx(likelihood(*zipf_groups(theta, 5000, keys)))


# --- ranges, and reads of what was written


def test_shares_of_ranges_by_hand() -> None:
    i = np.arange(1, 6)
    plain = 0.6 * np.exp(-0.9 * i) + 0.02 * np.exp(-0.05 * i)
    model = TwoTermExponential(0.6, -0.9, 0.02, -0.05, 5, False, 0.0)
    assert model.shares() == pytest.approx(plain / plain.sum())
    # db_bench's are whole multiples of the smallest, which is rounded down to one over a number.
    stepped = TwoTermExponential(0.6, -0.9, 0.02, -0.05, 5, True, 0.0).shares()
    share = plain / plain.sum()
    parts = np.floor((math.floor(1.0 / share.min()) + 1.0) * share)
    assert stepped == pytest.approx(parts / parts.sum())
    assert stepped.sum() == pytest.approx(1.0)


def test_ranges_too_cold_for_db_bench_are_never_asked_for() -> None:
    stepped = TwoTermExponential(1.0, -20.0, 1e-30, -1.0, 3, True, 0.0).shares()
    assert stepped.tolist() == pytest.approx([1.0, math.exp(-20.0), 0.0], rel=1e-6)


def test_counts_without_noise_give_the_ranges_back() -> None:
    i = np.arange(1, 31)
    p = 0.6 * np.exp(-0.9 * i) + 0.02 * np.exp(-0.05 * i)
    counts = 1e6 * p / p.sum()
    fit = fit_two_term_exponential(counts[::-1], np.random.default_rng(1))
    assert (fit.b, fit.d) == pytest.approx((-0.9, -0.05), rel=1e-3)
    assert (fit.a, fit.c) == pytest.approx((0.6 / p.sum(), 0.02 / p.sum()), rel=1e-3)
    assert fit.shares() == pytest.approx(p / p.sum(), rel=1e-3)
    assert fit.log_likelihood == pytest.approx(float(counts @ np.log(p / p.sum())))
    assert (fit.ranges, fit.stepped) == (30, False)


@pytest.mark.parametrize("counts", [[1, 2, 3], [0] * 4, [3, 2, 1, -1], [[1, 2, 3, 4]]])
def test_counts_that_say_nothing_of_ranges(counts: list[int]) -> None:
    with pytest.raises(ValueError, match="one row of at least four ranges, some of them used"):
        fit_two_term_exponential(counts, np.random.default_rng(1))
    assert fit_two_term_exponential([4, 2, 1, 0], np.random.default_rng(1)).ranges == 4


def met(writes_of_a_key: float) -> float:
    """The mean over time of the chance that one of Poisson's writes has been."""
    return 1.0 - -math.expm1(-writes_of_a_key) / writes_of_a_key


@pytest.mark.parametrize("by_key", [0.0, 0.5, 1.0])
def test_reads_of_written_keys_that_are_alike(by_key: float) -> None:
    writes, accesses, m = 0.2, 5000.0, 1000.0
    alone = (1.0 - by_key) * writes
    expected = 0.0
    for part, written in ((writes, by_key + alone), (1.0 - writes, alone)):
        if written > 0.0:
            reads = part * (1.0 - written)
            expected += reads * met(written * accesses / m) / (1.0 - writes)
    # The same keys in two groups, and one that is never drawn.
    keys, each = np.array([m * 0.4, m * 0.6, 9.0]), np.array([1.0 / m, 1.0 / m, 0.0])
    found = reads_of_written(keys, each, writes, by_key, accesses)
    assert found == pytest.approx(expected)
    assert fit_by_key(keys, each, writes, accesses, found) == pytest.approx(by_key, abs=1e-5)
    # Beyond what any share of such draws gives, the nearest.
    assert fit_by_key(keys, each, writes, accesses, 1.0) == 0.0
    assert fit_by_key(keys, each, writes, accesses, -1.0) == 1.0


def test_few_writes_of_a_key_are_met_by_half_of_its_reads_in_the_mean() -> None:
    keys, each = np.array([1e9]), np.array([1e-9])
    assert reads_of_written(keys, each, 0.5, 0.0, 10.0) == pytest.approx(0.5e-8 / 2, rel=1e-6)
    for writes, by_key in ((0.0, 0.5), (1.0, 0.5), (0.5, -0.1), (0.5, 1.1)):
        with pytest.raises(ValueError, match=f"writes {writes:g}, by key {by_key:g}"):
            reads_of_written(keys, each, writes, by_key, 10.0)
