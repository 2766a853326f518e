"""The ratios of all metrics beside the one that decides, with intervals that hold together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lsmtune.proof.verdict import bounds_of
from lsmtune.records.goal import Goal
from lsmtune.records.measurement import Measurement
from lsmtune.records.objective import METRICS, Direction, Objective, default_direction
from lsmtune.records.totals import TOTAL_METRICS
from lsmtune.records.verdict import MetricRatio
from lsmtune.stats.paired import MINIMUM_PAIRS
from lsmtune.stats.sequential import sequential_ratio

# What a user of an engine pays with, in the order in which it is shown. Counts and bytes of
# flushes and compactions, which explain these, are left to the report.
REPORTED = (
    "sustained_throughput_ops_s",
    "throughput_ops_s",
    "drain_s",
    "latency_us_p50",
    "latency_us_p99",
    "write_amplification",
    "read_amplification",
    "space_amplification",
    "cpu_us_per_operation",
    "rss_bytes_max",
    "database_bytes",
)

Runs = Sequence[Measurement]  # of one side of one pair: one per workload


@dataclass(frozen=True)
class Others:
    """`ratios` of metrics, each at the confidence `each`; None where there are none."""

    ratios: tuple[MetricRatio, ...] = ()
    each: float | None = None


def other_ratios(
    goal: Goal, baselines: Sequence[Runs], candidates: Sequence[Runs], confidence: float
) -> Others:
    """Every metric that was observed but the one that decides; objectives of several come first.

    Element i of both sides is of the same pair. All intervals together hold at `confidence`: with m
    of them, each is at 1 - (1 - confidence) / m (C. E. Bonferroni, 1936; O. J. Dunn, Journal of the
    American Statistical Association 56, 1961). m counts every metric that some run observed, also
    those that have no ratio because a value is not above zero, so that it does not depend on the
    values. Several workloads have the weighted geometric mean of their values.
    """
    runs = [run for side in (*baselines, *candidates) for run in side]
    objectives = _objectives(goal, runs)
    sides = {o: (_values(goal, o, baselines), _values(goal, o, candidates)) for o in objectives}
    observed = [o for o, both in sides.items() if any(v is not None for s in both for v in s)]
    if not observed:
        return Others()
    each = 1.0 - (1.0 - confidence) / len(observed)
    own = goal.objectives if goal.several else ()
    # Which way a number is better that a program made up, nobody said.
    directions = [o.direction.value if o in own or o.metric in METRICS else "" for o in observed]
    ratios = [_ratio(o, d, *sides[o], each) for o, d in zip(observed, directions, strict=True)]
    kept = [r for o, r in zip(observed, ratios, strict=True) if o in own or r.ratio is not None]
    return Others(tuple(kept), each)


def _objectives(goal: Goal, runs: Runs) -> list[Objective]:
    """What may be shown: objectives of several, then metrics of the phase that is judged."""
    phase = goal.objectives[0].phase
    several_phases = any(sum(p.kind == "measure" for p in run.phases) > 1 for run in runs)
    own = list(goal.objectives) if goal.several else []
    known = [Objective(name, default_direction(name), phase) for name in REPORTED]
    if several_phases:
        known += [Objective(name, Direction.MINIMIZE) for name in TOTAL_METRICS]
    programs = dict.fromkeys(name for run in runs for name in run.reported)
    known += [Objective(name, Direction.MINIMIZE) for name in programs]
    shown = {objective.label for objective in goal.objectives}
    return own + [objective for objective in known if objective.label not in shown]


def _values(goal: Goal, objective: Objective, sides: Sequence[Runs]) -> list[float | None]:
    alone = Goal((objective,), goal.shares)
    return [alone.value(side) for side in sides]


def _ratio(
    objective: Objective,
    direction: str,
    baseline: Sequence[float | None],
    candidate: Sequence[float | None],
    confidence: float,
) -> MetricRatio:
    found = MetricRatio(objective.label, direction)
    base = [value for value in baseline if value is not None and value > 0]
    other = [value for value in candidate if value is not None and value > 0]
    if len(base) < max(len(baseline), MINIMUM_PAIRS) or len(other) < len(candidate):
        return found
    interval = sequential_ratio(base, other, confidence)
    low, high = bounds_of(interval)
    return replace(found, ratio=interval.ratio, ratio_low=low, ratio_high=high)
