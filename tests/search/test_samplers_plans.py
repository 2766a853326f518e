"""Samplers that follow a plan, and what the plans are made of: lists, sequences."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import qmc

from lsmtune.search.grid import every_value, whole_space
from lsmtune.search.plans import SobolSampler
from lsmtune.search.sampler import SamplerContext, SpaceExhaustedError
from lsmtune.space.prior import Prior
from lsmtune.space.space import Space
from lsmtune.testing.search import (
    MAXIMIZE,
    MIB,
    NUMBERS,
    ONE,
    RICH,
    asked,
    choice,
    make_searcher,
    number,
    space_of,
    when,
)


@st.composite
def conditional_spaces(draw: st.DrawFn) -> Space:
    """Up to six choices, each of which may depend on up to two of those before it."""
    parameters = []
    for index in range(draw(st.integers(1, 6))):
        conditions: tuple = ()
        parents = (
            draw(st.lists(st.sampled_from(range(index)), max_size=2, unique=True)) if index else []
        )
        for parent in parents:
            held = draw(st.sampled_from([["a"], ["b"], ["a", "b"]]))
            conditions += when(f"p{parent}", *held)
        values = "abc"[: draw(st.integers(2, 3))]
        parameters.append(choice(f"p{index}", *values, conditions=conditions))
    return space_of(*parameters)


def brute_force(space: Space) -> set[frozenset]:
    """Every configuration, from the full product, less what is not active."""
    found = set()
    for values in itertools.product(*(p.choices for p in space.evaluation_order)):
        config: dict = {}
        for parameter, value in zip(space.evaluation_order, values, strict=True):
            if all(condition.holds(config) for condition in parameter.conditions):
                config[parameter.name] = value
        found.add(frozenset(config.items()))
    return found


@given(conditional_spaces())
@settings(max_examples=60)
def test_a_small_space_is_listed_with_every_configuration_once(space: Space) -> None:
    listed = [frozenset(config.items()) for config in whole_space(space, 10_000) or ()]
    assert len(listed) == len(set(listed))
    assert set(listed) == brute_force(space)
    assert whole_space(space, len(listed)) is not None
    assert whole_space(space, len(listed) - 1) is None


def test_every_value_of_a_parameter() -> None:
    assert every_value(number("n", 2, 8, step=3, specials=[(-1, None)]), 9) == [-1, 2, 5, 8]
    assert every_value(number("n", 4, 12, step=4, log=True), 9) == [4, 8, 12]
    assert every_value(number("n", 0.0, 0.3, step=0.1, integer=False), 9) == [0.0, 0.1, 0.2, 0.3]
    assert every_value(number("n", 1, 100, bins=3, log=True), 9) == [1, 10, 100]
    assert every_value(number("n", 0, 4, prior=Prior("normal", 0.0, 1.0)), 9) == [0, 1, 2, 3, 4]
    assert every_value(number("n", 0.0, 1.0, integer=False), 9) is None
    assert every_value(number("n", 0, 9), 9) is None
    assert whole_space(RICH, 10**9) is None


class TestGrid:
    def test_the_grid_is_the_product_of_its_values(self) -> None:
        space = space_of(
            number("size", MIB, 16 * MIB, log=True, step=MIB),
            number("count", 0, 10, specials=[(-1, 0.2)]),
            choice("share", 0.25, 0.5),
            choice("kind", "x", "y"),
            number("only_x", 0, 100, conditions=when("kind", "x")),
        )
        searcher = make_searcher("grid", space, given={"points": 3})
        configs = asked(searcher, 3 * 4 * 2 * (3 + 1))
        with pytest.raises(SpaceExhaustedError, match="each of the 96 configurations of the grid"):
            searcher.ask()
        assert {c["size"] for c in configs} == {MIB, 4 * MIB, 16 * MIB}
        assert {c["count"] for c in configs} == {-1, 0, 5, 10}
        assert {c["share"] for c in configs} == {0.25, 0.5}
        assert {c["only_x"] for c in configs if c["kind"] == "x"} == {0, 50, 100}
        assert all("only_x" not in c for c in configs if c["kind"] == "y")

    def test_of_a_grid_that_is_too_large_to_list_trials_are_a_sample(self) -> None:
        configs = asked(make_searcher("grid", RICH, given={"points": 9}), 60)
        for name in ("buffer_bytes", "threads", "cache_bytes", "ratio"):
            assert len({config[name] for config in configs}) >= 6

    def test_a_prior_spaces_its_values_by_quantiles(self) -> None:
        space = space_of(number("n", 0, 1000, prior=Prior("normal", 500.0, 50.0)))
        values = {c["n"] for c in asked(make_searcher("grid", space, given={"points": 5}), 5)}
        middle = sorted(float(v) for v in values)[1:-1]
        assert middle == pytest.approx([466, 500, 534], abs=1)

    def test_one_point_is_the_middle(self) -> None:
        assert asked(make_searcher("grid", ONE, given={"points": 1}), 1) == [{"only": 500}]

    def test_a_list_is_not_filled_up_with_other_configurations(self) -> None:
        searcher = make_searcher("grid", ONE, given={"points": 2})
        assert {c["only"] for c in asked(searcher, 2)} == {0, 1000}
        with pytest.raises(SpaceExhaustedError):
            searcher.ask()


class TestSobol:
    def points(self, seed: int, count: int) -> list[dict]:
        sampler = SobolSampler(SamplerContext(NUMBERS, seed, {}, MAXIMIZE))
        return [sampler.variables_at(place) for place in range(count)]

    def test_places_come_in_any_order(self) -> None:
        straight = self.points(3, 20)
        sampler = SobolSampler(SamplerContext(NUMBERS, 3, {}, MAXIMIZE))
        for place in (7, 19, 0, 1, 7, 2):
            assert sampler.variables_at(place) == straight[place]

    def test_a_coordinate_fills_its_range_evenly(self) -> None:
        # Of 64 points of a digital net in base 2, each of 64 equal intervals holds exactly one.
        found = sorted(int(point["a"] * 64) for point in self.points(3, 64))
        assert found == list(range(64))

    def test_it_is_more_even_than_chance(self) -> None:
        sobol = [[v / 101 for v in (p["a"] * 101, p["d"])] for p in self.points(3, 64)]
        drawn = [
            [v / 101 for v in (c["a"] * 101, c["d"])]
            for c in asked(make_searcher("random", NUMBERS), 64)
        ]
        assert qmc.discrepancy(sobol) < qmc.discrepancy(drawn)

    def test_what_is_refused_uses_up_a_place_and_no_trial(self) -> None:
        refused: list = []

        def accepts(values) -> str:
            if len(refused) < 3:
                refused.append(dict(values))
                return "no"
            return ""

        searcher = make_searcher("sobol", NUMBERS, accepts=accepts)
        first = searcher.ask()
        assert first.number == 0
        assert first.trial.system_attrs == {"lsmtune:place": 3}
        assert searcher.ask().trial.system_attrs == {"lsmtune:place": 4}


class TestManual:
    CONFIGS = ({"only": 5}, {"only": 900}, {"only": 5}, {"only": "7"})

    def test_the_list_comes_in_its_order_and_each_once(self) -> None:
        searcher = make_searcher("manual", ONE, given={"configs": list(self.CONFIGS)})
        assert asked(searcher, 3) == [{"only": 5}, {"only": 900}, {"only": 7}]
        with pytest.raises(SpaceExhaustedError, match="each of the 4 configurations of the list"):
            searcher.ask()

    def test_a_later_session_tries_what_is_new_in_its_list(self) -> None:
        """It went on after the last place of the list before, and said that all was tried."""
        first = make_searcher("manual", ONE, given={"configs": [{"only": 5}, {"only": 900}]})
        trials = [first.ask().trial for _ in range(2)]
        now = [{"only": 900}, {"only": 7}, {"only": 8}]
        second = make_searcher("manual", ONE, given={"configs": now})
        second.restore(trials)
        assert asked(second, 2) == [{"only": 7}, {"only": 8}]
        with pytest.raises(SpaceExhaustedError, match="each of the 3 configurations of the list"):
            second.ask()

    def test_sizes_are_read_as_everywhere(self) -> None:
        space = space_of(number("size", MIB, 16 * MIB, log=True, step=MIB))
        searcher = make_searcher("manual", space, given={"configs": [{"size": "4MiB"}]})
        assert asked(searcher, 1) == [{"size": 4 * MIB}]
