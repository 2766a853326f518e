"""The benchmark's landscape and its script: the optimum holds, rows are kept and not made twice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lsmtune
from lsmtune.search.model_based import neighbours
from lsmtune.search.unit_space import make_unit_space
from patience import PATIENCE_S

FOLDER = Path(__file__).parents[2] / "benchmarks" / "samplers"
sys.path.insert(0, str(FOLDER))

import landscape  # noqa: E402
import optimum  # noqa: E402

UNIT_SPACE = make_unit_space(landscape.make_landscape_space())


def test_nothing_is_better_than_the_optimum_and_the_search_finds_it() -> None:
    rng = np.random.default_rng(11)
    point, value = optimum.climb(UNIT_SPACE, rng, patience=4)
    assert value <= landscape.OPTIMUM_OPS_S * (1 + 1e-6)
    assert value > 0.97 * landscape.OPTIMUM_OPS_S
    for _ in range(3):
        near = neighbours(UNIT_SPACE, rng, point, 20_000)
        assert optimum.score(UNIT_SPACE, near).max() <= landscape.OPTIMUM_OPS_S * (1 + 1e-6)


def test_it_is_a_landscape_worth_searching() -> None:
    points = UNIT_SPACE.sample(np.random.default_rng(0), 20_000)
    ops_s = landscape.throughput_ops_s(landscape.columns_of(UNIT_SPACE, points))
    killed = np.isnan(ops_s)
    assert 0.01 < killed.mean() < 0.1
    assert np.nanmedian(ops_s) < 0.25 * landscape.OPTIMUM_OPS_S
    assert np.nanmax(ops_s) < 0.9 * landscape.OPTIMUM_OPS_S


def test_one_configuration_is_worth_the_same_as_its_point() -> None:
    points = UNIT_SPACE.sample(np.random.default_rng(1), 100)
    of_points = landscape.throughput_ops_s(landscape.columns_of(UNIT_SPACE, points))
    for point, expected in zip(points, of_points, strict=True):
        values = UNIT_SPACE.space.suggest(UNIT_SPACE.decode(point).__getitem__)
        assert landscape.throughput_of(UNIT_SPACE.space, values) == pytest.approx(
            expected, nan_ok=True
        )


def test_the_noise_has_the_spread_that_it_is_given() -> None:
    rng = np.random.default_rng(2)
    noise = np.log([landscape.measured(1000.0, 0.05, rng) / 1000.0 for _ in range(4000)])
    assert abs(noise.mean()) < 4 * 0.05 / 4000**0.5
    assert noise.std() == pytest.approx(0.05, rel=0.06)


def regret(raw: Path, *more: str) -> dict:
    done = subprocess.run(
        [sys.executable, str(FOLDER / "regret.py"), "--raw", str(raw), "--json", *more],
        env={"PYTHONPATH": str(Path(lsmtune.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    return json.loads(done.stdout)


def test_an_interrupted_benchmark_goes_on_where_it_was(tmp_path: Path) -> None:
    raw = tmp_path / "rows.jsonl"
    few = ("--samplers", "random", "--trials", "4", "8", "--processes", "1")
    first = regret(raw, *few, "--seeds", "1")
    with raw.open("a") as file:
        file.write('{"sampler": "rand')  # cut off while it was written
    both = regret(raw, *few, "--seeds", "2")
    assert [row["seed"] for row in both["rows"]] == [0, 1]
    assert both["rows"][0] == first["rows"][0]  # its time too: it was not run again
    assert [(s["trials"], s["seeds"]) for s in both["summary"]] == [(4, 2), (8, 2)]
    assert regret(raw, *few, "--seeds", "2") == both
