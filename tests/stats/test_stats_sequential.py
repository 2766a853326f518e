"""The confidence sequence: exact small cases, its symmetries, and its promises by simulation."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lsmtune.stats.intervals import RatioInterval
from lsmtune.stats.sequential import evidence_of_more, pairs_at_least, sequential_ratio

log_ratio = st.floats(min_value=-3.0, max_value=3.0)
log_ratios = st.lists(log_ratio, min_size=2, max_size=14)


def ratio_of(logs: list[float], confidence: float = 0.95) -> RatioInterval:
    return sequential_ratio([1.0] * len(logs), [math.exp(x) for x in logs], confidence)


def evidence(logs: list[float], theta: float = 0.0) -> float:
    """The evidence of both sides together against "the logs are symmetric about `theta`"."""
    values = np.array(logs)
    more, less = evidence_of_more(values, theta), evidence_of_more(-values, -theta)
    return float(more[-1] + less[-1]) / 2.0


def test_the_evidence_of_one_pair_by_hand() -> None:
    # (1 + c tanh s) / 2 + (1 - c tanh s) / 2 = 1 whatever the slope: one pair proves nothing.
    assert evidence([0.7]) == pytest.approx(1.0)


def test_the_evidence_of_two_pairs_by_hand() -> None:
    # The cross terms cancel: 1 + 0.95^2 tanh(s x) tanh(s y), averaged over s = 2, 4, 8 ... 1024.
    x, y = 0.02, -0.3
    won = [0.95**2 * math.tanh(2.0**k * x) * math.tanh(2.0**k * y) for k in range(1, 11)]
    assert evidence([x, y]) == pytest.approx(1.0 + sum(won) / 10)


@pytest.mark.parametrize("magnitudes", [(0.01, 0.2, 0.5), (1e-12, 0.05, 0.05, 3.0)])
def test_over_all_signs_the_evidence_has_mean_one(magnitudes: tuple[float, ...]) -> None:
    """What makes it an e-value: under symmetry all signs are equally likely."""
    signs = list(itertools.product((-1.0, 1.0), repeat=len(magnitudes)))
    found = [evidence([s * m for s, m in zip(row, magnitudes, strict=True)]) for row in signs]
    assert np.mean(found) == pytest.approx(1.0, rel=1e-12)
    assert min(found) > 0.0


def test_pairs_all_on_one_side_nearly_double_it_each() -> None:
    assert evidence([50.0] * 9) == pytest.approx((1.95**9 + 0.05**9) / 2.0)


def test_one_wild_pair_costs_no_more_than_five_good_ones_win() -> None:
    good = [0.3] * 12
    assert evidence([*good, -1e3]) >= evidence(good[:-5]) * 0.99


@pytest.mark.parametrize(
    ("confidence", "pairs"), [(0.5, 3), (0.75, 4), (0.9, 5), (0.95, 6), (0.99, 8), (0.999, 12)]
)
def test_the_least_number_of_pairs_is_exact(confidence: float, pairs: int) -> None:
    assert pairs_at_least(confidence) == pairs
    assert 1.95**pairs > 2.0 / (1.0 - confidence) >= 1.95 ** (pairs - 1)
    unbounded = ratio_of([0.3] * (pairs - 1), confidence)
    assert (unbounded.low, unbounded.high) == (0.0, math.inf)
    bounded = ratio_of([0.3] * pairs, confidence)
    assert 0.0 < bounded.low < math.exp(0.3) < bounded.high < math.inf


@given(log_ratios, st.floats(-1.0, 1.0), st.randoms(use_true_random=False))
def test_the_order_of_the_pairs_does_not_matter(
    logs: list[float], theta: float, random: Random
) -> None:
    shuffled = random.sample(logs, len(logs))
    assert evidence(shuffled, theta) == pytest.approx(evidence(logs, theta), rel=1e-9)
    one, other = ratio_of(logs), ratio_of(shuffled)
    assert (one.low, one.high) == pytest.approx((other.low, other.high), rel=1e-6)


@given(log_ratios)
def test_swapping_the_sides_inverts_the_interval(logs: list[float]) -> None:
    there, back = ratio_of(logs), ratio_of([-x for x in logs])
    assert evidence(logs) == pytest.approx(evidence([-x for x in logs]), rel=1e-9)
    assert there.ratio * back.ratio == pytest.approx(1.0)
    if len(logs) >= pairs_at_least(0.95):
        assert there.low * back.high == pytest.approx(1.0, rel=1e-6)


@given(log_ratios, st.floats(-5.0, 5.0))
def test_a_common_factor_moves_the_interval_along(logs: list[float], shift: float) -> None:
    plain, moved = ratio_of(logs), ratio_of([x + shift for x in logs])
    assert moved.ratio == pytest.approx(plain.ratio * math.exp(shift))
    if len(logs) >= pairs_at_least(0.95):
        assert moved.low == pytest.approx(plain.low * math.exp(shift), rel=1e-6)
        assert moved.high == pytest.approx(plain.high * math.exp(shift), rel=1e-6)


@given(log_ratios)
def test_the_bounds_hold_the_ratio_and_widen_with_the_confidence(logs: list[float]) -> None:
    narrow, wide = ratio_of(logs, 0.8), ratio_of(logs, 0.95)
    for found in (narrow, wide):
        assert found.low <= found.ratio <= found.high
    assert wide.low <= narrow.low * (1 + 1e-9)
    assert wide.high >= narrow.high * (1 - 1e-9)


@given(log_ratios, st.floats(-1.0, 1.0), st.floats(0.0, 1.0))
def test_evidence_of_more_falls_as_theta_rises(
    logs: list[float], theta: float, step: float
) -> None:
    lower, upper = (evidence_of_more(np.array(logs), t) for t in (theta, theta + step))
    assert (lower >= upper * (1 - 1e-9)).all()


@given(st.lists(log_ratio, min_size=6, max_size=14))
def test_the_interval_holds_what_the_evidence_has_not_refuted(logs: list[float]) -> None:
    found = ratio_of(logs)
    values = np.array(logs)
    for edge, outside in ((found.low, -1e-6), (found.high, 1e-6)):
        # Above half of 1 / alpha from one side is 1 / alpha of the mean of both.
        assert evidence(logs, math.log(edge) + outside) >= 19.99
    more = evidence_of_more(values, math.log(found.low))[-1]
    less = evidence_of_more(-values, -math.log(found.high))[-1]
    # A bound that was moved to hold the mean has more evidence against it, never less.
    assert more >= 39.99
    assert less >= 39.99


def test_many_series_at_once_are_each_as_alone() -> None:
    random = np.random.default_rng(5)
    many = random.normal(0.1, 0.3, (3, 9))
    together = evidence_of_more(many, 0.05)
    assert together.shape == many.shape
    for series, looks in zip(many, together, strict=True):
        for pairs in range(1, 10):
            alone = evidence_of_more(series[:pairs], 0.05)
            assert looks[pairs - 1] == pytest.approx(alone[-1])


@pytest.mark.parametrize("factor", [1e-12, 1e-6, 1.0, 1e6, 1e12])
def test_ratios_that_are_all_the_same(factor: float) -> None:
    widths = []
    for pairs in (6, 8, 12, 30, 1000):
        found = sequential_ratio([7.0] * pairs, [7.0 * factor] * pairs)
        assert found.ratio == pytest.approx(factor, rel=1e-9)
        assert found.low < factor < found.high
        widths.append(math.log(found.high / found.low))
    assert widths == sorted(widths, reverse=True)
    assert widths[0] < 0.2  # 6 pairs are only just enough
    assert widths[1] < 0.006


def test_differences_of_a_billionth_are_not_lost_among_rounding() -> None:
    # At this scale every slope is as good as linear: nothing can be proven, and nothing is.
    found = ratio_of([1e-12] * 30)
    assert found.ratio == pytest.approx(1.0 + 1e-12, rel=1e-14)
    assert found.low < 1.0 < found.high
    assert evidence([1e-12] * 30) == pytest.approx(1.0, abs=1e-6)


def test_values_at_the_ends_of_the_floats() -> None:
    found = sequential_ratio([1e-200, 1.0] * 8, [1e200, 1.0] * 8)
    assert found.low == pytest.approx(1.0, abs=0.1)
    assert (found.ratio, found.high) == (pytest.approx(1e200), math.inf)
    assert sequential_ratio([1e-300] * 8, [1e300] * 8).ratio == math.inf
    assert sequential_ratio([1e300] * 8, [1e-300] * 8).high == 0.0


def test_an_outlier_that_pulls_the_mean_just_below_the_bound_makes_it_the_bound() -> None:
    """The log evidence at the mean is half a unit above its mark of log 40."""
    found = sequential_ratio([1.0] * 13, [1.0] * 12 + [math.exp(-0.3)])
    assert found.low == found.ratio == pytest.approx(math.exp(-0.3 / 13))
    assert found.high >= 1.0


def test_a_wild_outlier_does_not_put_the_ratio_outside_of_its_interval() -> None:
    found = ratio_of([0.0] * 29 + [400.0])
    assert found.ratio == pytest.approx(math.exp(400.0 / 30))
    assert found.low <= 1.0 <= found.ratio <= found.high


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.1, math.nan])
def test_refuses_a_confidence_that_is_none(confidence: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        sequential_ratio([1.0] * 6, [1.0] * 6, confidence)
    with pytest.raises(ValueError, match="between 0 and 1"):
        pairs_at_least(confidence)


def test_refuses_what_is_not_a_series_of_ratios() -> None:
    with pytest.raises(ValueError, match="2 baseline values and 1 candidate"):
        sequential_ratio([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="finite and above zero"):
        sequential_ratio([1.0, 0.0], [1.0, 1.0])
    with pytest.raises(ValueError, match="at most 1000 pairs, found 1001"):
        evidence_of_more(np.zeros(1001), 0.0)


STUDIES, PAIRS = 20_000, 30


def shaken(random: np.random.Generator) -> NDArray[np.float64]:
    """Symmetric given the past, and otherwise as bad as can be: the scale follows the signs."""
    signs = random.choice((-1.0, 1.0), (STUDIES, PAIRS))
    won = np.cumsum(signs, axis=1) - signs
    return signs * random.exponential(0.1 * 2.0 ** np.clip(won, -6, 6))


SYMMETRIC: dict[str, Callable[[np.random.Generator], NDArray[np.float64]]] = {
    "normal": lambda random: random.normal(0.0, 0.05, (STUDIES, PAIRS)),
    "Cauchy": lambda random: 0.02 * random.standard_cauchy((STUDIES, PAIRS)),
    "signs": lambda random: 0.1 * random.choice((-1.0, 1.0), (STUDIES, PAIRS)),
    "scale follows the past": shaken,
}


@pytest.mark.parametrize("kind", SYMMETRIC)
def test_looking_after_every_pair_finds_nothing_more_often_than_stated(kind: str) -> None:
    logs = SYMMETRIC[kind](np.random.default_rng(20261203))
    ever = [(evidence_of_more(sign * logs, 0.0) > 40.0).any(axis=1) for sign in (1.0, -1.0)]
    # Four standard errors; Ville's bound is not reached by 30 looks, so that it holds easily.
    assert (ever[0] | ever[1]).mean() <= 0.05 + 4.0 * math.sqrt(0.05 * 0.95 / STUDIES)


def test_values_that_are_not_symmetric_are_found_out() -> None:
    """The simulation above can fail: the same machinery sees a drift of half a deviation."""
    logs = np.random.default_rng(4).normal(0.025, 0.05, (2000, PAIRS))
    assert (evidence_of_more(logs, 0.0) > 40.0).any(axis=1).mean() > 0.3


@pytest.mark.parametrize(
    ("sd", "effect_in_sd", "pairs", "power"),
    [(0.01, 3.0, 8, 0.95), (0.3, 3.0, 7, 0.95), (0.03, 1.0, 30, 0.9), (0.15, 0.5, 30, 0.25)],
)
def test_real_effects_are_found(sd: float, effect_in_sd: float, pairs: int, power: float) -> None:
    logs = np.random.default_rng(8).normal(effect_in_sd * sd, sd, (2000, pairs))
    assert (evidence_of_more(logs, 0.0) > 40.0).any(axis=1).mean() >= power


@pytest.mark.parametrize(("pairs", "half_width_in_sd"), [(8, 1.7), (12, 1.35), (30, 0.75)])
@pytest.mark.parametrize("sd", [0.01, 0.1, 0.3])
def test_the_width_of_the_interval(sd: float, pairs: int, half_width_in_sd: float) -> None:
    random = np.random.default_rng(9)
    found = [ratio_of(list(random.normal(0.05, sd, pairs))) for _ in range(100)]
    widths = [math.log(each.high / each.low) / 2.0 / sd for each in found]
    assert 0.4 * half_width_in_sd < np.median(widths) < half_width_in_sd


def test_one_look_at_30_pairs_takes_less_than_a_millisecond_or_so() -> None:
    random = np.random.default_rng(1)
    baseline, candidate = [1.0] * 30, list(random.lognormal(0.05, 0.1, 30))
    took_s = []
    for _ in range(5):
        started_s = time.process_time()  # of this process, whoever else has the processors
        for _ in range(20):
            sequential_ratio(baseline, candidate)
        took_s.append((time.process_time() - started_s) / 20)
    assert min(took_s) < 0.005  # 0.0004 on an idle machine
