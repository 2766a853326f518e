"""How far a smaller scale ranks configurations as the target does, by what was recorded at both.

    .venv/bin/python benchmarks/landscape/scales.py docs/benchmarks/landscape/writing.jsonl

For each scale: Spearman's correlation with the target, the pairs that are in the same order, and
what the target makes of the configuration that is the best at the scale, and of the best of those
that are the four best there. The last is what a study does: it runs so many again before its proof.
And by how much the logarithm of a value over the target's varies beyond the noise of runs.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from record import read_rows
from replay import pooled_variance, rank_correlation

from lsmtune.study.budget import PROMOTED_MAX
from lsmtune.study.promotion import in_same_order
from workloads import METRIC

Runs = Mapping[str, Sequence[float]]


def runs_of(rows: Sequence[Mapping[str, Any]], scale: float) -> Runs:
    """The values of each configuration at one scale; the options as JSON name it."""
    runs: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row["scale"] == scale and row["outcome"] == "ok" and row[METRIC]:
            runs[json.dumps(row["options"], sort_keys=True)].append(row[METRIC])
    return runs


def spread_beyond_noise(small: Runs, large: Runs) -> float:
    """The standard deviation of the logarithm of one over the other that noise does not explain."""
    logs = [[list(map(math.log, each)) for each in runs.values()] for runs in (small, large)]
    noises = [pooled_variance(each) for each in logs]
    names = [name for name in small if name in large]
    means = [[statistics.fmean(map(math.log, runs[n])) for n in names] for runs in (small, large)]
    ratios = [there - here for here, there in zip(*means, strict=True)]
    noise = statistics.fmean(noises[0] / len(small[n]) + noises[1] / len(large[n]) for n in names)
    return math.sqrt(max(0.0, statistics.variance(ratios) - noise))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("raw", type=Path, nargs="+")
    for path in parser.parse_args().raw:
        rows = read_rows(path)
        runs = {scale: runs_of(rows, scale) for scale in sorted({row["scale"] for row in rows})}
        medians = {
            scale: {name: statistics.median(values) for name, values in each.items()}
            for scale, each in runs.items()
        }
        target = medians.pop(1.0)
        for scale, small in medians.items():
            both = [(value, target[name]) for name, value in small.items() if name in target]
            ranked = [there for _, there in sorted(both, reverse=True)]
            same, pairs = in_same_order(both)
            correlation = rank_correlation(*(np.array(side) for side in zip(*both, strict=True)))
            first, of_four = (max(ranked[:count]) / max(ranked) for count in (1, PROMOTED_MAX))
            print(
                f"{rows[0]['workload']} at {scale:g}: {len(both)} configurations, rank correlation "
                f"{correlation:.2f}, {same} of {pairs} pairs ({100 * same / pairs:.0f} %) in the "
                f"same order; its best is {first:.2f} of the best at the target, the best of its "
                f"{PROMOTED_MAX} best {of_four:.2f}; beyond noise the ratio to the "
                f"target varies by {spread_beyond_noise(runs[scale], runs[1.0]):.2f}"
            )


if __name__ == "__main__":
    main()
