"""Intervals, noise, trends, tests and counts where the answer can be worked out anew."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from lsmtune.stats.changepoint import segments
from lsmtune.stats.intervals import holm_adjusted, mean_interval, paired_ratio
from lsmtune.stats.noise import detectable_effect, noise_of, pairs_needed, stationarity
from lsmtune.stats.pareto import RELATIVE_ERROR, DistinctCounter, front
from lsmtune.stats.ranks import adjusted_p_values, better_in_total, grubbs, outliers, proved_better
from lsmtune.stats.sequential import evidence_of_more

# --- intervals


def test_a_mean_of_three_by_hand() -> None:
    # Standard error 1 / sqrt 3; t(0.975, 2) = 4.30265.
    found = mean_interval([1.0, 2.0, 3.0])
    assert (found.runs, found.mean, found.median) == (3, 2.0, 2.0)
    assert (found.low, found.high) == pytest.approx((2.0 - 2.48414, 2.0 + 2.48414), abs=1e-4)


def test_a_ratio_that_is_one_in_every_pair_excludes_nothing() -> None:
    assert not paired_ratio([1.0, 2.0], [1.0, 2.0]).excludes_one()


@pytest.mark.parametrize(
    ("p_values", "says"),
    [
        ([[0.5]], r"p-values must be one-dimensional, found shape \(1, 1\)"),
        ([-0.01], "p-values must lie between 0 and 1"),
        ([1.01], "p-values must lie between 0 and 1"),
        ([math.nan], "p-values must lie between 0 and 1"),
    ],
)
def test_no_p_values(p_values: list[float], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        holm_adjusted(p_values)
    assert holm_adjusted([0.0, 1.0]).tolist() == [0.0, 1.0]


# --- noise


def test_the_robust_scale_of_an_odd_number_by_hand() -> None:
    # Of 0, 1, 3, 7, 15 the distances are 1, 2, 3, 4, 6 ...; h = 3, so that it is the third of them.
    found = noise_of([math.exp(x) for x in (3.0, 0.0, 15.0, 1.0, 7.0)])
    log_sd = 2.2191 * 5 / 6.9 * 3.0
    assert (found.runs, found.log_sd) == (5, pytest.approx(log_sd))
    # 0.72 * 5 - 1.9 degrees of freedom.
    for bound, tail in ((found.log_sd_low, 0.975), (found.log_sd_high, 0.025)):
        assert bound == pytest.approx(log_sd / math.sqrt(stats.chi2.ppf(tail, 1.7) / 1.7))
    even = noise_of([math.exp(x) for x in (3.0, 0.0, 5.0, 1.0, 4.0, 2.0)])
    freedom = 0.72 * 6 - 1.4
    low = even.log_sd / math.sqrt(stats.chi2.ppf(0.975, freedom) / freedom)
    assert even.log_sd_low == pytest.approx(low)


def test_the_autocorrelation_of_a_ramp_by_hand() -> None:
    # About the mean -2, -1, 0, 1, 2: neighbours' products add up to 4, squares to 10.
    assert noise_of([math.exp(x) for x in range(1, 6)]).autocorrelation == pytest.approx(0.4)
    assert noise_of([math.exp(x) for x in range(1, 5)]).autocorrelation is None
    # Values that differ by rounding alone say nothing of it.
    assert noise_of([1e6, 1e6 * (1 + 1e-15), 1e6, 1e6, 1e6 * (1 - 1e-15)]).autocorrelation is None


def won(size: float, pairs: int) -> float:
    """What a bet on "more" has won after `pairs` equal logs of `size`: the mean over slopes."""
    slopes = 2.0 ** np.arange(1, 11)
    return float(np.mean((1.0 + 0.95 * np.tanh(slopes * size)) ** pairs))


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
@pytest.mark.parametrize("effect", [0.005, 0.02, -0.02, 0.5])
def test_without_noise_the_pairs_needed_are_exact(effect: float, confidence: float) -> None:
    size, mark = abs(math.log1p(effect)), 2.0 / (1.0 - confidence)
    expected = next(n for n in range(1, 200) if won(size, n) > mark)
    assert pairs_needed(effect, 0.0, confidence) == expected
    assert pairs_needed(effect, 0.0, confidence, power=0.01) == expected


@pytest.mark.parametrize("pairs", [6, 9, 40])
def test_without_noise_the_detectable_effect_is_exact(pairs: int) -> None:
    size = optimize.brentq(lambda size: won(size, pairs) - 40.0, 1e-6, 1.0)
    assert detectable_effect(pairs, 0.0) == pytest.approx(math.expm1(size), rel=2e-3)


def test_beyond_what_is_simulated_it_goes_as_the_root_of_the_pairs() -> None:
    of_120, of_1080 = (math.log1p(detectable_effect(n, 0.1)) for n in (120, 1080))
    assert of_1080 == pytest.approx(of_120 / 3.0)
    assert pairs_needed(math.expm1(of_120 / 3.0), 0.1) == pytest.approx(1080, abs=1)
    # The draws of the simulation are the same each time.
    assert math.log1p(detectable_effect(120, 0.1)) == of_120
    with pytest.raises(ValueError, match=r"deviation must be finite and not negative, found -1\.0"):
        detectable_effect(9, -1.0)


# --- steadiness


def test_a_trend_by_hand() -> None:
    """Against a regression on the same line and cosines, by least squares."""
    random = np.random.default_rng(8)
    values = 500.0 + 4.0 * np.arange(16.0) + random.normal(0.0, 6.0, 16)
    time = (np.arange(16) + 0.5) / 16
    cosines = [np.cos(np.pi * number * time) for number in range(2, 8)]
    # What the line adds to a constant, and what the cosines add to both, each of one degree.
    line = time - time.mean()
    along = values @ line / math.sqrt(line @ line)
    design = np.column_stack([np.ones(16), line])
    apart = 0.0
    for cosine in cosines:
        new = cosine - design @ np.linalg.lstsq(design, cosine, rcond=None)[0]
        apart += float(values @ new) ** 2 / float(new @ new)
        design = np.column_stack([design, cosine])
    found = stationarity(values.tolist())
    slope = float(values @ line) / float(line @ line)
    assert found.trend_per_cent == pytest.approx(
        100.0 * slope * (time[-1] - time[0]) / values.mean()
    )
    t = abs(along) / math.sqrt(apart / 6)
    assert found.steady == (2.0 * stats.t.sf(t, 6) >= 0.01)
    assert not found.steady
    assert f"rose by {found.trend_per_cent:.2g} % of its mean over 16 intervals" in found.why
    # The same trend in 1 % noise of the mean's own, and one too small to matter.
    assert stationarity(values.tolist(), smallest_per_cent=found.trend_per_cent + 0.01).steady
    assert not stationarity(values.tolist(), smallest_per_cent=found.trend_per_cent - 0.01).steady


def test_a_steady_run_says_why() -> None:
    assert stationarity([7.0] * 9).why == "all 9 intervals are the same"
    assert stationarity([1.0, 2.0] * 5).why == "no trend stands out in 10 intervals"
    assert stationarity([0.0] * 8).trend_per_cent == 0.0


# --- fronts and counts


def test_a_front_of_what_is_infinite() -> None:
    assert front([(math.inf, 1.0), (2.0, 1.0), (-math.inf, 0.0)], [True, False]) == [0, 2]


@pytest.mark.parametrize("seed", range(2))
def test_distinct_things_are_counted_however_often_they_come(seed: int) -> None:
    counter = DistinctCounter()
    assert counter.count() == 0
    for number in range(60_000):
        counter.add(b"%d/%d" % (seed, number))
        if number + 1 in (1, 10, 5_000, 30_000, 60_000):
            counter.add(b"%d/%d" % (seed, number // 2))
            # Four standard errors; a few are counted exactly.
            assert counter.count() == pytest.approx(number + 1, rel=4 * RELATIVE_ERROR)
            assert number > 10 or counter.count() == number + 1


def test_many_distinct_things_by_the_formula_of_hyperloglog() -> None:
    """2^14 registers that all saw a rank of 9: alpha m^2 / (m 2^-9)."""
    counter, registers = DistinctCounter(), 2**14
    counter._registers[:] = bytes([9]) * registers
    assert counter.count() == round(0.7213 / (1 + 1.079 / registers) * registers * 2**9)


def test_two_counters_that_saw_the_same_say_the_same() -> None:
    one, other = DistinctCounter(), DistinctCounter()
    for number in range(500):
        one.add(b"%d" % number)
        other.add(b"%d" % (499 - number))
    assert one.count() == other.count()


# --- ranks and outliers


def test_all_pairs_of_all_tables_are_corrected_together() -> None:
    """Holm's procedure over 2 + 6 tests, not over each table's own."""
    random = np.random.default_rng(9)
    tables = [random.lognormal(0.0, 0.05, (5, 2)), random.lognormal(0.0, 0.05, (6, 3))]
    raw = []
    for table in tables:
        logs = np.log(table)
        items = range(table.shape[1])
        raw += [
            float(stats.ttest_rel(logs[:, i], logs[:, j], alternative="greater").pvalue)
            for i in items
            for j in items
            if i != j
        ]
    found = adjusted_p_values(tables)
    flat = [float(m[i, j]) for m in found for i in range(len(m)) for j in range(len(m)) if i != j]
    assert flat == pytest.approx(holm_adjusted(raw).tolist())
    assert adjusted_p_values([]) == []


def test_what_is_better_at_a_confidence_includes_its_edge() -> None:
    p_values = np.array([[1.0, 0.25], [1.0, 1.0]])
    assert proved_better(p_values, 0.75)[0, 1]
    assert not proved_better(p_values, 0.76)[0, 1]
    for confidence in (0.0, 1.0):
        with pytest.raises(ValueError, match=f"between 0 and 1, found {confidence}"):
            proved_better(p_values, confidence)
    assert not better_in_total([]).any()


@given(st.lists(st.floats(-100.0, 100.0), min_size=3, max_size=9))
def test_grubbs_by_his_formula(values: list[float]) -> None:
    found, row = grubbs(values), np.array(values)
    spread = float(row.std(ddof=1))
    distances = np.abs(row - row.mean())
    assert distances[found.index] == distances.max()
    if spread < 1e-6:
        return
    n, g = len(values), float(distances.max()) / spread
    assert found.deviations == pytest.approx(g)
    left = (n - 1) ** 2 - n * g * g
    if left > 1e-6:
        t = math.sqrt(n * (n - 2) * g * g / left)
        expected = min(1.0, 2 * n * float(stats.t.sf(t, n - 2)))
        assert found.p_value == pytest.approx(expected, rel=1e-6)


def test_the_surest_outlier_comes_first_and_few_values_have_none() -> None:
    quiet = [1.0, 1.01, 0.99, 1.005, 0.995, 1.002]
    samples = [[1.0, 50.0], [*quiet, 1.2], quiet, [*quiet, 3.0]]
    found = outliers(samples)
    assert [(each.sample, each.index) for each in found] == [(3, 6), (1, 6)]
    # Three samples were tested, the one of two values not.
    assert found[0].p_value == pytest.approx(3 * grubbs(samples[3]).p_value)
    assert found[1].p_value == pytest.approx(2 * grubbs(samples[1]).p_value)
    assert found[1].deviations == grubbs(samples[1]).deviations
    assert outliers(samples, alpha=found[0].p_value) == found[:1]
    for alpha in (0.0, 1.0):
        with pytest.raises(ValueError, match=f"alpha must lie between 0 and 1, found {alpha}"):
            outliers(samples, alpha)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([1.0, 2.0], r"needs at least 3 values, found shape \(2,\)"),
        ([[1.0, 2.0, 3.0]], "needs at least 3 values, found shape"),
        ([1.0, 2.0, math.inf], "values must be finite"),
    ],
)
def test_no_sample(values: list[float], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        grubbs(values)


# --- changes of level, evidence


def test_a_level_is_kept_where_its_step_is_the_known_scatter() -> None:
    values = [0.0] * 6 + [1.0] * 6
    assert segments(values, 1.0) == [range(6), range(6, 12)]
    assert segments(values, 1.001) == [range(12)]
    # Eight values may be cut, seven never; no level is shorter than three.
    assert segments([0.0] * 4 + [1.0] * 4, None) == [range(4), range(4, 8)]
    assert segments([0.0] * 3 + [1.0] * 4, None) == [range(7)]
    assert segments([0.0] * 10 + [1.0] * 3, None) == [range(10), range(10, 13)]
    assert segments([], None) == []


def test_of_small_steps_the_smallest_is_joined_first() -> None:
    values = [0.0] * 9 + [0.5] * 9 + [0.8] * 9 + [3.0] * 9
    assert [len(part) for part in segments(values, 0.4)] == [9, 18, 9]
    assert [len(part) for part in segments(values, 0.0)] == [9, 9, 9, 9]


def test_a_thousand_pairs_at_once_and_no_more() -> None:
    assert evidence_of_more(np.zeros((2, 1000)), 0.0).tolist() == [[1.0] * 1000] * 2
    with pytest.raises(ValueError, match="at most 1000 pairs, found 1001"):
        evidence_of_more(np.zeros((2, 1001)), 0.0)
