from __future__ import annotations

import math

import numpy as np
import pytest

from lsmtune.stats.intervals import random_effects

STUDIES = 1500


def simulated(
    rng: np.random.Generator, hosts: int, pairs: int, between: float, unequal: bool = False
) -> list[list[float]]:
    """Effects of mean 0.3: hosts differ by `between`, pairs by 0.05, or by 0.02 to 0.1."""
    within = rng.choice([0.02, 0.05, 0.1], (hosts, 1)) if unequal else 0.05
    own = rng.normal(0.3, between, (hosts, 1))
    found: list[list[float]] = rng.normal(own, within, (hosts, pairs)).tolist()
    return found


@pytest.mark.parametrize("hosts", [2, 3, 8])
@pytest.mark.parametrize(
    ("between", "unequal"), [(0.0, False), (0.05, False), (0.2, False), (0.2, True)]
)
def test_an_interval_of_95_percent_covers_the_mean_over_hosts_in_95_percent_of_studies(
    hosts: int, between: float, unequal: bool
) -> None:
    rng = np.random.default_rng(hosts)
    covered = 0
    for _ in range(STUDIES):
        found = random_effects(simulated(rng, hosts, 6, between, unequal))
        covered += found.low <= 0.3 <= found.high
    # Three standard errors of a share.
    assert covered / STUDIES >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / STUDIES)


@pytest.mark.parametrize(("unequal", "most"), [(False, 0.07), (True, 0.14)])
@pytest.mark.parametrize("hosts", [2, 8, 100])
def test_however_many_hosts_do_not_differ_they_are_seldom_said_to(
    hosts: int, unequal: bool, most: float
) -> None:
    rng = np.random.default_rng(hosts)
    found = [random_effects(simulated(rng, hosts, 4, 0.0, unequal)) for _ in range(STUDIES // 2)]
    called = [each for each in found if each.p_same < 0.05]
    assert 0.03 < len(called) / len(found) < most
    # With noise of 5 % a difference that matters is seen in fewer still.
    assert sum(each.between_sd > math.log(1.05) for each in called) <= 0.04 * len(found)


def test_a_host_whose_pairs_are_alike_to_the_last_bit_does_not_end_the_proof() -> None:
    found = random_effects([[0.1, 0.1 + 3e-16, 0.1, 0.1], [0.1, 0.12, 0.11, 0.09]])
    assert found.low < 0.1 < found.high
    assert found.p_same > 0.05
    same = random_effects([[0.5, 0.5], [0.5, 0.5]])
    assert (same.between_sd, same.p_same) == (0.0, 1.0)


def test_hosts_that_differ_are_found_and_by_how_much() -> None:
    rng = np.random.default_rng(1)
    found = [random_effects(simulated(rng, 8, 6, 0.2)) for _ in range(200)]
    assert sum(each.p_same < 0.05 for each in found) > 195
    assert np.mean([each.between_sd for each in found]) == pytest.approx(0.2, abs=0.02)


def test_equal_variances_give_students_interval_of_the_means() -> None:
    effects = [[0.1, 0.2], [0.5, 0.6], [0.9, 1.0]]
    found = random_effects(effects)
    assert found.mean == pytest.approx(0.55)
    # Means 0.15, 0.55, 0.95: deviation 0.4, t of two degrees of freedom 4.3027.
    assert found.high - found.mean == pytest.approx(4.302653 * 0.4 / math.sqrt(3), rel=1e-6)


@pytest.mark.parametrize("effects", [[], [[1.0, 2.0]], [[1.0, 2.0], [1.0]]])
def test_less_than_two_hosts_with_two_values_each_say_nothing(effects: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="two hosts"):
        random_effects(effects)
