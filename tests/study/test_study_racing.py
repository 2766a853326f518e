"""The race for the best: what is believed, what is run again, and that luck does not win."""

from __future__ import annotations

import math
import random
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmtune.study.racing import (
    PRIOR_LOG_SD,
    Race,
    Standing,
    after_another,
    run_log_sd,
    scatter_of,
)


def race(means: list[float], runs: list[int] | None = None, log_sd: float = 0.1) -> Race:
    counts = runs or [1] * len(means)
    standings = {n: Standing(m, r, r) for n, (m, r) in enumerate(zip(means, counts, strict=True))}
    return Race(standings, log_sd)


SPREAD = [-0.6, -0.4, -0.3, -0.2, 0.0, 0.1, 0.2, 0.3]


def test_a_lucky_single_run_does_not_beat_a_mean_of_many() -> None:
    found = race([*SPREAD, 0.50, 0.48], [1] * 8 + [1, 6], log_sd=0.2)
    assert found.ranked()[0] == 9
    assert found.believed()[8].mean < 0.50
    assert race([*SPREAD, 0.50, 0.48], log_sd=0.2).ranked()[0] == 8


def test_a_bad_configuration_is_run_once_and_a_contender_again() -> None:
    # Far behind: no repeat of anything can change what is best.
    assert race([*SPREAD, 2.0], log_sd=0.02).repeat(3) is None
    again = race([*SPREAD, 1.0, 0.98]).repeat(3)
    assert again in (8, 9)


def test_the_best_is_repeated_too_and_then_the_race_ends() -> None:
    runs = [1] * 10
    means = [*SPREAD, 1.0, 0.98]
    order = []
    while True:
        standings = {n: Standing(means[n], runs[n], runs[n]) for n in range(10)}
        again = Race(standings, 0.3).repeat(3)
        if again is None:
            break
        order.append(again)
        runs[again] += 1
    assert set(order) == {8, 9}
    assert runs[9] <= 3
    assert runs[8] <= 6


def test_repeats_can_be_switched_off_and_need_two_trials_that_differ() -> None:
    assert race([*SPREAD, 1.0, 0.98]).repeat(1) is None
    assert race([1.0]).repeat(3) is None
    assert race([1.0, 1.0, 1.0]).repeat(3) is None
    assert race([]).repeat(3) is None
    assert race([]).ranked() == []


def test_of_equals_the_earliest_is_the_best() -> None:
    assert race([0.0, 1.0, 1.0]).ranked()[0] == 1


@given(st.lists(st.floats(-3, 3), min_size=2, max_size=20), st.floats(0.001, 1.0))
def test_a_belief_lies_between_the_mean_and_the_median(means: list[float], log_sd: float) -> None:
    found = race(means, log_sd=log_sd)
    middle = sorted(means)[len(means) // 2 - (len(means) % 2 == 0) : len(means) // 2 + 1]
    for mean, believed in zip(means, found.believed().values(), strict=True):
        assert min(mean, *middle) - 1e-9 <= believed.mean <= max(mean, *middle) + 1e-9
        assert believed.variance <= log_sd**2 + 1e-12


def test_one_more_run_counts_as_much_as_it_is_sure() -> None:
    believed = {n: NormalDist(mean, 0.1) for n, mean in enumerate((0.3, 0.1, 0.2))}
    # All are twice as fast there, which says nothing of any; as sure as the belief, a run is half.
    runs = {0: math.log(2.0) + 0.1, 1: math.log(2.0) + 0.3, 2: math.log(2.0) + 0.2}
    found = after_another(believed, runs, 0.01)
    assert found == pytest.approx({0: 0.2, 1: 0.2, 2: 0.2})
    noisy = after_another(believed, runs, 1.0)
    assert sorted(noisy, key=lambda n: noisy[n]) == [1, 2, 0]
    unsure = {n: NormalDist(each.mean, 1.0) for n, each in believed.items()}
    by_run = after_another(unsure, runs, 0.01)
    assert sorted(by_run, key=lambda n: by_run[n]) == [0, 2, 1]


def test_of_trials_of_which_little_is_known_one_run_is_believed_more() -> None:
    believed = {0: NormalDist(0.0, 0.01), 1: NormalDist(0.0, 0.3), 2: NormalDist(0.0, 0.01)}
    found = after_another(believed, {0: 0.2, 1: 0.2, 2: -0.2}, 0.01)
    assert found[1] > 10 * found[0] > 0


def test_noise_is_pooled_and_begins_with_a_guess() -> None:
    assert run_log_sd([]) == PRIOR_LOG_SD
    rng = random.Random(5)
    groups = [[rng.gauss(level, 0.2) for _ in range(4)] for level in range(100)]
    assert run_log_sd(map(scatter_of, groups)) == pytest.approx(0.2, rel=0.1)


def simulated(rng: random.Random, *, repeats: int) -> tuple[float, float]:
    """A search of 30 trials: regret of what it calls the best, and how many runs that cost."""
    log_sd, truth, sums, runs = 0.15, [], [], []
    for _ in range(30):
        truth.append(rng.gauss(0.0, 0.15))
        sums.append(truth[-1] + rng.gauss(0.0, log_sd))
        runs.append(1)
        while True:
            means = [total / n for total, n in zip(sums, runs, strict=True)]
            now = race(means, runs, log_sd)
            again = now.repeat(repeats)
            if again is None:
                break
            sums[again] += truth[again] + rng.gauss(0.0, log_sd)
            runs[again] += 1
    best = race([t / n for t, n in zip(sums, runs, strict=True)], runs, log_sd).ranked()[0]
    return max(truth) - truth[best], float(sum(runs))


def test_racing_finds_better_trials_for_less_than_twice_the_runs() -> None:
    rng = random.Random(20261121)
    once = [simulated(rng, repeats=1) for _ in range(150)]
    raced = [simulated(rng, repeats=3) for _ in range(150)]
    regret_once = math.fsum(regret for regret, _ in once) / len(once)
    regret_raced = math.fsum(regret for regret, _ in raced) / len(raced)
    assert {runs for _, runs in once} == {30.0}
    assert math.fsum(runs for _, runs in raced) / len(raced) < 60
    assert regret_raced < 0.7 * regret_once
