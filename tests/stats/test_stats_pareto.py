"""The front: what is on it is beaten by nothing, what is off it is beaten by something."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmtune.stats.pareto import front

VALUE = st.integers(-4, 4).map(float) | st.floats(allow_nan=False)


@st.composite
def clouds(draw: st.DrawFn) -> tuple[list[list[float]], list[bool]]:
    columns = draw(st.integers(1, 4))
    row = st.lists(VALUE, min_size=columns, max_size=columns)
    maximize = draw(st.lists(st.booleans(), min_size=columns, max_size=columns))
    return draw(st.lists(row, max_size=12)), maximize


def beats(one: list[float], other: list[float], maximize: list[bool]) -> bool:
    """Written anew, value by value, as an oracle."""
    signs = [-1 if more else 1 for more in maximize]
    pairs = [(s * a, s * b) for s, a, b in zip(signs, one, other, strict=True)]
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


@given(clouds())
def test_a_point_is_on_the_front_unless_another_beats_it(
    cloud: tuple[list[list[float]], list[bool]],
) -> None:
    points, maximize = cloud
    on = front(points, maximize)
    assert on == sorted(set(on))
    for number, point in enumerate(points):
        beaten = any(beats(other, point, maximize) for other in points)
        assert (number in on) is not beaten
    # And every other point is beaten by one of the front itself.
    for number in set(range(len(points))) - set(on):
        assert any(beats(points[k], points[number], maximize) for k in on)


def test_the_front_of_throughput_and_memory() -> None:
    points = [(100.0, 8.0), (90.0, 4.0), (80.0, 6.0), (100.0, 8.0)]
    assert front(points, [True, False]) == [0, 1, 3]
    assert front(points, [True, True]) == [0, 3]
    assert front([], [True, False]) == []


def test_what_is_not_a_number_or_not_a_row_is_refused() -> None:
    with pytest.raises(ValueError, match="not a number"):
        front([(1.0, math.nan)], [True, True])
    with pytest.raises(ValueError, match="2 values"):
        front([(1.0, 2.0), (1.0,)], [True, True])
