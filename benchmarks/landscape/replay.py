"""Replays searches on a recorded landscape: simulated hours in seconds, from many seeds.

    .venv/bin/python benchmarks/landscape/replay.py docs/benchmarks/landscape/writing.jsonl

A surrogate is fitted to the recordings: of the objective, and of the seconds that a trial takes.
First it shows how well it ranks configurations that it has not seen (five parts, each predicted by
the others). Then every strategy searches it, with the noise of the repeats, until `--time`
simulated seconds are over. The figure is the time until what a strategy would recommend (the
configuration with the best value so far) is within 5 % of the best that is known.

The surrogate knows nothing of trees or costs, so that it favours no strategy: the better of extra
trees and a Gaussian process on plain coordinates, by the rank correlation.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from optuna.trial import TrialState
from record import read_rows
from scipy.stats import spearmanr
from sklearn.ensemble import ExtraTreesRegressor

from lsmtune.model.goal import Direction
from lsmtune.search.gp import fit_process
from lsmtune.search.in_memory_study import TrialJudgement, ValueNoise
from lsmtune.search.samplers import check_settings
from lsmtune.search.searcher import Searcher
from lsmtune.search.unit_space import UnitSpace, make_unit_space
from workloads import METRIC, Options, accepts, make_landscape_space, problem_of, starts

FloatArray = npt.NDArray[np.float64]
Fit = Callable[[FloatArray, FloatArray], Callable[[FloatArray], FloatArray]]
CORES = 2
WITHIN = 1.05
PARTS = 5


# --- The surrogate.


def fit_trees(features: FloatArray, targets: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Extra trees; deterministic."""
    model = ExtraTreesRegressor(100, min_samples_leaf=2, random_state=0).fit(features, targets)
    return model.predict


def fit_gaussian(features: FloatArray, targets: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """A Gaussian process on standardised targets."""
    mean, spread = float(targets.mean()), float(targets.std()) or 1.0
    process = fit_process(features, (targets - mean) / spread, 150)
    return lambda new: mean + spread * process(new)[0]


FITS: Mapping[str, Fit] = {"trees": fit_trees, "gaussian": fit_gaussian}


def held_out(fit: Fit, features: FloatArray, targets: FloatArray) -> FloatArray:
    """What the others predict of each row."""
    part = np.random.default_rng(0).permutation(len(targets)) % PARTS
    predicted = np.empty(len(targets))
    for index in range(PARTS):
        others = part != index
        predicted[~others] = fit(features[others], targets[others])(features[~others])
    return predicted


def rank_correlation(one: FloatArray, other: FloatArray) -> float:
    """Spearman's."""
    return float(spearmanr(one, other).statistic)


@dataclass(frozen=True)
class Landscape:
    """A recorded landscape, as a function of a configuration."""

    name: str
    version: str | None
    unit_space: UnitSpace
    log_value: Callable[[FloatArray], FloatArray]
    log_seconds: Callable[[FloatArray], FloatArray]
    noise_sd: float
    best: float
    correlations: Mapping[str, float]
    points: int
    killed: int

    def at(self, values: Options) -> tuple[float, float]:
        """The logarithm of the objective, and seconds of a trial."""
        space = self.unit_space.space
        point = self.unit_space.encode([space.variables_of(values)])
        features = self.unit_space.distance_features(point)
        return float(self.log_value(features)[0]), math.exp(float(self.log_seconds(features)[0]))


def landscape_of(rows: Sequence[dict[str, Any]]) -> Landscape:
    """The landscape of the rows of one scale."""
    well = [row for row in rows if row["outcome"] == "ok" and row[METRIC]]
    by_point: dict[int, list[float]] = defaultdict(list)
    seconds: dict[int, list[float]] = defaultdict(list)
    options: dict[int, Options] = {}
    for row in well:
        by_point[row["point"]].append(math.log(row[METRIC]))
        seconds[row["point"]].append(row["ready_s"] + row["run_s"])
        options[row["point"]] = row["options"]
    # The first run of a point loads; later ones only copy. A trial of a search loads.
    numbers = sorted(by_point)
    unit_space = make_unit_space(make_landscape_space())
    space = unit_space.space
    encoded = unit_space.encode([space.variables_of(options[n]) for n in numbers])
    features = unit_space.distance_features(encoded)
    targets = np.array([statistics.fmean(by_point[n]) for n in numbers])
    costs = np.log([max(seconds[n]) for n in numbers])
    correlations = {
        name: rank_correlation(held_out(fit, features, targets), targets)
        for name, fit in FITS.items()
    }
    chosen = max(correlations, key=lambda name: correlations[name])
    log_value = FITS[chosen](features, targets)
    groups = [values for values in by_point.values() if len(values) > 1]
    freedom = sum(len(values) - 1 for values in groups)
    squares = sum((len(values) - 1) * statistics.variance(values) for values in groups)
    drawn = unit_space.sample(np.random.default_rng(1), 20_000)
    known = max(float(log_value(features).max()), float(_best_of(log_value, unit_space, drawn)))
    return Landscape(
        name=rows[0]["workload"],
        version=rows[0]["version"],
        unit_space=unit_space,
        log_value=log_value,
        log_seconds=FITS["trees"](features, costs),
        noise_sd=math.sqrt(squares / freedom) if freedom else 0.05,
        best=known,
        correlations=correlations,
        points=len(numbers),
        killed=len({row["point"] for row in rows}) - len(numbers),
    )


def _best_of(
    log_value: Callable[[FloatArray], FloatArray], unit_space: UnitSpace, points: FloatArray
) -> float:
    return float(log_value(unit_space.distance_features(points)).max())


# --- The strategies.


@dataclass(frozen=True)
class Strategy:
    """A sampler with settings, and how many presets and optima, each, it begins with."""

    sampler: str
    settings: Mapping[str, object]
    starts: int


STRATEGIES: Mapping[str, Strategy] = {
    "auto": Strategy("auto", {}, 2),
    "auto, more starts": Strategy("auto", {"startup_trials": 10}, 4),
    "auto, no starts": Strategy("auto", {}, 0),
    "auto, no hedge": Strategy("auto", {"hedge": 0.0}, 2),
    "starts, then tpe": Strategy("tpe", {}, 2),
    "tpe": Strategy("tpe", {}, 0),
    "starts, then gp": Strategy("gp", {}, 2),
    "forest": Strategy("forest", {}, 0),
    "starts, then random": Strategy("random", {}, 2),
    "random": Strategy("random", {}, 0),
}


def time_until_good(
    landscape: Landscape, strategy: Strategy, seed: int, time_s: float
) -> tuple[float, float, float]:
    """Simulated seconds until what is recommended is good for good, and the regret in the end.

    Infinite where it never is. Regret is the logarithm of the best over the recommended one; at
    last the same of the best that was tried.
    """
    rng = np.random.default_rng([seed, 1])
    searcher = Searcher(
        landscape.unit_space.space,
        strategy.sampler,
        check_settings(strategy.sampler, strategy.settings, "replay", "sampler"),
        seed,
        [Direction.MAXIMIZE],
        accepts=lambda values: accepts(landscape.name, values),
        problem=problem_of(landscape.name, landscape.version, CORES),
    )
    queue: list[Options] = []
    if strategy.starts:
        queue = starts(landscape.name, landscape.version, CORES, strategy.starts)
    spent_s, best, regret, reached_s, tried = 0.0, -math.inf, math.inf, math.inf, -math.inf
    judged: dict[int, TrialJudgement] = {}
    while spent_s < time_s:
        searcher.rejudge(judged)
        proposal = searcher.ask(queue.pop(0) if queue else None)
        truth, trial_s = landscape.at(proposal.values)
        spent_s += trial_s
        tried = max(tried, truth)
        measured = truth + rng.normal() * landscape.noise_sd
        value = math.exp(measured)
        searcher.tell(proposal.number, TrialState.COMPLETE, [value])
        noise = ValueNoise((value * landscape.noise_sd) ** 2, 1, trial_s)
        judged[proposal.number] = TrialJudgement(TrialState.COMPLETE, (value,), noise=noise)
        if measured > best:
            best, regret = measured, landscape.best - truth
            if regret > math.log(WITHIN):
                reached_s = math.inf
            elif math.isinf(reached_s):
                reached_s = spent_s
    return reached_s, regret, landscape.best - tried


def main() -> None:
    """Fits, shows how well, replays."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("raw", type=Path)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--strategies", nargs="+", choices=tuple(STRATEGIES), default=None)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--time", type=float, default=3600.0, help="simulated seconds")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    recorded = read_rows(arguments.raw)
    rows = [row for row in recorded if row["scale"] == arguments.scale]
    if len({row["point"] for row in rows}) < 2 * PARTS:
        parser.error(f"{arguments.raw}: fewer than {2 * PARTS} points of scale {arguments.scale}")
    landscape = landscape_of(rows)
    shown = ", ".join(f"{name} {value:.3f}" for name, value in landscape.correlations.items())
    found: dict[str, Any] = {
        "workload": landscape.name,
        "points": landscape.points,
        "killed": landscape.killed,
        "rank_correlation": dict(landscape.correlations),
        "noise_sd": landscape.noise_sd,
        "strategies": {},
    }
    if not arguments.json:
        print(
            f"{landscape.name}: {landscape.points} points ({landscape.killed} ended badly), noise "
            f"{100 * landscape.noise_sd:.1f} %; held-out rank correlation: {shown}"
        )
        print(f"{'strategy':<22}{'reached':>9}{'median s':>10}{'regret %':>10}{'of tried':>10}")
    for name in arguments.strategies or STRATEGIES:
        runs = [
            time_until_good(landscape, STRATEGIES[name], seed, arguments.time)
            for seed in range(arguments.seeds)
        ]
        times = [reached_s for reached_s, _, _ in runs]
        regret, of_tried = (
            statistics.median(100 * (1 - math.exp(-max(run[place], 0.0))) for run in runs)
            for place in (1, 2)
        )
        median_s = statistics.median(times)
        reached = sum(map(math.isfinite, times))
        found["strategies"][name] = {
            "reached": reached,
            "seeds": len(times),
            "median_s": median_s if math.isfinite(median_s) else None,
            "regret_percent_median": regret,
            "regret_of_tried_percent_median": of_tried,
        }
        if not arguments.json:
            text = f"{median_s:,.0f}" if math.isfinite(median_s) else "never"
            print(
                f"{name:<22}{f'{reached}/{len(times)}':>9}{text:>10}{regret:>10.1f}{of_tried:>10.1f}",
                flush=True,
            )
    if arguments.json:
        print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
