"""The unit unit_space: points are trials and trials are points, whatever a space can hold."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsmtune.model.config import OptionValue
from lsmtune.model.goal import Direction
from lsmtune.search.history import History
from lsmtune.search.model_based import ModelSampler, neighbours
from lsmtune.search.sampler import SamplerContext
from lsmtune.search.unit_space import INACTIVE, UnitSpace, make_dimension, make_unit_space
from lsmtune.space.prior import Prior
from lsmtune.space.space import Space
from lsmtune.testing.search import RICH, SPACES, choice, number, space_of, when
from optuna_draws import draws

# Conditions on numbers, on special values, on both, on a prior and on a condition.
DEEP = space_of(
    number("level", 1, 22, specials=[(32767, 0.3), (-1, 0.1)]),
    number("dict_bytes", 1024, 65536, log=True, conditions=when("level", 32767, 5)),
    number("threads", 1, 30, prior=Prior("normal", 8.0, 2.0)),
    choice("pinned", True, False, conditions=when("threads", 7, 8, 9)),
    number("share", 0.0, 0.3, integer=False, step=0.1, specials=[(-1, None)]),
    number("rest", 1, 9, conditions=when("share", 0.3) + when("pinned", True)),
)
ALL_SPACES = {**SPACES, "deep": DEEP}
UNIT_SPACES = {name: make_unit_space(space) for name, space in ALL_SPACES.items()}
seeds = st.integers(0, 2**32 - 1)


def drawn(unit_space: UnitSpace, seed: int, count: int = 40) -> np.ndarray:
    return unit_space.sample(np.random.default_rng(seed), count)


@pytest.mark.parametrize("name", UNIT_SPACES)
@settings(max_examples=20)
@given(seed=seeds)
def test_a_point_and_its_trial_say_the_same(name: str, seed: int) -> None:
    unit_space, space = UNIT_SPACES[name], ALL_SPACES[name]
    for point in drawn(unit_space, seed):
        params = unit_space.decode(point)
        trial = optuna.trial.FixedTrial(params)
        assert space.contains(space.suggest(draws(space, trial)))
        # Exactly what the unit_space holds to be active was asked for.
        assert trial.params == params
        np.testing.assert_array_equal(unit_space.encode([params])[0], point)


@pytest.mark.parametrize("name", UNIT_SPACES)
@settings(max_examples=10)
@given(seed=seeds)
def test_completing_a_point_again_changes_nothing(name: str, seed: int) -> None:
    unit_space = UNIT_SPACES[name]
    points = drawn(unit_space, seed)
    np.testing.assert_array_equal(unit_space.complete(np.nan_to_num(points, nan=0.5)), points)


def test_a_condition_on_one_of_many_numbers_of_a_prior_holds_where_it_is_drawn() -> None:
    """Over more than 1,000 numbers nobody saw it hold: `gp`, `sobol` ended in a traceback."""
    space = space_of(
        number("x", 0, 2000, prior=Prior("normal", 1000.0, 5.0)),
        number("y", 1, 9, conditions=when("x", 999, 1000)),
    )
    unit_space = make_unit_space(space)
    values = [unit_space.values_at(point) for point in drawn(unit_space, 0, 400)]
    assert 0 < sum("y" in each for each in values) < 200
    assert all(("y" in each) == (each["x"] in (999, 1000)) for each in values)
    at_once = unit_space.encode([space.variables_of({"x": 1000, "y": 3})])
    np.testing.assert_array_equal(unit_space.complete(at_once), at_once)


def test_numbers_that_a_prior_all_but_excludes_come_back_as_themselves() -> None:
    """Their cells were put together from middles, whose rounding errors are as wide as they are."""
    space = space_of(number("n", 0, 900, prior=Prior("normal", 100.0, 50.0)))
    unit_space = make_unit_space(space)
    numbers = [n for n in range(901) if space.contains({"n": n})]
    assert 500 < len(numbers) < 510
    points = unit_space.encode([space.variables_of({"n": n}) for n in numbers])
    assert [unit_space.values_at(point)["n"] for point in points] == numbers


def test_what_optuna_draws_is_encoded_and_decoded() -> None:
    unit_space = UNIT_SPACES["rich"]
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    for _ in range(60):
        trial = study.ask()
        values = RICH.suggest(draws(RICH, trial))
        back = unit_space.decode(unit_space.encode([trial.params])[0])
        again = RICH.suggest(back.__getitem__)
        assert again.keys() == values.keys()
        for name, value in values.items():
            # A float comes back to within the rounding of its coordinate, all else exactly.
            wanted = pytest.approx(value) if isinstance(value, float) else value
            assert again[name] == wanted


def test_draws_have_the_weights_of_special_values_and_the_prior() -> None:
    unit_space = UNIT_SPACES["deep"]
    values = [DEEP.suggest(unit_space.decode(p).__getitem__) for p in drawn(unit_space, 0, 4000)]
    share = sum(v["level"] == 32767 for v in values) / len(values)
    assert abs(share - 0.3) < 4 * (0.3 * 0.7 / 4000) ** 0.5
    threads = np.array([v["threads"] for v in values])
    assert abs(threads.mean() - 8) < 0.2
    assert abs(threads.std() - 2) < 0.2


def test_a_float_with_a_step_never_passes_its_bound() -> None:
    distribution = optuna.distributions.FloatDistribution(0.1, 0.3, step=0.1)
    column = make_dimension("x", distribution)
    values = column.scale.from_unit(np.array([0.0, 0.5, 1.0]))
    assert values.max() <= 0.3
    assert [round(float(v), 6) for v in values] == [0.1, 0.2, 0.3]


def test_trees_tell_inactive_by_one_split_and_distances_ignore_it() -> None:
    space = space_of(
        choice("style", "a", "b", "c"), number("x", 0, 10, conditions=when("style", "a"))
    )
    unit_space = make_unit_space(space)
    points = unit_space.encode([{"style": "a", "x": 4}, {"style": "b"}, {"style": "c"}])
    x = unit_space.position["x"]
    trees = unit_space.tree_features(points)
    assert trees[1:, x].tolist() == [INACTIVE, INACTIVE]
    assert trees[0, x] >= 0
    rows = unit_space.distance_features(points)
    assert rows.shape == (3, 4)
    # Any two choices are at distance 1, and the middle stands for an inactive number.
    assert np.linalg.norm(rows[1] - rows[2]) == pytest.approx(1.0)


def test_a_thousand_trials_of_thirty_variables_are_encoded_in_milliseconds() -> None:
    unit_space = make_unit_space(space_of(*(number(f"n{i}", 1, 1000, log=True) for i in range(30))))
    rows = [unit_space.decode(point) for point in drawn(unit_space, 0, 1000)]
    assert unit_space.encode(rows).shape == (1000, 30)


@pytest.mark.parametrize("name", UNIT_SPACES)
def test_neighbours_are_points_of_the_space_and_mostly_near(name: str) -> None:
    unit_space = UNIT_SPACES[name]
    start = drawn(unit_space, 3, 5)
    near = neighbours(unit_space, np.random.default_rng(0), start, 40)
    assert near.shape == (200, unit_space.dimension_count)
    np.testing.assert_array_equal(unit_space.complete(np.nan_to_num(near, nan=0.5)), near)
    moved = (near != np.repeat(start, 40, axis=0)) & ~np.isnan(near)
    assert 0.5 < moved.sum(axis=1).mean() < 4


def test_a_small_step_still_leaves_a_wide_cell() -> None:
    unit_space = make_unit_space(space_of(number("n", 0, 3), number("m", 0, 3)))
    start = unit_space.encode([{"n": 1, "m": 1}])
    near = neighbours(unit_space, np.random.default_rng(0), start, 400)
    assert (near != start).any(axis=1).mean() > 0.5


class Ranked(ModelSampler):
    """By a score that needs no history."""

    near, rounds = 100, 4

    def rank(self, history: History) -> np.ndarray:
        raise NotImplementedError


def test_the_best_new_point_is_found_and_what_is_known_left_out() -> None:
    space: Space = space_of(number("a", 0, 30), number("b", 0, 30), choice("c", "x", "y"))
    unit_space = make_unit_space(space)
    best = unit_space.encode([{"a": 7, "b": 23, "c": "y"}])[0]

    def search(known: set[bytes], least: int = 0) -> np.ndarray:
        def accepts(values: Mapping[str, OptionValue]) -> str:
            return "" if int(values["a"]) >= least else "too little"

        counts = {"startup_trials": 1, "candidates": 50}
        context = SamplerContext(space, 0, counts, (Direction.MAXIMIZE,), accepts=accepts)
        sampler = Ranked(context)
        sampler.rng = np.random.default_rng(0)
        return sampler.best_new(
            known,
            lambda points: -np.abs(points - best).sum(axis=1),
            unit_space.sample(np.random.default_rng(1), 3),
        )

    found = search(set())
    np.testing.assert_array_equal(found[0], best)
    assert len({row.tobytes() for row in found}) == len(found)
    assert not any(np.array_equal(row, best) for row in search({best.tobytes()}))
    # Where the best may not run, it still goes to the best of those that may.
    edge = unit_space.encode([{"a": 15, "b": 23, "c": "y"}])[0]
    near_edge = search(set(), 15)
    np.testing.assert_array_equal(next(row for row in near_edge if row[0] >= edge[0]), edge)
    assert len(search(set(), 31))
