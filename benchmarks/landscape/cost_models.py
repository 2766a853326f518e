"""Do the cost models of `auto` rank configurations as a real engine does, before and after trials?

    .venv/bin/python benchmarks/landscape/cost_models.py docs/benchmarks/landscape/*.jsonl

For each recording: the rank correlation of what 64 models expect (`search/cost_models.py`) with the
measured objective, and what their first choice reaches of the best. Then what the process of `auto`
makes of 6, 12 and 25 random configurations, for all others: with the models as its trend, and
without (means of 12 draws). `--without-snappy` leaves out rows with Snappy: those that are recorded
so far ran on a Snappy without optimisation.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from record import read_rows
from replay import rank_correlation

from lsmtune.model.goal import Direction
from lsmtune.search.auto import Fit, trend_of
from lsmtune.search.coordinates import Coordinates
from lsmtune.search.cost_models import Machine, amplification_ratios, draw_machine, seconds_of
from lsmtune.search.sampler import Problem, SamplerContext
from lsmtune.search.unit_space import FloatArray
from workloads import METRIC, UNIT, Options, problem_of

MODELS, SEED = 64, 12
DRAWS, NOISE_SD, TRIALS = 12, 0.08, (6, 12, 25)


@dataclass(frozen=True)
class Recording:
    """Points of the landscape's space (n, dimensions), and what was measured, in logarithms.

    The objective (n,), and the write `amplification` (n,), which is NaN where nothing is written.
    """

    problem: Problem
    points: FloatArray
    measured: FloatArray
    amplification: FloatArray


def recording(path: Path, *, without_snappy: bool) -> Recording:
    """The target's runs, the mean of each configuration."""
    rows = [row for row in read_rows(path) if row["scale"] == 1.0 and row["outcome"] == "ok"]
    logs: dict[int, list[float]] = defaultdict(list)
    written: dict[int, list[float]] = defaultdict(list)
    options: dict[int, Options] = {}
    for row in rows:
        if row[METRIC] and not (without_snappy and "Snappy" in row["options"]["compression"]):
            logs[row["point"]].append(math.log(row[METRIC]))
            written[row["point"]].append(math.log(row["write_amplification"] or math.nan))
            options[row["point"]] = row["options"]
    problem = problem_of(rows[0]["workload"], rows[0]["version"])
    variables = [UNIT.space.variables_of(options[point]) for point in logs]
    measured, amplification = (
        np.array([statistics.fmean(values) for values in of.values()]) for of in (logs, written)
    )
    return Recording(problem, UNIT.encode(variables), measured, amplification)


def machines_drawn() -> list[Machine]:
    """The same for every recording."""
    generator = np.random.default_rng(SEED)
    return [draw_machine(generator) for _ in range(MODELS)]


def before(found: Recording) -> tuple[float, float]:
    """The rank correlation of what the models expect, and the first choice over the best."""
    costs = seconds_of(found.problem, UNIT, found.points, machines_drawn())
    expected = -np.log(costs).mean(axis=1)
    correlation = rank_correlation(expected, found.measured)
    return correlation, math.exp(found.measured[int(expected.argmax())] - found.measured.max())


def writes(found: Recording) -> str:
    """How the models rank the write amplification, in a line; empty where nothing is written."""
    if not np.isfinite(found.amplification).all():
        return ""
    ratios = amplification_ratios(found.problem, UNIT, found.points, machines_drawn())
    said = np.log(ratios).mean(axis=1)
    correlation = rank_correlation(said, found.amplification)
    slope, _ = np.polyfit(said, found.amplification, 1)
    error = float(np.std(found.amplification - said))
    return (
        f"  write amplification: rank correlation {correlation:.2f}, slope {slope:.2f}, "
        f"the logarithm of a ratio errs by {error:.2f}"
    )


def after(found: Recording, trials: int) -> tuple[float, float]:
    """The rank correlation for the others after so many trials, with the trend and without."""
    context = SamplerContext(UNIT.space, 1, {}, (Direction.MAXIMIZE,), found.problem)
    coordinates, means = Coordinates(UNIT, context), [[], []]
    for seed in range(DRAWS):
        order = np.random.default_rng(seed).permutation(len(found.measured))
        features, costs = coordinates.of(found.points[order])
        targets, rows = -found.measured[order], np.arange(trials)
        known = SimpleNamespace(targets=targets, variances=np.full(len(order), NOISE_SD**2))
        trend = trend_of(costs[:trials], targets[:trials])
        for weights, kept in zip((trend, np.zeros_like(trend)), means, strict=True):
            fit = Fit.of(features, known, rows, costs, weights)
            expected = fit.objective.mean(fit.shared.inner) * fit.spread + fit.trend
            kept.append(rank_correlation(expected[trials:], targets[trials:]))
    with_trend, without = map(statistics.fmean, means)
    return with_trend, without


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recordings", nargs="+", type=Path)
    parser.add_argument("--without-snappy", action="store_true")
    arguments = parser.parse_args()
    for path in arguments.recordings:
        found = recording(path, without_snappy=arguments.without_snappy)
        correlation, first = before(found)
        print(
            f"{path.stem}: {len(found.measured)} configurations, rank correlation "
            f"{correlation:.2f}, first choice {first:.2f} of the best"
        )
        if line := writes(found):
            print(line)
        for trials in TRIALS:
            with_trend, without = after(found, trials)
            print(f"  after {trials} trials {with_trend:.2f}, without the trend {without:.2f}")


if __name__ == "__main__":
    main()
