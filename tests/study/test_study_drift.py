"""Anchors and what they make of values; where the changes are is given, not found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmtune.model.measurement import Outcome
from lsmtune.study import drift
from lsmtune.study.drift import Drift, drift_of
from lsmtune.study.stored import Round


def anchor(row: int, *values: float) -> Round:
    return Round(row, row, Outcome.OK, 1.0, tuple(values))


def cut_at(*cuts: int) -> object:
    """A stand-in for `stats.changepoint.segments`: cuts every series at the same places."""

    def segments(values: Sequence[float], _log_sd: float | None) -> list[range]:
        ends = [0, *cuts, len(values)]
        return [range(a, b) for a, b in pairwise(ends)]

    return segments


@pytest.fixture
def halved(monkeypatch: pytest.MonkeyPatch) -> Drift:
    """Anchors at rows 0, 10, 20, 30, 40; from 30 on the machine is half as fast."""
    monkeypatch.setattr(drift, "segments", cut_at(3))
    return drift_of([anchor(0, 100), anchor(10, 110), anchor(20, 100 / 1.1), *later()])


def later() -> list[Round]:
    return [anchor(30, 50.0), anchor(40, 50.0)]


def test_a_value_is_seen_relative_to_the_anchors_of_its_time(halved: Drift) -> None:
    assert halved.judged([80.0], 15) == pytest.approx((80.0,))
    assert halved.judged([40.0], 35) == pytest.approx((80.0,))
    assert halved.judged([40.0], 999) == pytest.approx((80.0,))
    assert halved.factor() == pytest.approx(2.0)


def test_between_two_anchors_nobody_knows(halved: Drift) -> None:
    rows = [0, 20, 21, 29, 30, 999]
    assert [halved.segment_of(row) for row in rows] == [(0,), (0,), None, None, (1,), (1,)]
    # As a last resort, the mean of what both neighbours say.
    assert halved.judged([40.0], 25) == pytest.approx((40.0 * math.sqrt(2.0),))


def test_a_level_that_was_seen_twice_is_not_cut_off_too_early(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The search for changes wants three values in each segment."""
    monkeypatch.setattr(drift, "segments", cut_at(3))
    values = [100.0, 101.0, 99.0, 100.0, 50.0, 51.0]
    found = drift_of([anchor(10 * n, value) for n, value in enumerate(values)])
    (change,) = found.changes()
    assert (change.before, change.after) == (30, 40)
    assert found.judged([50.5], 60) == pytest.approx((50.5 * 100 / math.sqrt(50 * 51),))


def test_a_change_says_where_and_how_much(halved: Drift) -> None:
    (change,) = halved.changes()
    assert (change.before, change.after) == (20, 30)
    assert change.ratio == pytest.approx(0.5)


@given(st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=8), st.integers(-5, 100))
def test_while_the_machine_is_the_same_values_are_left_as_they_are(
    values: list[float], row: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drift, "segments", cut_at())
        found = drift_of([anchor(10 * n, value) for n, value in enumerate(values)])
    assert found.judged([0.3], row) == (0.3,)
    assert found.segment_of(row) == (0,)
    assert found.changes() == []


def test_each_objective_has_a_series_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drift, "segments", cut_at(2))
    rows = [(100.0, 7.0), (100.0, 7.0), (50.0, 7.0), (50.0, 7.0)]
    found = drift_of([anchor(10 * n, *values) for n, values in enumerate(rows)])
    assert found.judged([40.0, 3.0], 25) == pytest.approx((80.0, 3.0))


def test_values_that_have_no_logarithm_are_judged_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(drift, "segments", cut_at(1))
    found = drift_of([anchor(0, 0.0), anchor(10, 5.0)])
    assert found.judged([3.0], 12) == (3.0,)
    assert found.segment_of(5) == (0,)


def test_without_anchors_nothing_is_known_and_nothing_changed() -> None:
    found = drift_of([Round(1, 1, Outcome.CRASHED)])
    assert found.judged([3.0, 4.0], 12) == (3.0, 4.0)
    assert found.segment_of(12) == ()
    assert found.factor() == 1.0
