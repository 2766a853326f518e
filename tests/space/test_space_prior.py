"""Priors and bins: values and Optuna variables are inverses, and draws follow the prior."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import optuna
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.samplers import RandomSampler
from scipy import stats

from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue
from lsmtune.space.parameter import Condition, Parameter, make_categorical, make_number
from lsmtune.space.prior import Prior, PriorScale
from lsmtune.space.range import Range
from lsmtune.space.space import make_space
from lsmtune.study.ask_and_tell import Search
from optuna_draws import draws

optuna.logging.set_verbosity(optuna.logging.ERROR)


def suggested(parameter: Parameter, variables: dict[str, OptionValue]) -> OptionValue:
    """What the parameter suggests when Optuna draws `variables`."""
    study = optuna.create_study(sampler=RandomSampler(seed=0))
    study.enqueue_trial(variables)
    return parameter.suggest(draws(parameter, study.ask()))


def drawn(parameter: Parameter, count: int) -> list[OptionValue]:
    study = optuna.create_study(sampler=RandomSampler(seed=1))
    return [parameter.suggest(draws(parameter, study.ask())) for _ in range(count)]


def with_prior(numbers: Range, prior: Prior, **rest: object) -> Parameter:
    return make_number("a", numbers, prior=prior, **rest)  # type: ignore[arg-type]


def normal(mean: float, sd: float) -> Prior:
    return Prior("normal", mean, sd).check()


PRIORS = st.one_of(
    st.builds(normal, st.floats(-100, 200), st.floats(5, 200)),
    st.builds(Prior, st.just("lognormal"), st.floats(-1, 6), st.floats(0.2, 4)),
    st.builds(Prior, st.just("beta"), alpha=st.floats(0.3, 8), beta=st.floats(0.3, 8)),
)
RANGES = st.one_of(
    st.builds(lambda low, width: Range(low, low + width), st.integers(0, 90), st.integers(1, 100)),
    st.builds(
        lambda low, width, step: Range(low, low + width * step, step=step),
        st.integers(0, 90),
        st.integers(1, 50),
        st.integers(1, 9),
    ),
    st.builds(
        lambda low, width: Range(low, low + width, integer=False),
        st.floats(0, 90),
        st.floats(0.5, 100),
    ),
    st.builds(
        lambda low, width: Range(low / 10, low / 10 + width / 4, step=0.25, integer=False),
        st.integers(0, 90),
        st.integers(1, 100),
    ),
    st.builds(
        lambda low, width, log, integer, bins: Range(
            low, low + width, log=log, integer=integer, bins=bins
        ),
        st.integers(1, 90),
        st.integers(1, 1000),
        st.booleans(),
        st.booleans(),
        st.integers(2, 60),
    ),
)


@given(RANGES, st.none() | PRIORS, st.booleans(), st.floats(0, 1), st.floats(0, 1))
def test_variables_and_values_are_inverses(
    numbers: Range, prior: Prior | None, special: bool, selector: float, place: float
) -> None:
    specials: list[tuple[int, float | None]] = [(-1, 0.25)] if special else []
    try:
        parameter = make_number("a", numbers, specials=specials, prior=prior)
    except InputError:
        assume(prior is None)  # some priors have nothing within some ranges
    own = parameter.distributions()[parameter.variable]
    assert isinstance(own, IntDistribution | FloatDistribution)
    steps = place * (own.high - own.low) / (own.step or 1)
    drawn_value = own.low + (own.step * round(steps) if own.step else steps)
    variables: dict[str, OptionValue] = {parameter.variable: drawn_value}
    if parameter.selector is not None:
        variables[parameter.selector] = selector
    value = suggested(parameter, variables)
    assert parameter.contains(value)
    assert isinstance(value, int if numbers.integer else float)
    again = parameter.variables_of(value)
    assert suggested(parameter, again) == value
    assert parameter.variables_of(suggested(parameter, again)) == again
    assert again.keys() <= parameter.distributions().keys()


@given(RANGES, PRIORS, st.floats(0, 1), st.floats(0, 1))
def test_a_higher_quantile_gives_no_lower_number(
    numbers: Range, prior: Prior, one: float, other: float
) -> None:
    try:
        parameter = with_prior(numbers, prior)
    except InputError:
        assume(False)
    low, high = (suggested(parameter, {"a~": q}) for q in sorted((one, other)))
    assert float(low) <= float(high)
    assert numbers.low <= float(low)
    assert float(high) <= numbers.high


# Kolmogorov-Smirnov at 2,000 draws: 0.043 is passed by chance once in a thousand seeds.
def test_draws_follow_a_truncated_normal() -> None:
    parameter = with_prior(Range(0.0, 100.0, integer=False), normal(30, 40))
    values = [float(value) for value in drawn(parameter, 2000)]
    truncated = stats.truncnorm(-30 / 40, 70 / 40, loc=30, scale=40)
    assert stats.kstest(values, truncated.cdf).statistic < 0.043


def test_draws_follow_a_truncated_lognormal() -> None:
    parameter = with_prior(Range(1.0, 50.0, integer=False), Prior("lognormal", 2.0, 0.8))
    values = [math.log(float(value)) for value in drawn(parameter, 2000)]
    truncated = stats.truncnorm(-2 / 0.8, (math.log(50) - 2) / 0.8, loc=2, scale=0.8)
    assert stats.kstest(values, truncated.cdf).statistic < 0.043


def test_draws_follow_a_beta_on_the_range() -> None:
    parameter = with_prior(Range(10.0, 20.0, integer=False), Prior("beta", alpha=2.0, beta=5.0))
    values = [float(value) for value in drawn(parameter, 2000)]
    assert stats.kstest(values, stats.beta(2, 5, loc=10, scale=10).cdf).statistic < 0.043


def test_integers_have_the_probability_of_their_cells() -> None:
    parameter = with_prior(Range(1, 12), normal(8, 2))
    count = 4000
    found = Counter(drawn(parameter, count))
    truncated = stats.truncnorm((0.5 - 8) / 2, (12.5 - 8) / 2, loc=8, scale=2)
    for value in range(1, 13):
        share = truncated.cdf(value + 0.5) - truncated.cdf(value - 0.5)
        # Within four standard deviations of a binomial share.
        assert abs(found[value] / count - share) < 4 * (share * (1 - share) / count) ** 0.5 + 1e-3


@pytest.mark.parametrize("mean", [-200, 260])
def test_a_prior_far_outside_still_orders_the_range(mean: float) -> None:
    parameter = with_prior(Range(0, 100), normal(mean, 20))
    found = Counter(drawn(parameter, 300))
    nearest = 0 if mean < 0 else 100
    assert found.most_common(1)[0][0] == nearest


def test_a_number_too_improbable_for_a_double_is_not_in_the_space() -> None:
    parameter = with_prior(Range(1, 1000), normal(8, 2))
    assert parameter.describe() == "1 to 1000, where normal(mean 8, sd 2) reaches 1 to 25"
    assert parameter.contains(25)
    assert not parameter.contains(26)
    with pytest.raises(InputError, match="found 500; allowed: 1 to 1000, where normal"):
        with_prior(Range(1, 1000), normal(8, 2), default=500)


def test_the_variable_of_a_prior_is_its_quantile() -> None:
    parameter = with_prior(Range(1, 15), normal(8, 2), specials=[(-1, 0.2)])
    assert parameter.distributions() == {
        "a~": FloatDistribution(0.0, 1.0),
        "a?": FloatDistribution(0.0, 1.0),
    }
    assert parameter.variables_of(8)["a~"] == pytest.approx(0.5)
    low, high = PriorScale(Range(1, 15), normal(8, 2)).share_of(8)
    for quantile, value in ((low, 8), (high - 1e-12, 8), (low - 1e-12, 7), (high, 9)):
        assert suggested(parameter, {"a?": 0.9, "a~": quantile}) == value
    assert parameter.variables_of(-1) == {"a?": 0.1}


def test_bins_are_evenly_spaced_on_the_scale() -> None:
    linear = make_number("a", Range(1, 10, bins=4))
    assert linear.distributions() == {"a#4": IntDistribution(0, 3)}
    assert set(drawn(linear, 100)) == {1, 4, 7, 10}
    log = make_number("a", Range(1, 1000, log=True, bins=4))
    assert set(drawn(log, 100)) == {1, 10, 100, 1000}
    floats = make_number("a", Range(0.1, 0.9, integer=False, bins=9))
    assert set(drawn(floats, 200)) == {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}


def test_bins_of_a_narrow_range_are_fewer() -> None:
    parameter = make_number("a", Range(1, 8, log=True, bins=50))
    assert parameter.distributions() == {"a#50": IntDistribution(0, 7)}
    assert parameter.describe() == "1, 2, 3, 4, 5, 6, 7, 8"
    assert not parameter.contains(9)
    wide = make_number("a", Range(1, 1000, log=True, bins=50))
    assert wide.describe().endswith("values from 1 to 1000, evenly spaced on a log scale")


@given(
    st.integers(1, 2**53 - 1),
    st.integers(1, 2**53),
    st.booleans(),
    st.booleans(),
    st.integers(2, 300),
)
def test_bins_begin_at_low_end_at_high_and_ascend(
    low: int, width: int, log: bool, integer: bool, bins: int
) -> None:
    high = min(low + width, 2**53)
    values = Range(low, high, log=log, integer=integer, bins=bins).binned
    assert (values[0], values[-1]) == (low, high)
    assert 2 <= len(values) <= bins
    assert all(one < other for one, other in itertools.pairwise(values))
    if not log and integer and 4 * bins <= high - low and high <= 2**40:
        gaps = [other - one for one, other in itertools.pairwise(values)]
        assert max(gaps) - min(gaps) <= 2


def test_conditions_on_parameters_with_priors_and_bins() -> None:
    space = make_space(
        [
            with_prior(Range(1, 15), normal(8, 2), conditions=[Condition("b", (4, 7))]),
            make_number("b", Range(1, 10, bins=4)),
            make_categorical("c", ["x", "y"], conditions=[Condition("a", (8,))]),
        ]
    )
    study = optuna.create_study(sampler=RandomSampler(seed=3))
    seen = set()
    for _ in range(200):
        options = space.suggest(draws(space, study.ask()))
        assert ("a" in options) == (options["b"] in (4, 7))
        assert ("c" in options) == (options.get("a") == 8)
        assert space.contains(options)
        repeat = optuna.create_study(sampler=RandomSampler(seed=0))
        repeat.enqueue_trial(space.variables_of(options))
        assert space.suggest(draws(space, repeat.ask())) == options
        seen.add(frozenset(options))
    assert len(seen) == 3


def test_a_condition_on_no_bin_is_refused() -> None:
    bins = make_number("b", Range(1, 10, bins=4))
    other = make_number("o", Range(1, 3), conditions=[Condition("b", (5,))])
    with pytest.raises(InputError, match=r"found 5; allowed: 1, 4, 7, 10 \(the values of b\)"):
        make_space([bins, other])


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"distribution": "norml"}, "prior.distribution: found 'norml'"),
        ({"distribution": "norml"}, "did you mean normal?"),
        ({"distribution": "normal", "mean": 8}, "prior.sd: is missing"),
        ({"distribution": "normal", "mean": 8, "sd": 0}, "prior.sd: found 0"),
        ({"distribution": "normal", "mean": math.nan, "sd": 1}, "prior.mean: found nan"),
        ({"distribution": "beta", "alpha": 1, "beta": -1}, "prior.beta: found -1"),
        ({"distribution": "beta", "mean": 1}, "beta has no mean; allowed: alpha and beta"),
        ({"distribution": "normal", "alpha": 1}, "normal has no alpha; allowed: mean and sd"),
    ],
)
def test_bad_priors(given: dict[str, object], told: str) -> None:
    with pytest.raises(InputError) as caught:
        Search({"a": {"type": "int", "low": 1, "high": 9, "prior": given}})
    assert str(caught.value).startswith("Search: space.a.prior.")
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("numbers", "prior", "told"),
    [
        (Range(1, 9, log=True), normal(3, 1), "takes the place of the log scale"),
        (Range(-1, 9), Prior("lognormal", 1.0, 1.0), "no numbers below 0, and low is -1"),
        (Range(1000, 2000), normal(0, 1), "has nothing within 1000 to 2000"),
    ],
)
def test_priors_that_do_not_fit_the_range(numbers: Range, prior: Prior, told: str) -> None:
    with pytest.raises(InputError) as caught:
        with_prior(numbers, prior)
    assert caught.value.field == "space.a.prior"
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        (Range(1, 9, bins=1), "a.bins: found 1; allowed: 2 to 10000"),
        (Range(1, 9, bins=10_001), "a.bins: found 10001"),
        (Range(1, 9, step=2, bins=3), "bins and step exclude each other"),
    ],
)
def test_bad_bins(numbers: Range, told: str) -> None:
    with pytest.raises(InputError) as caught:
        make_number("a", numbers)
    assert told in str(caught.value)
