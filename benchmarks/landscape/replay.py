"""Replays searches on a recorded landscape: simulated hours in seconds, from many seeds.

    .venv/bin/python benchmarks/landscape/replay.py docs/benchmarks/landscape/writing.jsonl

A surrogate is fitted to the recordings: of the objective, and of the seconds that a trial takes.
First it shows how well it ranks configurations that it has not seen (five parts, each predicted by
the others). Then every strategy searches it, with the noise of the repeats, until `--time`
simulated seconds are over. Figures say how far from the best that is known the search then is.

Then the best of four kinds run once more, with `--doublings` as much data: how far is what those
runs alone choose from the best of the four, and what they and the search choose? What a
configuration is worth there differs by a normal value, as `study.promotion` has it.

The surrogate knows nothing of trees or costs, so that it favours no strategy: the better of extra
trees and a Gaussian process on plain coordinates, by the rank correlation.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from optuna.trial import TrialState
from record import read_rows
from scipy.stats import spearmanr
from sklearn.ensemble import ExtraTreesRegressor

from lsmtune.model.config import Config
from lsmtune.model.goal import Direction, Goal, Objective
from lsmtune.model.measurement import Outcome
from lsmtune.search.gp import fit_process
from lsmtune.search.samplers import check_settings
from lsmtune.search.searcher import Searcher
from lsmtune.search.unit_space import FloatArray
from lsmtune.study.budget import PROMOTED_MAX
from lsmtune.study.judging import Observations, Promotion
from lsmtune.study.promotion import believed_there, kinds_first
from lsmtune.study.size import RunSize
from lsmtune.study.stored import Round, TrialRounds
from workloads import METRIC, UNIT, Options, accepts, problem_of, starts

Fit = Callable[[FloatArray, FloatArray], Callable[[FloatArray], FloatArray]]
GOAL = Goal((Objective(METRIC),))
# Runs of the calibration before a search, trials between two anchors, and how often a trial is run:
# a study's own. Runs of a calibration in turns scatter by this share of others, as in a quickstart.
CALIBRATION, ANCHORS, REPEATS, IN_TURNS = 6, 10, 3, 0.3
PROMOTIONS = 100  # of each search, each with other noise
SURE = {0: NormalDist(0.0, 0.0)}
# Of what `replayed` returns.
HEADS = ("regret %", "by model", "of tried", "promoted", "by both")
PARTS = 5


# --- The surrogate.


def fit_trees(features: FloatArray, targets: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Extra trees; deterministic."""
    model = ExtraTreesRegressor(100, min_samples_leaf=2, random_state=0).fit(features, targets)
    return model.predict


def fit_gaussian(features: FloatArray, targets: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """A Gaussian process on standardised targets."""
    mean, spread = float(targets.mean()), float(targets.std()) or 1.0
    process = fit_process(features, (targets - mean) / spread)
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


def pooled_variance(groups: Iterable[Sequence[float]]) -> float:
    """Of a value within its group; not a number where no group has two."""
    repeated = [values for values in groups if len(values) > 1]
    squares = sum((len(values) - 1) * statistics.variance(values) for values in repeated)
    return squares / sum(len(values) - 1 for values in repeated) if repeated else math.nan


@dataclass(frozen=True)
class Landscape:
    """A recorded landscape, as a function of a configuration."""

    name: str
    version: str | None
    log_value: Callable[[FloatArray], FloatArray]
    log_seconds: Callable[[FloatArray], FloatArray]
    noise_sd: float
    best: float
    fit: str

    def at(self, values: Options) -> tuple[float, float]:
        """The logarithm of the objective, and seconds of a trial."""
        features = UNIT.distance_features(UNIT.encode([UNIT.space.variables_of(values)]))
        return float(self.log_value(features)[0]), math.exp(float(self.log_seconds(features)[0]))


def landscape_of(recorded: Sequence[dict[str, Any]]) -> Landscape:
    """The landscape of what was recorded at the target; `fit` says how well it ranks."""
    rows = [row for row in recorded if row["scale"] == 1.0]
    by_point: dict[int, list[float]] = defaultdict(list)
    seconds: dict[int, list[float]] = defaultdict(list)
    options: dict[int, Options] = {}
    for row in rows:
        if row["outcome"] == "ok" and row[METRIC]:
            by_point[row["point"]].append(math.log(row[METRIC]))
            seconds[row["point"]].append(row["ready_s"] + row["run_s"])
            options[row["point"]] = row["options"]
    numbers = sorted(by_point)
    encoded = UNIT.encode([UNIT.space.variables_of(options[n]) for n in numbers])
    features = UNIT.distance_features(encoded)
    targets = np.array([statistics.fmean(by_point[n]) for n in numbers])
    # The first run of a point loads; later ones only copy. A trial of a search loads.
    costs = np.log([max(seconds[n]) for n in numbers])
    correlations = {
        name: rank_correlation(held_out(fit, features, targets), targets)
        for name, fit in FITS.items()
    }
    log_value = FITS[max(correlations, key=correlations.__getitem__)](features, targets)
    drawn = UNIT.distance_features(UNIT.sample(np.random.default_rng(1), 20_000))
    noise_sd = math.sqrt(pooled_variance(by_point.values()))
    killed = len({row["point"] for row in rows}) - len(numbers)
    shown = ", ".join(f"{name} {value:.3f}" for name, value in correlations.items())
    return Landscape(
        name=rows[0]["workload"],
        version=rows[0]["version"],
        log_value=log_value,
        log_seconds=FITS["trees"](features, costs),
        noise_sd=noise_sd,
        best=max(float(log_value(features).max()), float(log_value(drawn).max())),
        fit=f"{len(numbers)} points ({killed} ended badly), noise {100 * noise_sd:.1f} %; "
        f"held-out rank correlation: {shown}",
    )


# --- The strategies.


@dataclass(frozen=True)
class Strategy:
    """A sampler with settings, and whether it begins with presets and optima."""

    sampler: str
    starts: bool = False
    settings: Mapping[str, object] = field(default_factory=dict)


STRATEGIES: Mapping[str, Strategy] = {
    "auto": Strategy("auto", starts=True),
    "auto, no starts": Strategy("auto"),
    "auto, no hedge": Strategy("auto", starts=True, settings={"hedge": 0.0}),
    "starts, then tpe": Strategy("tpe", starts=True),
    "tpe": Strategy("tpe"),
    "starts, then gp": Strategy("gp", starts=True),
    "random": Strategy("random"),
}


def replayed(
    landscape: Landscape, strategy: Strategy, seed: int, time_s: float, doublings: float
) -> list[float]:
    """A search as a study has it: trials are run again, and judged by all of their runs.

    The logarithms of the best that is known over the trial that is best by its runs in the end, the
    one of which the sampler's model expects the most, and the best that was tried. Then of the best
    of those that were promoted over the best by that run, and by that and the search.
    """
    rng = np.random.default_rng([seed, 1])
    searcher = Searcher(
        UNIT.space,
        strategy.sampler,
        check_settings(strategy.sampler, strategy.settings, "replay", "sampler"),
        seed,
        [Direction.MAXIMIZE],
        accepts=lambda values: accepts(landscape.name, values),
        problem=problem_of(landscape.name, landscape.version),
    )
    queue = starts(landscape.name, landscape.version) if strategy.starts else []
    observations, spent_s, row = Observations(GOAL), 0.0, 0

    def ran(truth: float, trial_s: float, share: float = 1.0) -> Round:
        value = math.exp(truth + rng.normal() * share * landscape.noise_sd)
        return Round(row, row, Outcome.OK, trial_s, values=(value,), run_s=trial_s)

    # Before it, the baseline and a calibration. Runs of the baseline cost no time here.
    baseline = [ran(0.0, 0.0)]
    baseline += [replace(ran(0.0, 0.0, IN_TURNS), in_turns=True) for _ in range(CALIBRATION)]
    observations.use_anchors(baseline)
    truths: dict[int, tuple[float, float]] = {}
    tried: dict[int, Options] = {}
    while spent_s < time_s:
        row += 1
        number = observations.judgement.next_repeat(REPEATS)
        if number is not None:
            observations.add_round(number, ran(*truths[number]))
        else:
            searcher.rejudge(observations.for_searcher())
            proposal = searcher.ask(queue.pop(0) if queue else None)
            number, truths[proposal.number] = proposal.number, landscape.at(proposal.values)
            tried[number] = proposal.values
            first = ran(*truths[number])
            searcher.tell(number, TrialState.COMPLETE, first.values)
            observations.add_trial(TrialRounds(number, Config({}), (first,)))
            if number % ANCHORS == ANCHORS - 1:
                baseline.append(ran(0.0, 0.0))
                observations.use_anchors(baseline)
        spent_s += truths[number][1]
    searcher.rejudge(observations.for_searcher())
    regrets = {number: landscape.best - truth for number, (truth, _) in truths.items()}
    judgement = observations.judgement
    size = RunSize(scale=2.0**-doublings)
    believed = believed_there(judgement.believed(searcher.expected()), size)
    by_model = judgement.ranked(believed)
    kinds = kinds_first(UNIT.space, {n: tried[n] for n in by_model}, {}, PROMOTED_MAX)
    known = {n: believed[n] for n in kinds if n in believed}
    varies_by = believed_there(SURE, size)[0].stdev
    chosen = []
    for _ in range(PROMOTIONS):
        there = {n: truths[n][0] + rng.normal() * varies_by for n in kinds}
        runs = {n: math.exp(each + rng.normal() * landscape.noise_sd) for n, each in there.items()}
        observations.promote(Promotion(None, runs, known))
        found, best = observations.judgement, max(there.values())
        both = found.best_of_promotion, found.best
        chosen.append([best - there[number] for number in both if number is not None])
    in_search = regrets[judgement.ranked()[0]], regrets[by_model[0]], min(regrets.values())
    return [*in_search, *map(statistics.fmean, zip(*chosen, strict=True))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("raw", type=Path)
    parser.add_argument("--strategies", nargs="+", choices=tuple(STRATEGIES), default=STRATEGIES)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--time", type=float, default=3600.0, help="simulated seconds")
    parser.add_argument("--doublings", type=float, default=0.0, help="data of the promotion")
    arguments = parser.parse_args()
    landscape = landscape_of(read_rows(arguments.raw))
    print(f"{landscape.name}: {landscape.fit}")
    print(f"{'strategy':<22}" + "".join(f"{head:>10}" for head in HEADS))
    for name in arguments.strategies:
        runs = [
            replayed(landscape, STRATEGIES[name], seed, arguments.time, arguments.doublings)
            for seed in range(arguments.seeds)
        ]
        means = [
            statistics.fmean(100 * (1 - math.exp(-max(regret, 0.0))) for regret in regrets)
            for regrets in zip(*runs, strict=True)
        ]
        print(f"{name:<22}" + "".join(f"{mean:>10.1f}" for mean in means), flush=True)


if __name__ == "__main__":
    main()
