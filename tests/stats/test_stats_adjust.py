"""Estimators that vary less: they must not favour a side, and their worth must be told right."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmtune.stats.sequential import evidence_of_more

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "variance"))

from adjust import control_variate, machine_cost, undisturbed

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
    found = control_variate([1.0, 3.0], [2.0, 1.0])
    assert list(found.slopes) == [1.0, 1.0]
    assert list(found.log_ratios) == [-1.0, 2.0]


def test_a_running_slope_knows_the_past_only() -> None:
    found = control_variate([1.0, 3.0, 5.0], [2.0, 1.0, 1.0], running=True)
    assert list(found.slopes) == [0.0, 0.5, 1.0]
    assert list(found.log_ratios) == [1.0, 2.5, 4.0]


@given(two_columns, st.booleans())
def test_swapping_the_sides_of_a_pair_turns_its_sign_and_nothing_else(
    columns: tuple[list[float], list[float], list[float]], running: bool
) -> None:
    logs, covariates, signs = (np.array(column) for column in columns)
    plain = control_variate(logs, covariates, running=running)
    swapped = control_variate(signs * logs, signs * covariates, running=running)
    assert swapped.log_ratios == pytest.approx(signs * plain.log_ratios, abs=1e-9)


def test_a_covariate_that_never_differs_changes_nothing() -> None:
    assert list(control_variate([0.1, -0.2], [0.0, 0.0]).log_ratios) == [0.1, -0.2]
    assert len(control_variate([], []).log_ratios) == 0


def test_a_control_variate_takes_out_what_it_explains_and_leaves_the_effect() -> None:
    random = np.random.default_rng(1)
    stolen = random.normal(0.0, 0.1, 400)
    logs = 0.05 + 0.8 * stolen + random.normal(0.0, 0.02, 400)
    found = control_variate(logs, stolen)
    assert np.std(found.log_ratios) == pytest.approx(0.02, rel=0.15)
    assert np.mean(found.log_ratios) == pytest.approx(0.05, abs=0.006)
    assert found.slopes[0] == pytest.approx(0.8, abs=0.05)


def test_the_running_control_variate_may_be_looked_at_after_every_pair() -> None:
    random = np.random.default_rng(2)
    covariates = random.standard_t(3, (2000, 30)) * 0.1
    logs = covariates + random.normal(0.0, 0.05, covariates.shape)
    adjusted = np.array(
        [
            control_variate(x, c, running=True).log_ratios
            for x, c in zip(logs, covariates, strict=True)
        ]
    )
    ever = [(evidence_of_more(sign * adjusted, 0.0) > 40.0).any(axis=1) for sign in (1.0, -1.0)]
    assert (ever[0] | ever[1]).mean() <= 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / 2000)


def test_a_slice_pair_goes_or_stays_as_a_whole() -> None:
    baseline, candidate = [0.0, 0.3, 0.0, 0.02], [0.0, 0.0, 0.2, 0.05]
    assert list(undisturbed(baseline, candidate, 0.05)) == [True, False, False, True]
    assert list(undisturbed(candidate, baseline, 0.05)) == [True, False, False, True]
    assert not undisturbed([1.0], [0.0], 0.5).any()


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
    found = machine_cost([0.0, 1.0, 2.0], [2.0, 4.0, 6.0], np.random.default_rng(1))
    assert found.variance_s == pytest.approx(4.0)
    assert found.low <= 4.0 <= found.high
    assert (found.pairs, found.confidence) == (3, 0.95)


@pytest.mark.parametrize(("pairs", "least"), [(25, 0.86), (60, 0.9)])
def test_the_interval_of_the_cost_holds_the_truth(pairs: int, least: float) -> None:
    random = np.random.default_rng(4)
    held = 0
    for _ in range(200):
        seconds = random.uniform(5.0, 15.0, pairs)
        found = machine_cost(random.normal(0.0, 0.1, pairs), seconds, random)
        held += found.low <= 0.1 <= found.high
    assert least <= held / 200 <= 0.99


def test_pairs_that_never_vary_cost_nothing() -> None:
    found = machine_cost([0.5] * 4, [1.0] * 4, np.random.default_rng(1))
    assert (found.variance_s, found.low, found.high) == (0.0, 0.0, 0.0)


def test_refuses_what_does_not_belong_together() -> None:
    random = np.random.default_rng(1)
    with pytest.raises(ValueError, match=r"found shapes \(1,\), \(2,\)"):
        control_variate([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="finite"):
        control_variate([1.0], [math.nan])
    with pytest.raises(ValueError, match=r"share must not be negative, found -0\.1"):
        undisturbed([0.0], [-0.1], 0.1)
    with pytest.raises(ValueError, match="largest share must not be negative"):
        undisturbed([0.0], [0.1], -1.0)
    with pytest.raises(ValueError, match="at least 3 pairs, found 2"):
        machine_cost([1.0, 2.0], [1.0, 1.0], random)
    with pytest.raises(ValueError, match=r"seconds must be above zero, found 0\.0"):
        machine_cost([1.0, 2.0, 3.0], [1.0, 0.0, 1.0], random)
    with pytest.raises(ValueError, match="confidence"):
        machine_cost([1.0, 2.0, 3.0], [1.0, 1.0, 1.0], random, 1.0)
