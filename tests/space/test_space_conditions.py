from __future__ import annotations

import itertools

import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.samplers import RandomSampler

from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue
from lsmtune.space.parameter import Condition, Parameter, make_categorical, make_number
from lsmtune.space.range import Range
from lsmtune.space.space import make_space
from optuna_draws import draws

optuna.logging.set_verbosity(optuna.logging.ERROR)

FACTORY = make_categorical("factory", ["skiplist", "hash", "vector"])
BUCKETS = make_number("buckets", Range(1, 9), conditions=[Condition("factory", ("hash", "vector"))])
# Alphabetically before its parents: the order of evaluation is not that of names alone.
AHEAD = make_categorical("ahead", ["x", "y"], conditions=[Condition("buckets", (1, 2, 3))])


def test_inactive_parameters_are_absent_and_so_are_their_dependants() -> None:
    space = make_space([AHEAD, BUCKETS, FACTORY])
    study = optuna.create_study(sampler=RandomSampler(seed=3))
    seen = set()
    for _ in range(200):
        trial = study.ask()
        options = space.suggest(draws(space, trial))
        assert ("buckets" in options) == (options["factory"] != "skiplist")
        assert ("ahead" in options) == (options.get("buckets") in (1, 2, 3))
        assert options.keys() == trial.params.keys()
        assert space.contains(options)
        seen.add(frozenset(options))
    assert len(seen) == 3


@given(st.integers(0, 2**32 - 1))
def test_the_order_of_the_file_changes_no_draw(seed: int) -> None:
    found = []
    for order in itertools.permutations([AHEAD, BUCKETS, FACTORY]):
        study = optuna.create_study(sampler=RandomSampler(seed=seed))
        space = make_space(order)
        found.append([space.suggest(draws(space, study.ask())) for _ in range(3)])
        assert [p.name for p in space.evaluation_order] == ["factory", "buckets", "ahead"]
        assert space.parameters == order
    assert all(each == found[0] for each in found)


def test_an_inactive_value_is_not_in_the_space() -> None:
    space = make_space([FACTORY, BUCKETS])
    assert space.contains({"factory": "skiplist"})
    assert not space.contains({"factory": "skiplist", "buckets": 3})
    assert not space.contains({"factory": "hash"})


def conditional(name: str, parent: str, *values: OptionValue) -> Parameter:
    return make_number(name, Range(1, 9), conditions=[Condition(parent, values)])


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ([conditional("a", "a", 1)], "space.a.when.a: a parameter cannot depend on itself"),
        ([conditional("a", "factori", 1), FACTORY], "did you mean factory?"),
        ([conditional("a", "factory", "hush"), FACTORY], "did you mean hash?"),
        ([conditional("a", "b", 10), conditional("b", "c", 1)], "(the values of b)"),
        (
            [conditional("a", "b", 1), conditional("b", "a", 1)],
            "space.a.when: conditions in a circle: a -> b -> a",
        ),
        (
            [conditional("a", "b", 1), conditional("b", "c", 1), conditional("c", "b", 1)],
            "space.b.when: conditions in a circle: b -> c -> b",
        ),
        ([], "space: has no parameters"),
    ],
)
def test_conditions_that_cannot_be(parameters: list[Parameter], told: str) -> None:
    with pytest.raises(InputError) as caught:
        make_space(parameters)
    assert told in str(caught.value)
