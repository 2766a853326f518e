"""Which four trials should run at the target before one is proved: the best, or the best of kinds?

    D=docs/benchmarks/against_tuners; P=.venv/bin/python
    $P benchmarks/against_tuners/promoted.py $D/three_seeds.jsonl --output $D/promoted.jsonl

Of every search of `auto` both fours are measured at the whole workload, side by side in two rounds.
A study has one run of each and takes the best; so the best of one round is judged by the other, and
the other way round. Trials are ranked by their means, drawn to the median as `study.racing` does.

Whether a model ranks as the whole workload does, is printed too: of all configurations that were
measured at both sizes, with the baseline, how many pairs are in the same order.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cases import CASES, FIXED, Options, name_of, read_lines, study_spec
from compare import gains as verified_gains
from compare import side_by_side, verified

from lsmtune.study.budget import PROMOTED_MAX
from lsmtune.study.promotion import in_same_order, kinds_first

# The weight of the median, in runs: about that of a run that scatters less than trials do.
DRAWN = 0.5
Fours = dict[str, list[Options]]


def tried(
    lines: Sequence[Mapping[str, Any]], workload: str, seed: int
) -> tuple[dict[str, list[float]], dict[str, Options]]:
    """What a search of `auto` tried: the logarithms of the values, and the options, by name."""
    logs: dict[str, list[float]] = defaultdict(list)
    options: dict[str, Options] = {}
    for line in lines:
        own = (line["kind"], line["workload"], line.get("tuner"), line.get("seed"))
        if own == ("trial", workload, "auto", seed) and line["value"] > 0:
            known = {name: value for name, value in line["options"].items() if name not in FIXED}
            logs[name_of(known)].append(math.log(line["value"]))
            options[name_of(known)] = known
    return logs, options


def best_first(lines: Sequence[Mapping[str, Any]], workload: str, seed: int) -> list[Options]:
    """The configurations that a search of `auto` tried, without the baseline."""
    logs, options = tried(lines, workload, seed)
    middle = statistics.median(map(statistics.fmean, logs.values()))

    def drawn(name: str) -> float:
        runs = logs[name]
        return (statistics.fmean(runs) - middle) * len(runs) / (len(runs) + DRAWN)

    ranked = sorted(logs, key=drawn, reverse=True)
    baseline = CASES[workload].baseline_name
    return [options[name] for name in ranked if name != baseline]


def fours_of(lines: Sequence[Mapping[str, Any]], workload: str, seed: int) -> Fours:
    """The best four, and the best of four kinds."""
    ranked, space = best_first(lines, workload, seed), study_spec(CASES[workload]).space
    kinds = kinds_first(space, dict(enumerate(ranked)), CASES[workload].baseline, PROMOTED_MAX)
    return {"best": ranked[:PROMOTED_MAX], "kinds": [ranked[place] for place in kinds]}


def gains(lines: Sequence[Mapping[str, Any]], baseline: str, fours: Fours) -> dict[str, float]:
    """What the best of each four by one round gains in the other, over the baseline."""
    logs: dict[tuple[int, str], list[float]] = defaultdict(list)
    for line in lines:
        logs[line["round"], line["config"]].append(math.log(max(line["value"], 1e-9)))
    means = {key: statistics.fmean(values) for key, values in logs.items()}
    found = {}
    for kind, four in fours.items():
        names, judged = [name_of(options) for options in four], []
        for one, other in ((0, 1), (1, 0)):
            in_one = {name: means[one, name] for name in names}
            best = max(names, key=in_one.__getitem__)
            judged.append(means[other, best] - means[other, baseline])
        found[kind] = math.exp(statistics.fmean(judged))
    return found


def agreement(logs: Mapping[str, Sequence[float]], gained: Mapping[str, float]) -> tuple[int, int]:
    """Of the pairs that are known by the search and at the whole workload, how many agree; all."""
    names = logs.keys() & gained.keys()
    return in_same_order([(statistics.fmean(logs[name]), gained[name]) for name in names])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("searches", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--share", type=float, default=1.0, help="of records and operations")
    parser.add_argument("--rounds-folder", type=Path, default=Path("against-rounds"))
    arguments = parser.parse_args()
    lines = read_lines(arguments.searches)
    for workload in CASES:
        own = [x for x in lines if x["kind"] == "run" and x["workload"] == workload]
        seeds = sorted({line["seed"] for line in own if line["tuner"] == "auto"})
        if not seeds:
            continue
        fours = {seed: fours_of(lines, workload, seed) for seed in seeds}
        configs = {
            name_of(options): options
            for each in fours.values()
            for four in each.values()
            for options in four
        }
        if not verified(read_lines(arguments.output), workload):
            side_by_side(arguments, workload, configs, 2, final=False)
        measured = verified(read_lines(arguments.output), workload)
        whole = verified_gains([*measured, *lines], workload)
        baseline = CASES[workload].baseline_name
        for seed, each in fours.items():
            told = [f"{kind} {gain:.2f}x" for kind, gain in gains(measured, baseline, each).items()]
            same, pairs = agreement(tried(lines, workload, seed)[0], whole)
            told.append(f"{same} of {pairs} pairs in the same order")
            print(f"{workload}, seed {seed}: {', '.join(told)}")


if __name__ == "__main__":
    main()
