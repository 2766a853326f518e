"""Do the cost models of `auto` rank configurations as a real engine does, before any run?

    .venv/bin/python benchmarks/landscape/cost_models.py docs/benchmarks/landscape/*.jsonl

For each recording: the rank correlation of what 64 models expect (`search/cost_models.py`) with the
measured objective, and what their first choice reaches of the best. Rows with Snappy are left out
where they are asked for: those that are recorded so far ran on a Snappy without optimisation.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections import defaultdict
from pathlib import Path

import numpy as np
from record import read_rows
from scipy.stats import spearmanr

from lsmtune.search.cost_models import OptionColumns, draw_constants, seconds_of
from lsmtune.search.unit_space import make_unit_space
from workloads import METRIC, Options, make_landscape_space, problem_of

MODELS, SEED, CORES = 64, 12, 2


def ranked(path: Path, *, without_snappy: bool) -> tuple[int, float, float]:
    """Configurations, their rank correlation, and the first choice over the best."""
    rows = [row for row in read_rows(path) if row["scale"] == 1.0 and row["outcome"] == "ok"]
    logs: dict[int, list[float]] = defaultdict(list)
    options: dict[int, Options] = {}
    for row in rows:
        if row[METRIC] and not (without_snappy and "Snappy" in row["options"]["compression"]):
            logs[row["point"]].append(math.log(row[METRIC]))
            options[row["point"]] = row["options"]
    measured = np.array([statistics.fmean(values) for values in logs.values()])
    unit_space = make_unit_space(make_landscape_space())
    variables = [unit_space.space.variables_of(options[point]) for point in logs]
    problem = problem_of(rows[0]["workload"], rows[0]["version"], CORES)
    generator = np.random.default_rng(SEED)
    machines = [draw_constants(generator) for _ in range(MODELS)]
    columns = OptionColumns(unit_space, problem.defaults)
    costs = seconds_of(problem, columns, unit_space.encode(variables), machines)
    expected = -np.log(costs).mean(axis=1)
    correlation = float(spearmanr(expected, measured).statistic)
    first = math.exp(float(measured[int(expected.argmax())] - measured.max()))
    return len(measured), correlation, first


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recordings", nargs="+", type=Path)
    parser.add_argument("--without-snappy", action="store_true")
    arguments = parser.parse_args()
    for path in arguments.recordings:
        count, correlation, first = ranked(path, without_snappy=arguments.without_snappy)
        print(
            f"{path.stem}: {count} configurations, rank correlation {correlation:.2f}, "
            f"first choice {first:.2f} of the best"
        )


if __name__ == "__main__":
    main()
