from __future__ import annotations

from collections import Counter

import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import IntDistribution
from optuna.samplers import RandomSampler

from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue
from lsmtune.space.parameter import Parameter, make_categorical, make_number
from lsmtune.space.range import Range
from lsmtune.space.space import Space, make_space
from optuna_draws import draws

optuna.logging.set_verbosity(optuna.logging.ERROR)


def drawn(space: Space, count: int, seed: int = 0) -> list[dict[str, OptionValue]]:
    study = optuna.create_study(sampler=RandomSampler(seed=seed))
    return [space.suggest(draws(space, study.ask())) for _ in range(count)]


def number(name: str = "a", low: float = 1, high: float = 10, **rest: object) -> Parameter:
    specials = rest.pop("specials", ())
    return make_number(name, Range(low, high, **rest), specials=specials)  # type: ignore[arg-type]


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 2**20), st.integers(0, 2**32 - 1))
def test_log_with_step_gives_multiples_of_the_step(
    low: int, width: int, step: int, seed: int
) -> None:
    parameter = number(low=low * step, high=(low + width) * step, log=True, step=step)
    for options in drawn(make_space([parameter]), 5, seed):
        value = options["a"]
        assert isinstance(value, int)
        assert value % step == 0
        assert parameter.contains(value)


def test_log_with_step_reaches_both_bounds_on_a_log_scale() -> None:
    parameter = number(low=2**20, high=64 * 2**20, log=True, step=2**20)
    assert parameter.variable == "a/1048576"
    assert parameter.distributions() == {"a/1048576": IntDistribution(1, 64, log=True)}
    values = [int(options["a"]) // 2**20 for options in drawn(make_space([parameter]), 500)]
    assert {min(values), max(values)} == {1, 64}
    # Half of the draws lie below the geometric mean, 8, where a linear scale would put an eighth.
    assert 0.4 < sum(value < 8 for value in values) / len(values) < 0.6


def test_linear_steps_start_at_low_and_reach_high() -> None:
    parameter = number(low=3, high=15, step=4)
    values = {options["a"] for options in drawn(make_space([parameter]), 100)}
    assert values == {3, 7, 11, 15}


def test_float_steps_carry_no_rounding() -> None:
    parameter = number(low=0.1, high=0.9, step=0.1, integer=False)
    values = {options["a"] for options in drawn(make_space([parameter]), 200)}
    assert values == {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}


def test_special_values_are_drawn_with_their_weights() -> None:
    parameter = number(low=100, high=1000, specials=[(-1, 0.3), (0, 0.1)])
    assert set(parameter.distributions()) == {"a", "a?"}
    count = 4000
    values = Counter(options["a"] for options in drawn(make_space([parameter]), count))
    # Within four standard deviations of a binomial share.
    assert abs(values[-1] / count - 0.3) < 4 * (0.3 * 0.7 / count) ** 0.5
    assert abs(values[0] / count - 0.1) < 4 * (0.1 * 0.9 / count) ** 0.5
    assert all(value in (-1, 0) or 100 <= int(value) <= 1000 for value in values)


def test_special_values_without_weights_share_a_fifth() -> None:
    parameter = number(specials=[(-1, None), (0, None)])
    assert [special.weight for special in parameter.specials] == [0.1, 0.1]


def test_a_special_value_leaves_the_range_out_of_the_trial() -> None:
    space = make_space([number(low=100, high=1000, specials=[(-1, 0.5)])])
    study = optuna.create_study(sampler=RandomSampler(seed=1))
    trials = [study.ask() for _ in range(50)]
    for trial in trials:
        options = space.suggest(draws(space, trial))
        assert ("a" in trial.params) == (options["a"] != -1)


PARAMETERS = [
    number("i", 1, 9, step=2),
    number("l", 4, 400, log=True, step=4, specials=[(-1, 0.2), (0, 0.2)]),
    number("f", 0.5, 2.5, integer=False),
    make_categorical("c", ["no", "snappy", 4096, True]),
]


@given(st.integers(0, 2**32 - 1))
def test_variables_of_turn_back_into_the_same_options(seed: int) -> None:
    space = make_space(PARAMETERS)
    options = drawn(space, 1, seed)[0]
    assert space.contains(options)
    study = optuna.create_study(sampler=RandomSampler(seed=0))
    study.enqueue_trial(space.variables_of(options))
    assert space.suggest(draws(space, study.ask())) == options


def test_contains_refuses_what_a_search_cannot_reach() -> None:
    space = make_space(PARAMETERS)
    good: dict[str, OptionValue] = {"i": 3, "l": 8, "f": 1.0, "c": "no"}
    assert space.contains(good)
    wrong: list[dict[str, OptionValue]] = [
        {"i": 4},
        {"i": "3"},
        {"i": True},
        {"l": 6},
        {"l": -2},
        {"f": 2.6},
        {"c": "off"},
    ]
    assert not any(space.contains(good | change) for change in wrong)
    assert not space.contains({"i": 3})
    assert not space.contains(good | {"z": 1})
    with pytest.raises(ValueError, match="not in the space"):
        space.variables_of(good | {"i": 4})


@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        (Range(5, 5), "a.low: found 5; allowed: less than high (5)"),
        (Range(0, 5, log=True), "a.low: found 0; allowed: more than 0 on a log scale"),
        (Range(1, 10, step=4), "allowed: 9 is the last value reached"),
        (Range(0.1, 1.0, step=0.4, integer=False), "allowed: 0.9 is the last value reached"),
        (Range(1, 2**60), "a.high: found 1152921504606846976"),
        (Range(1, float("inf"), integer=False), "a.high: found inf"),
        (Range(0, 10**400), "a.high: found 1000"),
        (Range(1, 10, step=10**400), "allowed: 1 is the last value reached"),
        (Range(-1e308, 1e308, integer=False), "allowed: bounds with a finite distance"),
        (Range(1e-300, 1e300, log=True, integer=False), "allowed: bounds with a finite ratio"),
        (Range(1, 10, step=0), "a.step: found 0; allowed: more than 0"),
        (Range(3, 8, step=2, log=True), "the first one is 4"),
        (Range(0.0, 1.0, step=1e-30, integer=False), "a.step: found 1e-30; allowed: at most"),
        (Range(0.0, 1e30, step=1.0, integer=False), "a.step: found 1.0; allowed: at most"),
    ],
)
def test_bad_ranges(numbers: Range, told: str) -> None:
    with pytest.raises(InputError) as caught:
        make_number("a", numbers)
    assert told in str(caught.value)


@given(st.integers(-50, 50), st.integers(0, 60), st.integers(1, 12))
def test_a_step_is_refused_exactly_when_high_is_out_of_reach(
    low: int, width: int, step: int
) -> None:
    reaches = width > 0 and width % step == 0
    try:
        make_number("a", Range(low, low + width, step=step))
    except InputError:
        assert not reaches
    else:
        assert reaches


@pytest.mark.parametrize(
    "choices",
    [
        ["a", "a"],
        [1, True],
        [1, 1.0],
        ["true", True],
        [8, "8"],
        ["bloomfilter:10", "bloomfilter:10:false"],
        ["ribbonfilter:10", "ribbonfilter:10:0"],
        ["ribbonfilter:10:2", "{id=ribbonfilter:10:2;bloom_before_level=2;}"],
    ],
)
def test_choices_that_an_engine_reads_alike_are_repeats(choices: list[OptionValue]) -> None:
    with pytest.raises(InputError, match=r"space\.c\.choices\[1\]: the same choice twice"):
        make_categorical("c", choices)


def test_a_baseline_as_rocksdb_writes_its_filter_lies_in_the_space() -> None:
    """Of `ribbonfilter:10` an OPTIONS file has `ribbonfilter:10:0`, and was outside of it."""
    policy = make_categorical("p", ["nullptr", "bloomfilter:10", "ribbonfilter:10"])
    assert policy.spelled("ribbonfilter:10:0") == "ribbonfilter:10"
    for other in ("ribbonfilter:10:1", "ribbonfilter:10:-1", "ribbonfilter:1", "bloomfilter:10:0"):
        assert not policy.contains(other)


def test_a_name_that_could_be_an_optuna_variable_is_refused() -> None:
    with pytest.raises(InputError, match="not an option's name"):
        make_categorical("a?", [1, 2])
