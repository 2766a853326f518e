"""Means and their intervals, against scipy and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lsmtune.stats.intervals import geometric_mean_interval, mean_interval

some = st.lists(st.floats(0.01, 1e9), min_size=2, max_size=12)


@given(some)
def test_the_interval_is_scipys(values: list[float]) -> None:
    found = mean_interval(values, 0.9)
    assert found.mean == pytest.approx(np.mean(values))
    assert found.median == pytest.approx(np.median(values))
    error = stats.sem(values)
    if error > 1e-9 * found.mean:
        low, high = stats.t.interval(0.9, len(values) - 1, np.mean(values), error)
        assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))


@given(some)
def test_the_geometric_mean_is_inside_bounds_above_zero(values: list[float]) -> None:
    found = geometric_mean_interval(values)
    assert found.mean == pytest.approx(stats.gmean(values))
    assert found.low is not None
    assert found.high is not None
    assert 0.0 <= found.low <= found.mean * (1 + 1e-9)
    assert found.high >= found.mean * (1 - 1e-9)


def test_the_interval_holds_the_mean_as_often_as_it_says() -> None:
    draws = np.random.default_rng(1).lognormal(3.0, 0.2, (2000, 3))
    held = [geometric_mean_interval(list(row)) for row in draws]
    inside = sum((f.low or 0.0) <= math.exp(3.0) <= (f.high or 0.0) for f in held)
    assert 0.93 < inside / len(draws) < 0.97


def test_one_value_has_no_interval() -> None:
    found = mean_interval([3.0])
    assert (found.mean, found.median, found.low, found.high) == (3.0, 3.0, None, None)
    assert geometric_mean_interval([3.0]).high is None


@pytest.mark.parametrize(
    ("values", "confidence", "why"),
    [([], 0.95, "at least one"), ([1.0, math.nan], 0.95, "finite"), ([1.0], 1.0, "confidence")],
)
def test_what_has_no_mean(values: list[float], confidence: float, why: str) -> None:
    for function in (mean_interval, geometric_mean_interval):
        with pytest.raises(ValueError, match=why):
            function(values, confidence)
    with pytest.raises(ValueError, match="above zero"):
        geometric_mean_interval([0.0, 1.0])
