"""Interaction: none where axes are independent, else found, no more often than it says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lsmtune.stats.pareto import interaction


def product(*sizes: int, seed: int = 1) -> NDArray[np.float64]:
    """A grid that is a product of one factor per axis."""
    random = np.random.default_rng(seed)
    grid = np.ones(sizes)
    for axis, size in enumerate(sizes):
        shape = [1] * len(sizes)
        shape[axis] = size
        grid = grid * random.uniform(0.2, 5.0, size).reshape(shape)
    return grid


@given(st.lists(st.integers(2, 4), min_size=2, max_size=3), st.integers(1, 3), st.integers(0, 99))
def test_a_product_of_factors_has_none(sizes: list[int], repeats: int, seed: int) -> None:
    grid = np.repeat(product(*sizes, seed=seed)[..., np.newaxis], repeats, axis=-1)
    found = interaction(grid)
    assert found is not None
    assert found.largest == pytest.approx(1.0)
    assert found.p_value == (1.0 if repeats > 1 else None)


def test_a_cell_that_is_off_is_named_with_its_share_of_the_factor() -> None:
    grid = np.repeat(product(3, 3)[..., np.newaxis], 3, axis=-1)
    grid[2, 0] *= 2.0
    noisy = grid * np.random.default_rng(2).lognormal(0.0, 0.01, grid.shape)
    found = interaction(noisy)
    assert found is not None
    assert found.cell == (2, 0)
    # Of one cell that is off in a grid of 3 by 3, main effects take 5 / 9 of the log.
    assert found.largest == pytest.approx(2.0 ** (4 / 9), rel=0.05)
    assert found.p_value is not None
    assert found.p_value < 1e-6


def test_on_noise_alone_it_calls_one_as_often_as_it_says() -> None:
    random = np.random.default_rng(3)
    grid = product(3, 2)[..., np.newaxis]
    called = 0
    for _ in range(1000):
        rounds = random.lognormal(0.0, 0.3, (1, 1, 3))  # the drift of whole rounds cancels
        found = interaction(grid * rounds * random.lognormal(0.0, 0.05, (3, 2, 3)))
        called += found is not None and (found.p_value or 0.0) < 0.05
    assert 30 <= called <= 72


def test_one_axis_has_no_interaction() -> None:
    assert interaction(np.ones((3, 1, 2))) is None
    with pytest.raises(ValueError, match="above zero"):
        interaction(np.zeros((2, 2, 1)))
