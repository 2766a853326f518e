"""What each way of running a pair is worth: variance per second of machine time.

    .venv/bin/python benchmarks/variance/analyse.py docs/benchmarks/variance/pairs.jsonl

Reads what `collect.py` wrote. The comparison is with plain alternating runs; every figure comes
from pairs of the same configuration, so that the true log ratio is 0.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from lsmtune.stats.noise import pairs_needed

METRIC = "sustained_throughput_ops_s"
EFFECT = 0.05
STEAL_SHARE_MAX = 0.02
Line = Mapping[str, Any]
FloatArray = npt.NDArray[np.float64]


# --- Ways to make the ratio of a pair vary less, and what that is worth. Each treats both sides
# alike: swapping the sides of a pair turns the sign of its log ratio, before and after.


def control_variate(log_ratios: FloatArray, differences: FloatArray) -> FloatArray:
    """Each log ratio less what the difference of a covariate between both runs predicts.

    `differences` are the covariate of the candidate's run less that of the baseline's. It must be
    one that the candidate does not change: its own effect on it would be subtracted as well. The
    slope is that of the regression through the origin (control variates: J. M. Hammersley, D. C.
    Handscomb, "Monte Carlo Methods", 1964, section 5.5), which swapping the sides of any pair
    leaves as it is.
    """
    squares = float(differences @ differences)
    slope = float(log_ratios @ differences) / squares if squares else 0.0
    return log_ratios - slope * differences


def undisturbed(one: FloatArray, other: FloatArray, share_max: float) -> npt.NDArray[np.bool_]:
    """Which pairs of steps to keep, by the shares of their time that were stolen from each side.

    Those of which neither side lost more than `share_max`. A pair goes or stays as a whole,
    whichever side was robbed, so that trimming cannot favour one.
    """
    return np.maximum(one, other) <= share_max


class Cost(NamedTuple):
    """The variance of a log ratio that a second of machine time buys, with its interval at 95 %.

    Halving `variance_s` halves the time that a proof takes. In seconds, since the variance of logs
    has no unit.
    """

    variance_s: float
    low: float
    high: float


def machine_cost(log_ratios: FloatArray, seconds: FloatArray, random: np.random.Generator) -> Cost:
    """The variance of one pair's log ratio times the mean seconds that a pair takes.

    By that product estimators of different cost compare: the time to a wanted variance is
    proportional to it (P. W. Glynn, W. Whitt, "The asymptotic efficiency of simulation estimators",
    Operations Research 40, 1992). The interval is the bias-corrected and accelerated bootstrap
    (B. Efron, JASA 82, 1987) of resampled pairs; with fewer than about 20 it is too narrow.
    """

    def cost(logs: FloatArray, times: FloatArray, axis: int = -1) -> FloatArray:
        return np.asarray(np.var(logs, axis=axis, ddof=1) * np.mean(times, axis=axis))

    found = stats.bootstrap(
        (log_ratios, seconds), cost, paired=True, n_resamples=2000, random_state=random
    )
    low, high = found.confidence_interval
    return Cost(float(cost(log_ratios, seconds)), float(low), float(high))


# --- The estimators.


@dataclass(frozen=True)
class Estimates:
    """One log ratio for each pair, and the seconds that it took."""

    log_ratios: FloatArray
    seconds: FloatArray


def log_ratio(line: Line) -> float:
    """Of the whole runs of a pair."""
    return math.log(line["b"][METRIC] / line["a"][METRIC])


def plain(lines: Sequence[Line]) -> Estimates:
    """Each pair by itself."""
    seconds = np.array([line["wall_s"] for line in lines])
    return Estimates(np.array([log_ratio(line) for line in lines]), seconds)


def blocks(ab: Sequence[Line], ba: Sequence[Line]) -> Estimates:
    """ABBA: the mean of two pairs of one round, run in either order."""
    other = {line["round"]: line for line in ba}
    both = [(line, other[line["round"]]) for line in ab if line["round"] in other]
    return Estimates(
        np.array([(log_ratio(one) + log_ratio(two)) / 2 for one, two in both]),
        np.array([one["wall_s"] + two["wall_s"] for one, two in both]),
    )


def by_processor_time(lines: Sequence[Line]) -> Estimates:
    """Less what the difference in processor time per operation explains."""
    key = "cpu_us_per_operation"
    return _less(lines, [math.log(line["b"][key] / line["a"][key]) for line in lines])


def by_steal(lines: Sequence[Line]) -> Estimates:
    """Less what the difference in the stolen share of the time explains."""
    return _less(lines, [_stolen_share(line["b"]) - _stolen_share(line["a"]) for line in lines])


def _less(lines: Sequence[Line], differences: Sequence[float]) -> Estimates:
    found = plain(lines)
    adjusted = control_variate(found.log_ratios, np.array(differences))
    return replace(found, log_ratios=adjusted)


def trimmed(lines: Sequence[Line]) -> Estimates:
    """Throughput of the steps in which neither side had time stolen; of all where none is left."""
    return replace(plain(lines), log_ratios=np.array([_trimmed(line) for line in lines]))


def _stolen_share(side: Line) -> float:
    return (side["steal_s"] or 0.0) / (side["elapsed_s"] + side["drain_s"])


def _trimmed(line: Line) -> float:
    a, b = _steps(line["a"], line["way"]), _steps(line["b"], line["way"])
    count = min(len(a), len(b))
    shares = [
        np.array([steal_s / max(took_s, 1e-9) for took_s, _, steal_s in side[:count]])
        for side in (a, b)
    ]
    keep = undisturbed(shares[0], shares[1], STEAL_SHARE_MAX)
    if not keep.any():
        return log_ratio(line)
    rates = []
    for side in (a, b):
        kept = [step for step, wanted in zip(side[:count], keep, strict=True) if wanted]
        rates.append(sum(done for _, done, _ in kept) / sum(took_s for took_s, _, _ in kept))
    return math.log(rates[1] / rates[0])


def _steps(side: Line, way: str) -> list[tuple[float, int, float]]:
    """Seconds, operations and stolen seconds of each step; an interval states when it ended."""
    found, before_s = [], 0.0
    for at_s, operations, _, steal_s in side["steps"]:
        took_s = at_s if way == "slices" else at_s - before_s
        before_s = at_s
        if operations:
            found.append((took_s, operations, steal_s or 0.0))
    return found


def ways(lines: Sequence[Line]) -> dict[str, Estimates]:
    """All estimators over the lines of one case."""
    by_way: dict[str, list[Line]] = {}
    for line in lines:
        by_way.setdefault(line["way"], []).append(line)
    ab, ba = by_way["whole AB"], by_way["whole BA"]
    alternating, slices = ab + ba, by_way["slices"]
    adjusted: dict[str, Callable[[Sequence[Line]], Estimates]] = {
        "processor time as covariate": by_processor_time,
        "stolen time as covariate": by_steal,
        "stolen steps trimmed": trimmed,
    }
    return {
        "alternating": plain(alternating),
        "four times longer": plain(by_way["longer"]),
        "ABBA blocks": blocks(ab, ba),
        "duet": plain(by_way["duet"]),
        "slices": plain(slices),
        **{f"alternating, {name}": way(alternating) for name, way in adjusted.items()},
        **{f"slices, {name}": way(slices) for name, way in adjusted.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pairs", type=Path)
    arguments = parser.parse_args()
    lines = [json.loads(text) for text in arguments.pairs.read_text().splitlines()]
    for case in sorted({line["case"] for line in lines}):
        mine = [line for line in lines if line["case"] == case]
        loads = sorted(line["load"] for line in mine)
        print(f"\n{case}, {len(mine)} pairs, load {loads[0]:.1f} to {loads[-1]:.1f}\n")
        print(
            "| way | pairs | s a pair | sd of log ratio | variance x s, thousandths | "
            "times better | pairs for 5 % | seconds for 5 % |"
        )
        print("|---|---|---|---|---|---|---|---|")
        reference = math.nan
        for name, found in ways(mine).items():  # plain alternating runs come first
            cost = machine_cost(found.log_ratios, found.seconds, np.random.default_rng(1))
            reference = cost.variance_s if math.isnan(reference) else reference
            deviation, seconds = np.std(found.log_ratios, ddof=1), np.mean(found.seconds)
            pairs = pairs_needed(EFFECT, float(deviation))
            print(
                f"| {name} | {len(found.log_ratios)} | {seconds:.1f} | {deviation:.3f} | "
                f"{1e3 * cost.variance_s:.2f} ({1e3 * cost.low:.2f} to {1e3 * cost.high:.2f}) | "
                f"{reference / cost.variance_s:.1f} | {pairs} | {pairs * seconds:.0f} |"
            )


if __name__ == "__main__":
    main()
