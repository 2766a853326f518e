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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from adjust import control_variate, machine_cost, undisturbed

from lsmtune.stats.noise import pairs_needed

METRIC = "sustained_throughput_ops_s"
EFFECT = 0.05
STEAL_SHARE_MAX = 0.02
Line = Mapping[str, Any]


@dataclass(frozen=True)
class Estimates:
    """One log ratio for each pair, and the seconds that it took."""

    log_ratios: Sequence[float]
    seconds: Sequence[float]


def log_ratio(line: Line) -> float:
    """Of the whole runs of a pair."""
    return math.log(line["b"][METRIC] / line["a"][METRIC])


def plain(lines: Sequence[Line]) -> Estimates:
    """Each pair by itself."""
    return Estimates([log_ratio(line) for line in lines], [line["wall_s"] for line in lines])


def blocks(ab: Sequence[Line], ba: Sequence[Line]) -> Estimates:
    """ABBA: the mean of two pairs of one round, run in either order."""
    other = {line["round"]: line for line in ba}
    both = [(line, other[line["round"]]) for line in ab if line["round"] in other]
    return Estimates(
        [(log_ratio(one) + log_ratio(two)) / 2 for one, two in both],
        [one["wall_s"] + two["wall_s"] for one, two in both],
    )


def by_processor_time(lines: Sequence[Line]) -> Estimates:
    """Less what the difference in processor time per operation explains."""
    key = "cpu_us_per_operation"
    differences = [math.log(line["b"][key] / line["a"][key]) for line in lines]
    found = plain(lines)
    return Estimates(
        [float(x) for x in control_variate(found.log_ratios, differences).log_ratios],
        found.seconds,
    )


def by_steal(lines: Sequence[Line]) -> Estimates:
    """Less what the difference in the stolen share of the time explains."""
    differences = [_stolen_share(line["b"]) - _stolen_share(line["a"]) for line in lines]
    found = plain(lines)
    return Estimates(
        [float(x) for x in control_variate(found.log_ratios, differences).log_ratios],
        found.seconds,
    )


def trimmed(lines: Sequence[Line]) -> Estimates:
    """Throughput of the steps in which neither side had time stolen; of all where none is left."""
    return Estimates([_trimmed(line) for line in lines], [line["wall_s"] for line in lines])


def _stolen_share(side: Line) -> float:
    return (side["steal_s"] or 0.0) / (side["elapsed_s"] + side["drain_s"])


def _trimmed(line: Line) -> float:
    a, b = _steps(line["a"], line["way"]), _steps(line["b"], line["way"])
    count = min(len(a), len(b))
    shares = [
        [steal_s / max(took_s, 1e-9) for took_s, _, steal_s in side[:count]] for side in (a, b)
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


def row(name: str, found: Estimates, alternating_cost: float) -> str:
    """One line of the table."""
    random = np.random.default_rng(1)
    cost = machine_cost(found.log_ratios, found.seconds, random)
    deviation = float(np.std(found.log_ratios, ddof=1))
    seconds = float(np.mean(found.seconds))
    pairs = pairs_needed(EFFECT, deviation)
    return (
        f"| {name} | {len(found.log_ratios)} | {seconds:.1f} | {deviation:.3f} | "
        f"{1e3 * cost.variance_s:.2f} ({1e3 * cost.low:.2f} to {1e3 * cost.high:.2f}) | "
        f"{alternating_cost / cost.variance_s:.1f} | {pairs} | {pairs * seconds:.0f} |"
    )


def main() -> None:
    """Prints a table for each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("--load-max", type=float, default=math.inf, help="leave busier pairs out")
    arguments = parser.parse_args()
    lines = [json.loads(text) for text in arguments.pairs.read_text().splitlines()]
    lines = [line for line in lines if line["load"] <= arguments.load_max]
    for case in sorted({line["case"] for line in lines}):
        mine = [line for line in lines if line["case"] == case]
        loads = sorted(line["load"] for line in mine)
        print(f"\n{case}, {len(mine)} pairs, load {loads[0]:.1f} to {loads[-1]:.1f}\n")
        print(
            "| way | pairs | s a pair | sd of log ratio | variance x s, thousandths | "
            "times better | pairs for 5 % | seconds for 5 % |"
        )
        print("|---|---|---|---|---|---|---|---|")
        found = ways(mine)
        alternating = found["alternating"]
        reference = machine_cost(
            alternating.log_ratios, alternating.seconds, np.random.default_rng(1)
        ).variance_s
        for name, estimates in found.items():
            print(row(name, estimates, reference))


if __name__ == "__main__":
    main()
