"""The noise figure, and what it promises of the sequential test, by simulation."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lsmtune.stats.noise import detectable_effect, noise_of, pairs_needed
from lsmtune.stats.sequential import sequential_ratio

SERIES = 2000
positive_series = st.lists(st.floats(1e-3, 1e6), min_size=2, max_size=20)


def test_few_values_by_hand() -> None:
    # Logs 0 and ln 4: their standard deviation is ln 4 / sqrt 2.
    found = noise_of([1.0, 4.0])
    assert found.runs == 2
    assert found.log_sd == pytest.approx(math.log(4.0) / math.sqrt(2.0))
    # The chi-squared distribution with one degree of freedom: 0.000982 and 5.0239.
    assert found.log_sd_low == pytest.approx(found.log_sd / math.sqrt(5.0239), rel=1e-4)
    assert found.log_sd_high == pytest.approx(found.log_sd / math.sqrt(0.000982), rel=1e-3)
    assert found.autocorrelation is None


def test_the_quartile_of_distances_by_hand() -> None:
    # h = 6 // 2 + 1 = 4: the 6th smallest of the 15 distances of 0, 1, 2, 3, 4, 5, which is 2.
    values = [math.exp(x) for x in (3.0, 0.0, 5.0, 1.0, 4.0, 2.0)]
    assert noise_of(values).log_sd == pytest.approx(2.2191 * 6 / 10.5 * 2.0)


@given(positive_series, st.floats(0.1, 10.0))
def test_a_unit_does_not_matter_and_the_interval_holds_the_figure(
    values: list[float], unit: float
) -> None:
    found, other = noise_of(values), noise_of([value * unit for value in values])
    assert found.log_sd_low <= found.log_sd <= found.log_sd_high
    assert other.log_sd == pytest.approx(found.log_sd, rel=1e-6, abs=1e-12)


@given(positive_series, st.integers(2, 5))
def test_the_logs_scale_the_figure(values: list[float], power: int) -> None:
    found, other = noise_of(values), noise_of([value**power for value in values])
    assert other.log_sd == pytest.approx(power * found.log_sd, rel=1e-6, abs=1e-9)


def test_values_that_are_the_same_have_no_noise() -> None:
    found = noise_of([3.0] * 8)
    assert (found.log_sd, found.log_sd_low, found.log_sd_high) == (0.0, 0.0, 0.0)
    assert found.autocorrelation is None


def test_noise_that_most_values_do_not_show_is_not_overlooked() -> None:
    assert noise_of([3.0] * 7 + [6.0]).log_sd > 0.1


@pytest.mark.parametrize("runs", [5, 8, 12, 30])
def test_one_outlier_changes_little(runs: int) -> None:
    random = np.random.default_rng(runs)
    logs = random.normal(0.0, 0.03, (SERIES // 4, runs))
    spoilt = logs.copy()
    spoilt[:, runs // 2] += math.log(1.6)
    clean, dirty = (
        float(np.median([noise_of(series).log_sd for series in np.exp(table)]))
        for table in (logs, spoilt)
    )
    usual = float(np.median(np.std(spoilt, axis=1, ddof=1)))
    assert dirty < clean * (1.0 + 4.0 / runs)
    assert usual > 2.0 * clean


@pytest.mark.parametrize("runs", [2, 4, 5, 6, 8, 12, 13, 30])
def test_the_interval_holds_the_deviation_as_often_as_it_says(runs: int) -> None:
    random = np.random.default_rng(100 + runs)
    found = [noise_of(series) for series in random.lognormal(2.0, 0.07, (SERIES, runs))]
    held = np.mean([each.log_sd_low <= 0.07 <= each.log_sd_high for each in found])
    assert 0.93 < held < 0.98
    assert np.sqrt(np.mean([each.log_sd**2 for each in found])) == pytest.approx(0.07, rel=0.06)


def autoregressive(rho: float, runs: int, random: np.random.Generator) -> NDArray[np.float64]:
    logs = np.zeros(runs)
    for index in range(1, runs):
        logs[index] = rho * logs[index - 1] + random.normal(0.0, 0.1)
    return np.exp(logs)


@pytest.mark.parametrize("rho", [-0.5, 0.0, 0.7])
def test_the_autocorrelation_of_neighbours(rho: float) -> None:
    random = np.random.default_rng(2)
    found = noise_of(autoregressive(rho, 2000, random))
    assert found.autocorrelation == pytest.approx(rho, abs=0.08)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([], "at least 2 values"),
        ([1.0], "at least 2 values"),
        ([[1.0, 2.0]], "at least 2 values, found shape"),
        ([1.0, 0.0], "finite and above zero, found 0.0"),
        ([1.0, math.nan], "finite and above zero, found nan"),
    ],
)
def test_refuses_what_is_no_series(values: list[float], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        noise_of(values)


def proved_within(
    pairs: int, ratio: float, draw: Callable[[int], NDArray[np.float64]], proofs: int = 250
) -> float:
    """The share of proofs that exclude 1 at one of the looks, by the public interval itself."""
    proved = 0
    for number in range(proofs):
        candidate = list(ratio * np.exp(draw(number)))
        looks = range(6, pairs + 1)
        # From the last look backwards: most are decided there.
        proved += any(
            sequential_ratio([1.0] * n, candidate[:n]).excludes_one() for n in reversed(looks)
        )
    return proved / proofs


@pytest.mark.parametrize(
    ("effect", "log_sd", "power"),
    [(0.05, 0.03, 0.8), (0.3, 0.15, 0.8), (0.1, 0.12, 0.5), (-0.1, 0.08, 0.9), (0.02, 0.01, 0.8)],
)
def test_the_pairs_needed_prove_the_effect_as_often_as_they_promise(
    effect: float, log_sd: float, power: float
) -> None:
    pairs = pairs_needed(effect, log_sd, power=power)
    seeds = np.random.SeedSequence(5).spawn(250)

    def draw(number: int) -> NDArray[np.float64]:
        return np.random.default_rng(seeds[number]).normal(0.0, log_sd, pairs)

    # Three standard errors of 250 proofs. Pairs are whole: few of them may promise more.
    error = 3.0 * math.sqrt(power * (1.0 - power) / 250)
    proved = proved_within(pairs, 1.0 + effect, draw)
    assert proved >= power - error
    assert proved <= power + error + (0.25 if pairs < 12 else 0.0)


def test_beyond_the_simulated_pairs_the_promise_holds_too() -> None:
    from lsmtune.stats.sequential import evidence_of_more

    effect, log_sd = 0.03, 0.12
    pairs = pairs_needed(effect, log_sd)
    assert 200 < pairs < 400
    logs = np.random.default_rng(6).normal(math.log1p(effect), log_sd, (1000, pairs))
    proved = (evidence_of_more(logs, 0.0) > 40.0).any(axis=1).mean()
    assert proved == pytest.approx(0.8, abs=0.06)


def test_with_heavy_tails_the_robust_figure_tells_what_is_needed() -> None:
    """t3: planned with the usual deviation, a proof would be given half as many pairs again."""
    random = np.random.default_rng(7)

    def draw(_: int) -> NDArray[np.float64]:
        return np.asarray(0.05 * random.standard_t(3, 40))

    log_sd = noise_of(np.exp([x for number in range(20) for x in draw(number)])).log_sd
    pairs = pairs_needed(0.08, log_sd)
    assert pairs < pairs_needed(0.08, 0.05 * math.sqrt(3.0)) / 1.5
    proved = proved_within(pairs, 1.08, lambda number: draw(number)[:pairs])
    assert proved > 0.6


@pytest.mark.parametrize("log_sd", [0.0, 0.01, 0.15])
@pytest.mark.parametrize("pairs", [6, 12, 500])
def test_the_two_are_inverse_to_each_other(log_sd: float, pairs: int) -> None:
    effect = detectable_effect(pairs, log_sd)
    assert pairs_needed(effect * 1.01, log_sd) <= pairs
    assert pairs_needed(effect * 0.98, log_sd) >= min(pairs, 7 if log_sd == 0.0 else pairs)


def test_more_noise_and_smaller_effects_need_more_pairs() -> None:
    for values in (
        [pairs_needed(effect, 0.1) for effect in (1.0, 0.3, 0.1, 0.05, 0.01)],
        [pairs_needed(0.1, log_sd) for log_sd in (0.0, 0.02, 0.05, 0.1, 0.3)],
        [pairs_needed(0.1, 0.1, power=power) for power in (0.2, 0.5, 0.8, 0.95)],
        [pairs_needed(0.1, 0.1, confidence) for confidence in (0.8, 0.95, 0.999)],
    ):
        assert values == sorted(values)
        assert values[0] < values[-1]
    assert detectable_effect(5, 0.1) == math.inf
    assert detectable_effect(30, 0.05) < detectable_effect(10, 0.05)


def test_an_answer_takes_no_second() -> None:
    started_s = time.process_time()  # of this process, whoever else has the processors
    pairs_needed(0.05, 0.15)
    detectable_effect(30, 0.15)
    assert time.process_time() - started_s < 3.0  # 0.2 s on an idle machine


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((0.0, 0.1), "not 0, found 0.0"),
        ((-1.0, 0.1), "above -1"),
        ((math.inf, 0.1), "above -1"),
        ((0.1, -0.1), "not negative, found -0.1"),
        ((0.1, math.nan), "finite"),
        ((0.1, 0.1, 1.0), "confidence must lie between 0 and 1, found 1.0"),
        ((0.1, 0.1, 0.95, 0.0), "power must lie between 0 and 1, found 0.0"),
    ],
)
def test_refuses_what_is_no_effect(arguments: tuple[float, ...], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        pairs_needed(*arguments)
