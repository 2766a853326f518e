"""Means of size distributions against their closed forms and against draws."""

from __future__ import annotations

from random import Random
from statistics import fmean

import pytest

from lsmtune.errors import InputError
from lsmtune.model.distribution import (
    KEY_DISTRIBUTIONS,
    Distribution,
    distribution_document,
    key_distribution,
    size_distribution,
)
from lsmtune.workloads.distributions import (
    largest_size,
    mean_size,
    size_chooser,
    smallest_size,
)

CASES = [
    Distribution.of("constant", size=7),
    Distribution.of("uniform", low=3, high=10),
    Distribution.of("zipfian", low=1, high=1000, theta=0.99),
    Distribution.of("zipfian", low=5, high=20_000, theta=0.5),
    Distribution.of("normal", mean=50.0, sd=20.0, low=30, high=200),
    Distribution.of("pareto", theta=0.0, k=0.2615, sigma=25.45, low=10, high=1024),
    Distribution.of("pareto", theta=0.0, k=0.0, sigma=10.0, low=1, high=100),
    Distribution.of("table", sizes=((10, 1.0), (30, 3.0))),
    Distribution.of(
        "row", fields=3, names_bytes=20, length=Distribution.of("uniform", low=0, high=10)
    ),
    Distribution.of("pareto", theta=0.0, k=-0.5, sigma=50.0, low=90, high=200),  # ends at 100
    # One draw of the whole law in 10^17: sizes were drawn until one was within.
    Distribution.of("pareto", theta=0.0, k=0.0, sigma=1.0, low=40, high=60),
    Distribution.of("pareto", theta=0.0, k=0.0, sigma=1.0, low=4000, high=4000),
    # One draw of the whole law in a hundred million.
    Distribution.of("normal", mean=100.0, sd=1e9, low=90, high=110),
]


@pytest.mark.parametrize("sizes", CASES, ids=lambda sizes: sizes.name)
def test_the_mean_is_that_of_many_draws(sizes: Distribution) -> None:
    draw = size_chooser(sizes, Random(1), "test")
    drawn = [draw() for _ in range(20_000)]
    assert smallest_size(sizes) <= min(drawn)
    assert max(drawn) <= largest_size(sizes)
    # Rounding down costs a Pareto size half a byte.
    assert fmean(drawn) == pytest.approx(mean_size(sizes), rel=0.04, abs=0.6)


@pytest.mark.parametrize(
    ("sizes", "mean"),
    [
        (CASES[0], 7.0),
        (CASES[1], 6.5),
        (CASES[7], 25.0),
        (CASES[8], 20 + 3 * 13.0),
        # An untruncated exponential of mean 10, from 1 on.
        (Distribution.of("pareto", theta=0.0, k=0.0, sigma=10.0, low=0, high=10_000), 10.0),
        (Distribution.of("zipfian", low=1, high=2, theta=2.0), (1 + 0.5) / 1.25),
    ],
)
def test_means_of_closed_form(sizes: Distribution, mean: float) -> None:
    assert mean_size(sizes) == pytest.approx(mean, rel=1e-3)


@pytest.mark.parametrize("sizes", CASES, ids=lambda sizes: sizes.name)
def test_a_distribution_is_read_from_its_document(sizes: Distribution) -> None:
    assert size_distribution(distribution_document(sizes), "sizes") == sizes


def test_short_forms() -> None:
    assert size_distribution(100, "sizes") == Distribution.of("constant", size=100)
    assert size_distribution("4KiB", "sizes") == Distribution.of("constant", size=4096)
    assert key_distribution("uniform", "keys") == Distribution("uniform")
    assert set(KEY_DISTRIBUTIONS) >= {"uniform", "ranges", "power"}


@pytest.mark.parametrize(
    ("stated", "told"),
    [
        ({"distribution": "zipfain", "theta": 1}, r"^k.distribution: .*did you mean zipfian\?"),
        ({"distribution": "zipfian"}, "^k.theta: missing"),
        ({"distribution": "zipfian", "theta": 1}, "^k.theta: found 1; allowed: .* not 1"),
        ({"distribution": "zipfian", "theta": 0.9, "skew": 1}, "^k.skew: unknown parameter"),
        ({"distribution": "hotspot", "hot_data": 2, "hot_operations": 1}, "^k.hot_data: found 2"),
        ("zipfian", "^k.theta: missing"),
        ([1], r"^k: found \[1\]"),
        (
            {"distribution": "ranges", "ranges": 3, "a": 1, "b": 1, "c": 0, "d": 0, "key_a": 1},
            "key_b",
        ),
        # The driver refused each of these, run by run.
        ({"distribution": "hotspot", "hot_data": 0, "hot_operations": 1}, "^k.hot_data: found 0"),
        ({"distribution": "zipfian", "theta": 11}, "^k.theta: found 11; allowed: .* at most 10"),
        ({"distribution": "latest", "theta": 1.0000001}, "^k.theta: found 1.0000001"),
        ({"distribution": "power", "a": 1.5, "b": 1}, "^k.a: found 1.5; allowed: .* at most 1$"),
        (
            {"distribution": "ranges", "ranges": 2**20 + 1, "a": 1, "b": 1, "c": 0, "d": 0},
            "^k.ranges: found 1048577; allowed: a whole number from 1 to 1048576",
        ),
        (
            {"distribution": "ranges", "ranges": 3, "a": 0, "b": 1, "c": -1, "d": 0},
            "^k.a: no range has a share above 0; found 0.0",
        ),
        (
            {"distribution": "ranges", "ranges": 1000, "a": 1, "b": 1, "c": 0, "d": 0},
            "^k.a: the share of some range is endless; found 1.0",
        ),
        (
            {"distribution": "ranges", "ranges": 1000, "a": 1, "b": -40, "c": 0, "d": 0},
            "^k.a: no range has a share above 0; found 1.0",
        ),
        (
            {"distribution": "ranges", "ranges": 3, "a": 1, "b": 1, "c": 0, "d": 0}
            | {"key_a": 0.5, "key_b": 0},
            "^k.key_b: found 0",
        ),
    ],
)
def test_what_is_no_distribution_of_keys(stated: object, told: str) -> None:
    with pytest.raises(InputError, match=told):
        key_distribution(stated, "k")


@pytest.mark.parametrize(
    ("stated", "told"),
    [
        ({"distribution": "uniform", "low": 9, "high": 3}, "^s.high: found 3; allowed: at least"),
        ({"distribution": "table", "sizes": []}, "^s.sizes: "),
        ({"distribution": "table", "sizes": [[1, 0]]}, r"^s.sizes\[0\]\[1\]: found 0"),
        # Whose sum is no number: the mean of the sizes ended in a traceback.
        (
            {"distribution": "table", "sizes": [[1, 1e308], [2, 1e308]]},
            r"^s.sizes\[0\]\[1\]: found 1e\+308; allowed: a number above 0, at most 1e\+100",
        ),
        ({"distribution": "normal", "mean": 5, "sd": 1, "low": 9, "high": 10}, "s.mean: found 5"),
        # The last size of this law is just below 50: an export drew on and on.
        (
            {"distribution": "pareto", "theta": 40, "k": -1, "sigma": 10, "low": 50, "high": 60},
            "^s.low: no size from low to high is ever drawn; found 50; allowed: below .*, 50$",
        ),
        (
            {"distribution": "pareto", "theta": 0, "k": 0, "sigma": 1, "low": 900, "high": 999},
            "^s.low: no size .*; found 900; allowed: nearer to theta",
        ),
        ("4K", "s: found '4K'.*did you mean 4KiB"),
        # `found 'unifrom'; allowed: 0 to 1073741824 bytes`, and `found 'None'`.
        ("unifrom", "^s.distribution: found 'unifrom'; allowed: constant, .*did you mean uniform"),
        ({"low": 1, "high": 9}, "^s.distribution: missing; allowed: constant, uniform"),
        # The driver refused these, run by run.
        (
            {"distribution": "row", "fields": 10_001, "names_bytes": 1, "length": 9},
            "^s.fields: found 10001; allowed: a whole number from 1 to 10000",
        ),
        (
            {"distribution": "row", "fields": 1, "names_bytes": 1}
            | {"length": {"distribution": "row", "fields": 1, "names_bytes": 1, "length": 9}},
            "^s.length.distribution: found 'row'; allowed: constant, uniform",
        ),
    ],
)
def test_what_is_no_distribution_of_sizes(stated: object, told: str) -> None:
    with pytest.raises(InputError, match=told):
        size_distribution(stated, "s")
