"""`auto` where options are spelled as the engine reads them, and not as numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lsmtune.engines.catalogue import catalogue_defaults
from lsmtune.model.config import OptionValue
from lsmtune.model.goal import WeightedWorkload
from lsmtune.search.cost_models import amplification_ratios, draw_constants, seconds_of
from lsmtune.search.sampler import Problem
from lsmtune.search.unit_space import make_unit_space
from lsmtune.testing.search import MIB, choice, make_searcher, space_of
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
    machines = [draw_constants(np.random.default_rng(1))]

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
    machines = [draw_constants(np.random.default_rng(1))]
    small, large = amplification_ratios(problem(), unit_space, points, machines)
    assert large < small
    assert make_searcher("auto", space, problem=problem()).ask().values[BUFFER] in ("16M", "128M")
