"""The paired ratio against an independent computation, and its promises by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lsmtune.stats.intervals import paired_ratio

positive = st.floats(min_value=1e-3, max_value=1e9)
two_sides = st.integers(2, 12).flatmap(
    lambda n: st.tuples(
        st.lists(positive, min_size=n, max_size=n), st.lists(positive, min_size=n, max_size=n)
    )
)


def test_against_a_worked_example() -> None:
    # Log-ratios ln 2 and ln 8: mean ln 4, standard error ln 2, t(0.975, 1) = 12.7062.
    found = paired_ratio([10.0, 10.0], [20.0, 80.0])
    assert found.ratio == pytest.approx(4.0)
    assert found.low == pytest.approx(4.0 * 2.0**-12.7062, rel=1e-4)
    assert found.high == pytest.approx(4.0 * 2.0**12.7062, rel=1e-4)
    assert found.pairs == 2


@given(two_sides)
def test_agrees_with_scipys_one_sample_interval(sides: tuple[list[float], list[float]]) -> None:
    logs = np.log(sides[1]) - np.log(sides[0])
    found = paired_ratio(*sides, confidence=0.9)
    if np.std(logs) < 1e-9:
        assert found.low == pytest.approx(found.high)
        return
    expected = stats.ttest_1samp(logs, 0.0).confidence_interval(0.9)
    assert math.log(found.ratio) == pytest.approx(float(np.mean(logs)), abs=1e-9)
    # The bounds of wild data leave the range of floats on both sides alike.
    with np.errstate(over="ignore"):
        assert found.low == pytest.approx(float(np.exp(expected.low)), rel=1e-6)
        assert found.high == pytest.approx(float(np.exp(expected.high)), rel=1e-6)


@given(two_sides)
def test_swapping_the_sides_inverts_the_ratio(sides: tuple[list[float], list[float]]) -> None:
    there, back = paired_ratio(*sides), paired_ratio(sides[1], sides[0])
    assert there.ratio * back.ratio == pytest.approx(1.0)
    assert there.low <= there.ratio <= there.high


@given(two_sides, st.floats(0.01, 100.0))
def test_a_unit_does_not_matter(sides: tuple[list[float], list[float]], unit: float) -> None:
    baseline, candidate = ([value * unit for value in side] for side in sides)
    assert paired_ratio(baseline, candidate).ratio == pytest.approx(paired_ratio(*sides).ratio)


def test_equal_ratios_give_a_point() -> None:
    found = paired_ratio([1.0, 2.0, 4.0], [3.0, 6.0, 12.0])
    assert found.low == pytest.approx(3.0)
    assert found.high == pytest.approx(3.0)
    assert found.excludes_one()


def test_a_bound_beyond_the_range_of_floats_is_none() -> None:
    """Of two rounds of a sweep with 500 cells; numpy warned of it on the terminal."""
    found = paired_ratio([1.0, 1.0], [1.0, 1.6], confidence=1.0 - 0.05 / 500)
    assert found.ratio == pytest.approx(math.sqrt(1.6))
    assert (found.low, found.high) == (0.0, math.inf)


@pytest.mark.parametrize(
    ("baseline", "candidate", "says"),
    [
        ([], [], "at least 2 pairs, found 0"),
        ([1.0], [1.0], "at least 2 pairs, found 1"),
        ([1.0, 2.0], [1.0], "2 baseline values and 1 candidate values"),
        ([1.0, 0.0], [1.0, 1.0], "baseline values must be finite and above zero, found 0.0"),
        ([1.0, 1.0], [1.0, -2.0], "candidate values must be finite and above zero, found -2.0"),
        ([1.0, math.nan], [1.0, 1.0], "baseline values must be finite and above zero, found nan"),
        ([1.0, 1.0], [math.inf, 1.0], "candidate values must be finite and above zero, found inf"),
    ],
)
def test_refuses(baseline: list[float], candidate: list[float], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        paired_ratio(baseline, candidate)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.5, math.nan])
def test_refuses_a_confidence_that_is_none(confidence: float) -> None:
    with pytest.raises(ValueError, match="confidence"):
        paired_ratio([1.0, 2.0], [1.0, 2.0], confidence)


def test_refuses_a_table() -> None:
    with pytest.raises(ValueError, match="one-dimensional"):
        paired_ratio([[1.0, 2.0]], [[1.0, 2.0]])  # type: ignore[list-item]


def simulated(
    seed: int, proofs: int, pairs: int, effect: float, confidence: float
) -> tuple[float, float]:
    """Shares of simulated proofs whose interval covers `effect`, and excludes 1.

    Each pair shares a machine state that wanders by 20 %; each run adds noise of 5 %.
    """
    random = np.random.default_rng(seed)
    state = random.lognormal(0.0, 0.2, (proofs, pairs))
    baseline = 1e5 * state * random.lognormal(0.0, 0.05, (proofs, pairs))
    candidate = 1e5 * effect * state * random.lognormal(0.0, 0.05, (proofs, pairs))
    found = [
        paired_ratio(list(b), list(c), confidence) for b, c in zip(baseline, candidate, strict=True)
    ]
    covered = sum(interval.low <= effect <= interval.high for interval in found)
    differs = sum(interval.excludes_one() for interval in found)
    return covered / proofs, differs / proofs


PROOFS = 2500


def binomial_error(share: float) -> float:
    """Four standard errors of a share seen in PROOFS draws: true in all but one of 16,000."""
    return 4.0 * math.sqrt(share * (1.0 - share) / PROOFS)


@pytest.mark.parametrize("pairs", [5, 8])
@pytest.mark.parametrize("confidence", [0.95, 0.8])
@pytest.mark.parametrize("effect", [1.0, 1.07])
def test_the_interval_covers_as_often_as_it_says(
    pairs: int, confidence: float, effect: float
) -> None:
    covered, _ = simulated(20261121 + pairs, PROOFS, pairs, effect, confidence)
    assert covered == pytest.approx(confidence, abs=binomial_error(confidence))


@pytest.mark.parametrize("pairs", [5, 8])
def test_equal_sides_are_called_different_no_more_often_than_stated(pairs: int) -> None:
    _, differs = simulated(7 + pairs, PROOFS, pairs, effect=1.0, confidence=0.95)
    assert differs <= 0.05 + binomial_error(0.05)


def test_a_real_effect_is_found() -> None:
    # 1.42x at 7 % noise of the ratio: the log-effect is 5 standard deviations of one pair.
    _, differs = simulated(3, 500, 5, effect=1.42, confidence=0.95)
    assert differs > 0.99
