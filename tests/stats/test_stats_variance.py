"""Estimators that vary less: they must not favour a side, and their worth must be told right."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "variance"))

from analyse import control_variate, machine_cost, undisturbed

small = st.floats(-2.0, 2.0)
two_columns = st.integers(1, 12).flatmap(
    lambda n: st.tuples(
        st.lists(small, min_size=n, max_size=n),
        st.lists(small, min_size=n, max_size=n),
        st.lists(st.sampled_from([-1.0, 1.0]), min_size=n, max_size=n),
    )
)


def test_a_control_variate_by_hand() -> None:
    # The slope through the origin: (1*2 + 3*1) / (4 + 1) = 1.
    assert list(control_variate(np.array([1.0, 3.0]), np.array([2.0, 1.0]))) == [-1.0, 2.0]


@given(two_columns)
def test_swapping_the_sides_of_a_pair_turns_its_sign_and_nothing_else(
    columns: tuple[list[float], list[float], list[float]],
) -> None:
    logs, covariates, signs = (np.array(column) for column in columns)
    plain = control_variate(logs, covariates)
    swapped = control_variate(signs * logs, signs * covariates)
    assert swapped == pytest.approx(signs * plain, abs=1e-9)


def test_a_covariate_that_never_differs_changes_nothing() -> None:
    assert list(control_variate(np.array([0.1, -0.2]), np.zeros(2))) == [0.1, -0.2]


def test_a_control_variate_takes_out_what_it_explains_and_leaves_the_effect() -> None:
    random = np.random.default_rng(1)
    stolen = random.normal(0.0, 0.1, 400)
    logs = 0.05 + 0.8 * stolen + random.normal(0.0, 0.02, 400)
    found = control_variate(logs, stolen)
    assert np.std(found) == pytest.approx(0.02, rel=0.15)
    assert np.mean(found) == pytest.approx(0.05, abs=0.006)


def test_a_slice_pair_goes_or_stays_as_a_whole() -> None:
    baseline, candidate = np.array([[0.0, 0.3, 0.0, 0.02], [0.0, 0.0, 0.2, 0.05]])
    assert list(undisturbed(baseline, candidate, 0.05)) == [True, False, False, True]
    assert list(undisturbed(candidate, baseline, 0.05)) == [True, False, False, True]


def test_trimming_favours_no_side_though_one_is_robbed_more_often() -> None:
    """The slices of the second side are robbed of a third of their time, three times as often."""
    random = np.random.default_rng(3)
    shares = [(random.random(40_000) < often) / 3.0 for often in (0.1, 0.3)]
    logs = [np.log(1.0 - share) + random.normal(0.0, 0.05, share.size) for share in shares]
    keep = undisturbed(*shares, 0.05)
    raw, trimmed = (logs[1] - logs[0]), (logs[1] - logs[0])[keep]
    assert np.mean(raw) < -0.05
    assert np.mean(trimmed) == pytest.approx(0.0, abs=4 * 0.05 * math.sqrt(2.0 / keep.sum()))
    assert np.std(trimmed) < 0.5 * np.std(raw)


def test_the_cost_by_hand() -> None:
    # Variance of 0, 1, 2: 1. Mean of 2, 4, 6 seconds: 4.
    logs, seconds = np.array([0.0, 1.0, 2.0]), np.array([2.0, 4.0, 6.0])
    found = machine_cost(logs, seconds, np.random.default_rng(1))
    assert found.variance_s == pytest.approx(4.0)
    assert found.low <= 4.0 <= found.high


@pytest.mark.parametrize(("pairs", "least"), [(25, 0.86), (60, 0.9)])
def test_the_interval_of_the_cost_holds_the_truth(pairs: int, least: float) -> None:
    random = np.random.default_rng(4)
    held = 0
    for _ in range(200):
        seconds = random.uniform(5.0, 15.0, pairs)
        found = machine_cost(random.normal(0.0, 0.1, pairs), seconds, random)
        held += found.low <= 0.1 <= found.high
    assert least <= held / 200 <= 0.99
