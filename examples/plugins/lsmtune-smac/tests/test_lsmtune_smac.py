"""SMAC through its library: the space in its terms, silence, sameness in another process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import lsmtune
import lsmtune_smac
from lsmtune.errors import InputError
from lsmtune.search.unit_space import make_unit_space
from lsmtune.testing.samplers import SamplerSuite
from lsmtune.testing.search import (
    NUMBERS,
    RICH,
    TINY,
    asked,
    choice,
    make_searcher,
    number,
    space_of,
    when,
)
from lsmtune_smac.library import SmacSpace

SETTINGS = {"startup_trials": 6, "retrain_after": 3, "challengers": 50, "local_searches": 3}


class TestSmac(SamplerSuite):
    name = "smac"
    settings: ClassVar = {**SETTINGS, "challengers": 200, "local_searches": 6, "retrain_after": 6}
    # It takes long, and its history is that of `forest` and `gp`.
    trials, learning_trials, seeds, bad_ends = 12, 24, (1,), ("failed", "over a limit")


def test_more_proposals_than_local_searches_are_refused() -> None:
    with pytest.raises(InputError, match=r"local_searches: found 2; allowed: at least .*\(8\)"):
        make_searcher("smac", NUMBERS, given={"local_searches": 2})


MIXED = space_of(
    number("level", 1, 22, specials=[(32767, 0.3), (-1, 0.1)]),
    number("special_only", 1, 64, log=True, conditions=when("level", 32767, -1)),
    number("number_only", 1, 64, conditions=when("level", 5, 6)),
    number("either", 0, 9, conditions=when("level", -1, 7)),
)


@pytest.mark.parametrize("space", [RICH, NUMBERS, TINY, MIXED], ids=("rich", "num", "tiny", "mix"))
def test_points_and_configurations_are_the_same(space: object) -> None:
    unit_space = make_unit_space(space)  # type: ignore[arg-type]
    of_smac = SmacSpace(unit_space)
    for point in unit_space.sample(np.random.default_rng(0), 60):
        configuration = of_smac.configuration(point)
        configuration.check_valid_configuration()
        np.testing.assert_array_equal(of_smac.point(configuration), point)
    of_smac.configspace.seed(1)
    for configuration in of_smac.configspace.sample_configuration(60):
        point = of_smac.point(configuration)[np.newaxis]
        np.testing.assert_array_equal(unit_space.complete(np.nan_to_num(point, nan=0.5)), point)


def test_conditions_are_known_to_smac() -> None:
    unit_space = make_unit_space(MIXED)
    of_smac = SmacSpace(unit_space)
    configspace = of_smac.configspace
    conditional = {name for name in configspace if configspace.parents_of[name]}
    names = {f"v{unit_space.position[name]}" for name in ("level", "special_only", "number_only")}
    assert conditional == names


SCRIPT = """
from lsmtune.testing.search import RICH, asked, make_searcher
for values in asked(make_searcher("smac", RICH, given={settings}), 10):
    print(values)
"""


def test_another_process_with_other_hashes_finds_the_same_and_prints_nothing(
    tmp_path: Path,
) -> None:
    packages = [str(Path(each.__file__).parents[1]) for each in (lsmtune, lsmtune_smac)]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.replace("{settings}", repr(SETTINGS))],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONHASHSEED": "12345",
            "PYTHONPATH": os.pathsep.join(packages),
            "TMPDIR": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    mine = [str(values) for values in asked(make_searcher("smac", RICH, given=SETTINGS), 10)]
    assert done.stdout.splitlines() == mine
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []  # what SMAC wrote is gone


def test_an_epoch_follows_from_what_was_before_it() -> None:
    space = space_of(number("x", 0.0, 1.0, integer=False), choice("c", "a", "b"))
    first = asked(make_searcher("smac", space, given=SETTINGS), 9)
    # The seventh to ninth trials are one epoch: what becomes of the seventh does not change it.
    searcher = make_searcher("smac", space, given=SETTINGS)
    asked(searcher, 6)
    pending = [searcher.ask() for _ in range(3)]
    assert [dict(p.values) for p in pending] == first[6:]
