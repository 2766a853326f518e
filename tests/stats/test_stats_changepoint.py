"""Changes of level: exact cases, false alarms and detection by simulation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lsmtune.stats.changepoint import segments

Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]


def one_outlier(random: np.random.Generator, count: int) -> NDArray[np.float64]:
    logs = random.normal(0.0, 0.03, count)
    logs[random.integers(count)] -= math.log(1.6)
    return logs


STILL: dict[str, Draw] = {
    "normal": lambda random, count: random.normal(0.0, 0.03, count),
    "t3": lambda random, count: 0.03 * random.standard_t(3, count),
    "one outlier": one_outlier,
    "one in ten disturbed": lambda random, count: (
        random.normal(0.0, 0.03, count) - 0.47 * (random.random(count) < 0.1)
    ),
}
SERIES = {8: 1000, 20: 1000, 100: 300}


def false_alarms(draw: Draw, count: int, series: int, seed: int = 20261203) -> float:
    random = np.random.default_rng(seed + count)
    cut = sum(len(segments(list(draw(random, count)), None)) > 1 for _ in range(series))
    return cut / series


# Ranks alone count: how values are distributed needs no second length.
@pytest.mark.parametrize(
    ("kind", "count"),
    [*(("normal", count) for count in SERIES), *((kind, 20) for kind in list(STILL)[1:])],
)
def test_false_alarms_are_no_more_than_five_in_a_hundred(kind: str, count: int) -> None:
    series = SERIES[count]
    error = 3.0 * math.sqrt(0.05 * 0.95 / series)
    assert false_alarms(STILL[kind], count, series) <= 0.05 + error


def test_the_count_of_false_alarms_can_fail() -> None:
    def drifting(random: np.random.Generator, count: int) -> NDArray[np.float64]:
        return np.cumsum(random.normal(0.0, 0.03, count))

    assert false_alarms(drifting, 20, 200) > 0.5


def shifted(count: int, first: int, last: int, by: float, seed: int) -> list[float]:
    logs = np.random.default_rng(seed).normal(0.0, 0.03, count)
    logs[first:last] += 0.03 * by
    return list(logs)


@pytest.mark.parametrize(
    ("count", "first"), [(8, 4), (10, 6), (20, 10), (20, 16), (20, 4), (100, 50), (100, 96)]
)
def test_a_shift_by_four_deviations_is_found_where_it_is(count: int, first: int) -> None:
    found = [segments(shifted(count, first, count, 4.0, seed), None) for seed in range(100)]
    near = sum(len(parts) > 1 and abs(parts[0].stop - first) <= 1 for parts in found)
    assert near >= 80
    assert sum(len(parts) == 2 for parts in found) >= 85


@pytest.mark.parametrize(("count", "first", "last"), [(20, 6, 14), (40, 5, 13), (100, 40, 46)])
def test_a_level_that_comes_and_goes_is_found(count: int, first: int, last: int) -> None:
    found = [segments(shifted(count, first, last, 4.0, seed), None) for seed in range(100)]
    assert sum(len(parts) == 3 for parts in found) >= 80


def test_three_levels_by_hand() -> None:
    levels = [0.0] * 10 + [1.0] * 12 + [3.0] * 9
    wiggle = itertools.cycle([0.01, -0.02, 0.015, -0.005, 0.0])
    values = [level + next(wiggle) for level in levels]
    assert segments(values, None) == [range(0, 10), range(10, 22), range(22, 31)]


def test_equal_values_with_one_step() -> None:
    assert segments([2.0] * 5 + [3.0] * 7, None) == [range(5), range(5, 12)]
    assert segments([2.0] * 12, None) == [range(12)]


def test_steps_smaller_than_the_known_scatter_are_joined() -> None:
    values = [0.0] * 10 + [0.1] * 10 + [1.0] * 10
    wiggle = list(np.random.default_rng(1).normal(0.0, 0.005, 30))
    values = [a + b for a, b in zip(values, wiggle, strict=True)]
    assert [len(part) for part in segments(values, 0.0)] == [10, 10, 10]
    assert [len(part) for part in segments(values, 0.2)] == [20, 10]
    assert [len(part) for part in segments(values, 5.0)] == [30]


@given(st.lists(st.floats(-5.0, 5.0), max_size=40), st.none() | st.floats(0.0, 3.0))
def test_every_index_is_in_one_segment(values: list[float], log_sd: float | None) -> None:
    parts = segments(values, log_sd)
    assert [index for part in parts for index in part] == list(range(len(values)))
    assert all(len(part) >= 3 for part in parts) or len(parts) <= 1
    if len(values) < 8:
        assert len(parts) == min(len(values), 1)


@given(st.lists(st.integers(-50, 50), min_size=8, max_size=30))
def test_only_the_order_of_the_values_counts(values: list[int]) -> None:
    plain = segments([float(x) for x in values], None)
    assert segments([float(x) ** 3 for x in values], None) == plain
    # Upside down the ranks are the same but for rounding, which may break a tie differently.
    assert len(segments([-float(x) for x in values], None)) == len(plain)


@pytest.mark.parametrize(
    ("values", "log_sd", "says"),
    [
        ([[0.0]], None, "one-dimensional"),
        ([0.0, math.nan], None, "finite, found nan"),
        ([0.0] * 9, -1.0, "not negative, found -1.0"),
        ([0.0] * 9, math.inf, "finite"),
    ],
)
def test_refuses_what_is_no_series(values: list[float], log_sd: float | None, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        segments(values, log_sd)
