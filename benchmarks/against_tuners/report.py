"""What the searches of `compare.py` came to, once they are verified: a table per workload.

    .venv/bin/python benchmarks/against_tuners/report.py docs/benchmarks/against_tuners/runs.jsonl

A gain is the verified one over the baseline (`compare.gains`) of what a tuner would have
recommended after so many seconds; figures are medians over seeds. *Within 5 %* is the second at
which a tuner first recommended a configuration within 5 % of the best that anybody found, verified;
`never` where most seeds did not come to it. Only what it recommended at a mark is verified: it may
have been as good before. *Sooner* and *better* compare with the best peer: of those as their
users run them, and of those with our starts and loaded databases. *As good*: the second at which it
first recommended what gains at least what that peer comes to in the end.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cases import CASES, Search, name_of, read_lines, searches
from compare import GUARDED, gains, verified
from tuners import PEERS, PRESET, SHORT, WITH_OURS

WITHIN = 1.05
LIMITS = dict(zip(GUARDED, (1.5, 1.25, 1.25), strict=True))  # times the baseline's
_ALONE = (*PEERS, PRESET, *(name + SHORT for name in PEERS))
_OURS = tuple(name + WITH_OURS for name in PEERS)


def since(search: Search, seconds: float) -> float:
    """From which second on it recommended what it does after `seconds`; 0 for the baseline."""
    since_s, current = 0.0, CASES[search.key[0]].baseline_name
    for at_s, options in search.incumbents:
        if at_s <= seconds and name_of(options) != current:
            since_s, current = at_s, name_of(options)
    return since_s


def reached(search: Search, seconds: Sequence[float], gained: Mapping[str, float]) -> float:
    """The second at which it first recommended what is within 5 % of the best; infinite: never."""
    least = max(gained.values()) / WITHIN
    for mark_s in sorted(seconds):
        if gained.get(name_of(search.at(mark_s)), 0.0) >= least:
            return since(search, mark_s)
    return math.inf


def matched(search: Search, gained: Mapping[str, float], least: float) -> float:
    """The second at which it first recommended what gains `least`; infinite: never."""
    good = (at_s for at_s, options in search.incumbents if gained.get(name_of(options), 0) >= least)
    return next(good, math.inf)


def breaking(lines: Iterable[Mapping[str, Any]], workload: str) -> dict[str, list[str]]:
    """The guards that a configuration breaks, by name: medians of its runs over the baseline's."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for line in verified(lines, workload):
        for name in GUARDED:
            if line[name] is not None:
                found[line["config"]][name].append(line[name])
    medians = {c: {n: statistics.median(v) for n, v in each.items()} for c, each in found.items()}
    base = medians.get(CASES[workload].baseline_name, {})
    return {
        config: [n for n, value in each.items() if n in base and value > LIMITS[n] * base[n]]
        for config, each in medians.items()
    }


def table(lines: Sequence[Mapping[str, Any]], workload: str, marks: Sequence[float]) -> list[str]:
    """The lines of the table of a workload."""
    found: dict[str, list[Search]] = defaultdict(list)
    for search in searches(lines):
        if search.key[0] == workload:
            found[search.key[1]].append(search)
    gained, broken = gains(lines, workload), breaking(lines, workload)
    if not found or not gained:
        return [f"## {workload}", "", "nothing is verified"]
    whole_s = max(search.seconds for runs in found.values() for search in runs)
    marks_s = [mark * whole_s for mark in marks]

    def gain_at(tuner: str, seconds: float) -> float:
        known = [gained.get(name_of(search.at(seconds)), math.nan) for search in found[tuner]]
        return statistics.median(known)

    times = {t: [reached(s, marks_s, gained) for s in runs] for t, runs in found.items()}
    soon = {tuner: statistics.median(each) for tuner, each in times.items()}
    rivals = [[t for t in group if t in found] for group in (_ALONE, _OURS)]
    heads = ["tuner", "seeds", "trials", *(f"gain, {s:.0f} s" for s in marks_s), "within 5 %"]
    heads += ["of them", "guards hold"]
    heads += ["sooner", "better", "as good", "sooner (+ours)", "better (+ours)", "as good (+ours)"]
    rows = []
    for tuner in sorted(found, key=lambda t: (soon[t], -gain_at(t, whole_s))):
        runs = found[tuner]
        held = [not broken.get(name_of(search.at(whole_s))) for search in runs]
        cells = [tuner, str(len(runs)), f"{statistics.median(s.trials for s in runs):.0f}"]
        cells += [f"{gain_at(tuner, mark_s):.2f}x" for mark_s in marks_s]
        cells += ["never" if math.isinf(soon[tuner]) else f"{soon[tuner]:.0f} s"]
        came = sum(map(math.isfinite, times[tuner]))
        cells += [f"{came} of {len(runs)}", f"{sum(held)} of {len(runs)}"]
        for group in rivals:
            others = [other for other in group if other != tuner]
            cells += [sooner(soon[tuner], [soon[o] for o in others], whole_s)]
            best = max((gain_at(other, whole_s) for other in others), default=math.nan)
            as_good_s = statistics.median(matched(search, gained, best) for search in runs)
            as_good = "never" if math.isinf(as_good_s) else f"{as_good_s:.0f} s"
            better = f"{gain_at(tuner, whole_s) / best:.2f}x"
            cells += ["-", "-"] if math.isnan(best) else [better, as_good]
        rows.append(cells)
    name = CASES[workload].baseline_name
    baselines = [x for x in verified(lines, workload) if x["config"] == name]
    steady = sum(line["steady"] for line in baselines)
    return [
        f"## {workload}",
        "",
        *(f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *rows)),
        "",
        f"The best verified gain is {max(gained.values()):.2f}x, of {len(gained)} configurations. "
        f"{steady} of {len(baselines)} runs of the baseline were steady.",
    ]


def sooner(own_s: float, others_s: Sequence[float], whole_s: float) -> str:
    """How many times sooner than the soonest of the others."""
    best_s = min(others_s, default=math.nan)
    if math.isnan(best_s) or math.isinf(own_s):
        return "-"
    if math.isinf(best_s):
        return f"> {whole_s / max(own_s, 1.0):.1f}x"
    return f"{best_s / max(own_s, 1.0):.1f}x"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("output", type=Path)
    parser.add_argument("--marks", type=float, nargs="+", default=[0.125, 0.25, 0.5, 1.0])
    arguments = parser.parse_args()
    lines = read_lines(arguments.output)
    for workload in dict.fromkeys(line["workload"] for line in lines):
        print("\n".join([*table(lines, workload, arguments.marks), ""]))


if __name__ == "__main__":
    main()
