"""`auto` where options are spelled, or placed, otherwise than the numbers of the space.

And where keys are of several sizes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lsmtune.engines.catalogue import catalogue_defaults
from lsmtune.model.config import OptionValue
from lsmtune.model.distribution import Distribution
from lsmtune.model.goal import WeightedWorkload
from lsmtune.search.cost_models import amplification_ratios, draw_machine, seconds_of
from lsmtune.search.sampler import Problem
from lsmtune.search.starts import projected
from lsmtune.search.unit_space import make_unit_space
from lsmtune.testing.search import MIB, choice, make_searcher, number, space_of
from lsmtune.workloads.stated import make_workload

BUFFER = "write_buffer_size"
SPACE = space_of(choice("compression", "kNoCompression", "kZSTD"))


def problem(engine: str = "rocksdb") -> Problem:
    workload = make_workload("overwrite", {"num": 3_000_000, "value_bytes": 1000}, "test")
    workloads = [WeightedWorkload("overwrite", workload, 1.0)]
    return Problem(engine, workloads, catalogue_defaults(engine), 2**30, 4)


@pytest.mark.parametrize(
    ("engine", "value", "same"),
    [
        ("rocksdb", "16M", 16 * MIB),
        ("rocksdb", "16777216", 16 * MIB),
        ("rocksdb", "{nothing=known}", 4 * MIB),  # what the models take where nobody says it
        ("leveldb", "16M", 4 * MIB),  # LevelDB has no such suffix
    ],
)
def test_a_size_with_the_engines_own_suffix_is_that_size(
    engine: str, value: str, same: int
) -> None:
    """`options: {write_buffer_size: 16M}`, or a baseline of it, ended `tune` in a traceback."""
    about, unit_space = problem(engine), make_unit_space(SPACE)
    points = unit_space.sample(np.random.default_rng(0), 5)
    machines = [draw_machine(np.random.default_rng(1))]

    def seconds(size: OptionValue) -> np.ndarray:
        fixed = replace(about, defaults={**about.defaults, BUFFER: size})
        return seconds_of(fixed, unit_space, points, machines)

    def ratios(size: OptionValue) -> np.ndarray:
        baseline = replace(about, baseline={BUFFER: size})
        return amplification_ratios(baseline, unit_space, points, machines)

    np.testing.assert_array_equal(seconds(value), seconds(same))
    np.testing.assert_array_equal(ratios(value), ratios(same))


def test_choices_may_have_such_suffixes_too() -> None:
    space = space_of(choice(BUFFER, "16M", "128M"))
    unit_space = make_unit_space(space)
    points = unit_space.encode([{BUFFER: "16M"}, {BUFFER: "128M"}])
    machines = [draw_machine(np.random.default_rng(1))]
    small, large = amplification_ratios(problem(), unit_space, points, machines)
    assert large < small
    assert make_searcher("auto", space, problem=problem()).ask().values[BUFFER] in ("16M", "128M")


def test_a_record_has_the_mean_of_the_sizes_of_keys() -> None:
    """It had the largest: with keys of 16 to 1000 bytes, all data were twice as large."""
    about, unit_space = problem(), make_unit_space(SPACE)
    points = unit_space.sample(np.random.default_rng(0), 5)
    machines = [draw_machine(np.random.default_rng(1))]

    def seconds(**sizes: Any) -> np.ndarray:
        workload = replace(about.workloads[0].workload, value_bytes=100, **sizes)
        changed = replace(about, workloads=[WeightedWorkload("overwrite", workload, 1.0)])
        return seconds_of(changed, unit_space, points, machines)

    of_several = seconds(key_bytes=1000, key_sizes=Distribution.of("uniform", low=16, high=1000))
    np.testing.assert_allclose(of_several, seconds(key_bytes=508))


@pytest.mark.parametrize(
    ("more", "value", "nearest"),
    [
        ({"low": 8, "high": 256, "log": True, "step": 8}, 15, 16),
        ({"low": 8, "high": 256, "log": True, "step": 8}, 11, 8),
        ({"low": 8, "high": 256, "step": 8}, 21, 24),
        ({"low": 1, "high": 1000, "log": True, "bins": 4}, 12, 10),
        ({"low": 1, "high": 1000, "log": True, "bins": 4}, 5000, 1000),
        ({"low": 0.0, "high": 1.0, "step": 0.25, "integer": False}, 0.3, 0.25),
        ({"low": 0.5, "high": 1.5, "integer": False}, -1, 0.5),
        ({"low": 2, "high": 9}, 3.7, 4),
    ],
)
def test_a_preset_between_two_values_of_the_space_begins_at_the_nearer_one(
    more: dict[str, Any], value: float, nearest: float
) -> None:
    """15 MiB of an earlier winner in steps of 8 MiB became 8, and 12 of 1, 10, 100, 1000 a 100."""
    space = space_of(number("size", **more))
    found = projected(make_unit_space(space), {"size": value}, {})
    assert found == {"size": nearest}
    assert space.contains({"size": nearest})
