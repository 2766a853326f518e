"""The metrics: one entry each, from which every list, column and label of them is made.

A metric of the driver is a field of `PhaseMeasurement` (a latency percentile, of `Percentiles`)
and an entry here. The order of the entries is that of a report's CSV columns; a place where some of
them are shown has an order of its own (`shown`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

SUSTAINED = "sustained_throughput_ops_s"
BURST = "throughput_ops_s"
# What a study, a proof or a contest makes better unless the user says otherwise.
DEFAULT_METRIC = SUSTAINED
TOTAL_ELAPSED_S = "total_elapsed_s"
TOTAL_WITH_DRAIN_S = "total_with_drain_s"
# Rates in user bytes: keys and values that were written or read, in 10^6 bytes per second.
RATE_MB = "throughput_mb_s"
SUSTAINED_MB = "sustained_throughput_mb_s"
PHASE_TOTAL_S = "phase_with_drain_s"
# What the beginning of a run tells already.
RATES = frozenset({BURST, SUSTAINED})

# verdict: beside the metric that decides, and in the noise of calibrations and repeats.
# sustained: a report's table of burst and sustained.
# sweep, sweep_ratio: values of cells, and their ratios to the first cell.
# contest: what teams can be ranked by.
# runners: `bench --runner all --json`. bench, noise: the table of `bench`, and the noise below it.
Place = Literal[
    "verdict", "sustained", "sweep", "sweep_ratio", "contest", "runners", "bench", "noise"
]


class Level(StrEnum):
    """What a metric is of."""

    PHASE = "phase"
    LATENCY = "latency"  # of a phase, and of each operation type in it
    RUN = "run"  # of all measure phases of a run together
    COUNT = "count"  # what a phase did; nothing to make better
    COMPUTED = "computed"  # by a sweep, from metrics of a phase


@dataclass(frozen=True)
class Metric:
    """One metric; the last part of its `name` is its unit, and `says` is its one sentence.

    Attributes:
        label: in sentences, without its unit; made from the name where it is empty.
        short: beside other figures of the same phase; the label where it is empty.
        heading: what its line in the table of `bench` begins with, where that is not the label.
        higher_is_better: what an objective of this metric does unless the user says otherwise.
        judged: whether a verdict gives it an interval, and counts it in Bonferroni's correction.
        grows: whether a longer run of the same workload has more of it.
        sized: whether a run of a smaller workload has less of it, beside what grows.
        programs: whether other programs can tell it; else only lsmtune's driver can.
        percentile: of a latency percentile, between 0 and 100.
        shown: where it is shown, and at which position there; equal ones are in the order here.
    """

    name: str
    says: str
    level: Level = Level.PHASE
    label: str = ""
    short: str = ""
    heading: str = ""
    higher_is_better: bool = False
    judged: bool = False
    grows: bool = False
    sized: bool = False
    programs: bool = True
    percentile: float | None = None
    shown: Mapping[Place, int] = field(default_factory=dict)

    @property
    def bench(self) -> str:
        """What its line in the table of `bench` begins with; empty where it has none."""
        return (self.heading or label_of(self.name)) if "bench" in self.shown else ""


def _of_driver(name: str, says: str, **more: Any) -> Metric:
    """A metric that only lsmtune's driver can tell."""
    return Metric(name, says, programs=False, **more)


def _count(name: str, says: str, **more: Any) -> Metric:
    return Metric(name, says, Level.COUNT, **more)


def _computed(name: str, says: str, **more: Any) -> Metric:
    return Metric(name, says, Level.COMPUTED, **more)


def _percentile(
    name: str, percentile: float, label: str, shown: Mapping[Place, int], *, judged: bool = False
) -> Metric:
    return Metric(
        f"latency_us_{name}",
        f"{percentile:g} % of the operations took at most so long.",
        level=Level.LATENCY,
        label=f"{label} latency",
        heading=f"latency p{percentile:g}",
        judged=judged,
        percentile=percentile,
        shown={"bench": 6, **shown},
    )


REGISTRY = (
    _count("operations", "Operations of all threads.", shown={"bench": 1}),
    Metric(
        "elapsed_s",
        "From the first operation to the end of the last one.",
        grows=True,
        short="time until the last call",
        shown={"bench": 2, "sustained": 4, "sweep": 3, "runners": 3},
    ),
    _of_driver(
        "drain_s",
        "Time to flush and compact what the phase left.",
        sized=True,
        judged=True,
        shown={"bench": 5, "verdict": 3, "sustained": 3, "sweep": 4},
    ),
    Metric(
        BURST,
        "Operations per second until the last call returns.",
        label="throughput",
        short="burst",
        heading="burst",
        higher_is_better=True,
        judged=True,
        shown={
            **{"bench": 3, "verdict": 2, "sustained": 1, "sweep": 1, "sweep_ratio": 3},
            **{"contest": 2, "runners": 1, "noise": 2},
        },
    ),
    _of_driver(
        SUSTAINED,
        "Operations per second, the time to flush and drain included.",
        label="sustained throughput",
        short="sustained",
        heading="sustained",
        higher_is_better=True,
        judged=True,
        shown={
            **{"bench": 4, "verdict": 1, "sustained": 2, "sweep": 2, "sweep_ratio": 1},
            **{"contest": 1, "runners": 2, "noise": 1},
        },
    ),
    _of_driver(
        "user_bytes_written",
        "Key and value bytes handed to the engine.",
        higher_is_better=True,
        grows=True,
    ),
    _of_driver(
        "user_bytes_read",
        "Key and value bytes handed out by the engine.",
        higher_is_better=True,
        grows=True,
    ),
    Metric(
        "rss_bytes_max",
        "Peak resident memory of the process in this phase.",
        sized=True,
        label="peak resident memory",
        heading="peak memory",
        judged=True,
        shown={"bench": 18, "verdict": 10, "runners": 8},
    ),
    Metric(
        "database_bytes",
        "Bytes of all files of the database at the end of the phase.",
        sized=True,
        label="database size",
        heading="database",
        judged=True,
        shown={"bench": 19, "verdict": 11, "sweep": 14, "runners": 9},
    ),
    _of_driver(
        "database_bytes_max",
        "The most bytes that the files took during the phase, what follows its last call included.",
        sized=True,
        judged=True,
    ),
    Metric(
        "latency_us_mean",
        "The mean over all operations.",
        level=Level.LATENCY,
        shown={"contest": 3},
    ),
    _percentile(
        "p50", 50.0, "median", {"verdict": 4, "sweep": 5, "contest": 4, "runners": 4}, judged=True
    ),
    _percentile("p95", 95.0, "p95", {"contest": 5}),
    _percentile(
        "p99",
        99.0,
        "p99",
        {"verdict": 5, "sweep": 6, "sweep_ratio": 5, "contest": 6, "runners": 5, "noise": 3},
        judged=True,
    ),
    _percentile("p999", 99.9, "p99.9", {"contest": 7}),
    Metric(
        "latency_us_max",
        "The slowest operation.",
        level=Level.LATENCY,
        grows=True,
        heading="latency max",
        shown={"bench": 7, "runners": 6},
    ),
    _of_driver(
        "write_amplification",
        "Bytes that flushes and compactions wrote per byte of the user.",
        judged=True,
        shown={"bench": 8, "verdict": 6, "sustained": 10, "sweep": 12},
    ),
    _of_driver(
        "read_amplification",
        "Bytes read by system calls per byte that the user read, in phases that only read.",
        judged=True,
        shown={"bench": 9, "verdict": 7},
    ),
    _of_driver(
        "space_amplification",
        "Most bytes on disk during the phase per byte of live user data; live keys are estimated.",
        judged=True,
        shown={"bench": 10, "verdict": 8, "sweep": 13},
    ),
    Metric(
        "cpu_us_per_operation",
        "Processor time of the process per operation, the drain included.",
        label="CPU time per operation",
        heading="CPU per operation",
        judged=True,
        shown={"bench": 17, "verdict": 9, "sweep": 15, "runners": 7, "noise": 4},
    ),
    _of_driver(
        "stall_s",
        "Time for which the engine held writers back.",
        grows=True,
        shown={"bench": 16, "sustained": 11, "sweep": 16},
    ),
    _of_driver(
        "flushes",
        "Memtables written to level 0.",
        grows=True,
        shown={"bench": 11, "sustained": 5, "sweep": 10},
    ),
    _of_driver(
        "flush_bytes",
        "Bytes that flushes wrote.",
        grows=True,
        short="written by flushes",
        heading="flush bytes",
        shown={"bench": 12, "sustained": 6, "sweep": 11},
    ),
    _of_driver(
        "compactions",
        "Compactions that ended in this phase.",
        grows=True,
        shown={"bench": 13, "sustained": 7, "sweep": 7},
    ),
    _of_driver(
        "compaction_read_bytes",
        "Bytes that compactions read.",
        grows=True,
        short="read by compactions",
        shown={"bench": 14, "sustained": 8, "sweep": 8},
    ),
    _of_driver(
        "compaction_write_bytes",
        "Bytes that compactions wrote.",
        grows=True,
        short="written by compactions",
        shown={"bench": 15, "sustained": 9, "sweep": 9},
    ),
    _of_driver(
        "block_cache_hits",
        "Blocks that the phase's own reads had from the engine's block cache.",
        higher_is_better=True,
        grows=True,
    ),
    _of_driver("block_cache_misses", "Blocks that those reads had to fetch.", grows=True),
    _count("reads_checked", "Reads and entries of scans that were compared with what was written."),
    _count("keys_found", "Lookups that found their key.", shown={"bench": 20, "runners": 10}),
    _count(
        "keys_missing", "Lookups that did not find their key.", shown={"bench": 21, "runners": 11}
    ),
    Metric(
        TOTAL_ELAPSED_S,
        "All measure phases, each from its first operation to the end of its last one.",
        grows=True,
        level=Level.RUN,
        judged=True,
    ),
    _of_driver(
        TOTAL_WITH_DRAIN_S,
        "That, and the time to flush and compact what each of them left.",
        grows=True,
        level=Level.RUN,
        judged=True,
        shown={"sweep": 20},
    ),
    _computed(
        RATE_MB,
        "Keys and values that users wrote and read, over the time of the operations.",
        higher_is_better=True,
        shown={"sweep": 17, "sweep_ratio": 4},
    ),
    _computed(
        SUSTAINED_MB,
        "That, over the time to flush and drain as well.",
        higher_is_better=True,
        shown={"sweep": 18, "sweep_ratio": 2},
    ),
    _computed(
        PHASE_TOTAL_S,
        "The time of the operations, and the time to flush and drain.",
        shown={"sweep": 19, "sweep_ratio": 6},
    ),
)
BY_NAME: Mapping[str, Metric] = {metric.name: metric for metric in REGISTRY}

# What an objective or a constraint can name: of a phase, of a run, and both.
PHASE_METRICS = tuple(m.name for m in REGISTRY if m.level in (Level.PHASE, Level.LATENCY))
TOTAL_METRICS = tuple(m.name for m in REGISTRY if m.level is Level.RUN)
METRICS = (*PHASE_METRICS, *TOTAL_METRICS)
LATENCIES = frozenset(m.name for m in REGISTRY if m.level is Level.LATENCY)
PERCENTILES: Mapping[str, float] = {
    m.name: m.percentile for m in REGISTRY if m.percentile is not None
}
# Of which a longer run has more, so that runs of two lengths cannot be compared by it.
GROWING = frozenset(m.name for m in REGISTRY if m.grows)
# Of which a run on less data has less, so that a limit for the target says nothing of its model.
SIZED = frozenset(m.name for m in REGISTRY if m.grows or m.sized)
HIGHER_IS_BETTER = frozenset(m.name for m in REGISTRY if m.higher_is_better)
# What a constraint may call a metric for short.
SHORT_NAMES = {"db_bytes": "database_bytes"}

_RATE_UNITS = {"_ops_s": "ops/s", "_mb_s": "MB/s"}
_UNIT_ENDINGS = (*_RATE_UNITS, "_us_per_operation", "_bytes", "_us", "_s")


def shown_in(place: Place) -> tuple[str, ...]:
    """The names of the metrics that `place` shows, in its order."""
    here = (metric for metric in REGISTRY if place in metric.shown)
    return tuple(m.name for m in sorted(here, key=lambda m: m.shown[place]))


def unit_of(name: str) -> str:
    """The unit that a metric's name has, also one that a program made up; empty for numbers."""
    for ending, unit in _RATE_UNITS.items():
        if name.endswith(ending):
            return unit
    words = name.split("_")
    if words[-1] == "s":
        # `requests_s` of a program is a rate as likely as `startup_s` is a time.
        return "s" if name in BY_NAME else ""
    if "us" in words:
        return "µs"
    return "bytes" if "bytes" in words else ""


def label_of(name: str) -> str:
    """`latency_us_p99` as `p99 latency`: in words, without the unit."""
    metric = BY_NAME.get(name)
    if metric is not None and metric.label:
        return metric.label
    if name.startswith("latency_us_"):
        return f"{name.removeprefix('latency_us_')} latency"
    if unit_of(name):
        for ending in _UNIT_ENDINGS:
            name = name.removesuffix(ending)
    return name.replace("_", " ")
