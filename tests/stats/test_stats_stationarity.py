"""Steady runs are called steady, runs that change are not: by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lsmtune.stats.noise import stationarity

RUNS = 1500


def steady_run(random: np.random.Generator, count: int, rho: float) -> NDArray[np.float64]:
    """Throughputs around 1,000 with a deviation of 10 %, neighbours correlated by `rho`."""
    noise = random.normal(size=count)
    noise[0] /= math.sqrt(1.0 - rho**2)
    for index in range(1, count):
        noise[index] += rho * noise[index - 1]
    return 1000.0 * (1.0 + 0.1 * math.sqrt(1.0 - rho**2) * noise)


def share_unsteady(count: int, rho: float, trend_in_sd: float = 0.0, runs: int = RUNS) -> float:
    random = np.random.default_rng(1000 * count + int(100 * rho))
    line = np.linspace(-50.0, 50.0, count) * trend_in_sd
    found = [
        stationarity(list(steady_run(random, count, rho) + line), smallest_per_cent=0.0)
        for _ in range(runs)
    ]
    return sum(not each.steady for each in found) / runs


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.5])
@pytest.mark.parametrize("count", [8, 10, 12, 20, 60])
def test_steady_runs_are_seldom_called_unsteady(count: int, rho: float) -> None:
    assert share_unsteady(count, rho) <= 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / RUNS)


def test_a_random_walk_is_not_steady() -> None:
    """The simulation above can fail."""
    assert share_unsteady(60, 0.995, runs=300) > 0.15


@pytest.mark.parametrize(
    ("count", "trend_in_sd", "found"), [(12, 6, 0.8), (20, 5, 0.8), (60, 4, 0.95)]
)
@pytest.mark.parametrize("way", [1.0, -1.0])
def test_a_run_that_keeps_changing_is_found(
    count: int, trend_in_sd: float, found: float, way: float
) -> None:
    assert share_unsteady(count, 0.3, way * trend_in_sd, runs=300) >= found


@pytest.mark.parametrize("slope", [-30.0, 30.0])
def test_a_straight_line_is_told_in_per_cent_of_its_mean(slope: float) -> None:
    wiggle = [5.0, -5.0] * 10
    values = [1000.0 + slope * (index - 9.5) + wiggle[index] for index in range(20)]
    found = stationarity(values)
    assert not found.steady
    assert found.trend_per_cent == pytest.approx(1.9 * slope, rel=0.02)
    word = "rose" if slope > 0 else "fell"
    assert found.why == f"throughput {word} by 57 % of its mean over 20 intervals"


def test_a_trend_that_does_not_matter_is_no_warning() -> None:
    values = [1000.0 + index for index in range(20)]
    assert stationarity(values).steady
    assert not stationarity(values, smallest_per_cent=1.0).steady


def test_a_burst_at_the_start_that_is_over_is_no_trend() -> None:
    random = np.random.default_rng(3)
    values = [3000.0] * 3 + [1000.0] * 37
    assert stationarity(list(values * random.lognormal(0.0, 0.05, 40))).steady


def test_runs_without_any_change() -> None:
    assert stationarity([0.0] * 8).steady
    found = stationarity([7.0] * 8)
    assert (found.steady, found.trend_per_cent) == (True, 0.0)


@given(st.lists(st.floats(0.0, 1e6), min_size=8, max_size=30), st.floats(0.01, 100.0))
def test_a_unit_does_not_matter_and_time_backwards_turns_the_trend(
    values: list[float], unit: float
) -> None:
    found = stationarity(values)
    back = stationarity(values[::-1])
    assert back.trend_per_cent == pytest.approx(-found.trend_per_cent, abs=1e-6)
    scaled = stationarity([value * unit for value in values])
    assert scaled.trend_per_cent == pytest.approx(found.trend_per_cent, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([1.0] * 7, r"at least 8 intervals, found shape \(7,\)"),
        ([[1.0] * 8], "at least 8 intervals"),
        ([1.0] * 8 + [-1.0], "not negative, found -1.0"),
        ([1.0] * 8 + [math.nan], "finite"),
    ],
)
def test_refuses_what_is_no_run(values: list[float], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        stationarity(values)
