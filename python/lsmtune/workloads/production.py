"""Workloads of Facebook's production databases, as far as they are published.

Cao, Dong, Vemuri, Du: "Characterizing, Modeling, and Benchmarking RocksDB Key-Value Workloads at
Facebook", FAST 2020, and what RocksDB's authors published of it for db_bench's mixgraph. Each
figure has its source in `production_figures.py`; sizes are small here so that a run takes seconds,
and the published ones can be given. Where db_bench differs from its own model, this follows the
model: values and scans are drawn each by itself and conditioned on their bounds, not wrapped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from lsmtune.errors import InputError
from lsmtune.records.workload import (
    Distribution,
    Durability,
    Mix,
    PageCache,
    Phase,
    PhaseKind,
    SineRate,
    Workload,
)
from lsmtune.workloads.family import Figure, Given, WorkloadFamily
from lsmtune.workloads.parameter import (
    WorkloadParameter,
    choice_parameter,
    count_parameter,
    read_positive_duration,
)
from lsmtune.workloads.parameters import (
    COLUMN_FAMILIES,
    DATABASES,
    DURABILITY,
    DURATION,
    PAGE_CACHE,
    THREADS_MAX,
    compression_parameter,
)
from lsmtune.workloads.production_figures import SOCIAL_GRAPH, UDB, UP2X, ZIPPYDB
from lsmtune.workloads.sizes import largest_size, mean_size

CLOSED, SINE = "closed", "sine"
# Values of mixgraph are at most `mix_max_value_size`, scans at most `mix_max_scan_len`, by its
# defaults; values at least 10 bytes (db_bench_tool.cc).
_VALUES = {"low": 10, "high": 1024}
_SCANS = {"low": 1, "high": 10_000}
# The wave is A sin(B t + C) + D; db_bench keeps t in seconds.
_FULL_TURN = 2 * math.pi


@dataclass(frozen=True)
class Production:
    """A published workload: `num` and `operations` are the small ones.

    `wave` is A, B, C and D of the rate, where one is published.
    """

    name: str
    description: str
    operations: tuple[tuple[str, float], ...]
    keys: Distribution
    value_sizes: Distribution
    figures: tuple[Figure, ...]
    key_bytes: int = 48
    key_sizes: Distribution | None = None
    scan_lengths: Distribution | None = None
    wave: tuple[float, float, float, float] | None = None
    num: int = 500_000
    operation_count: int = 500_000


# -key_dist_a/b and -keyrange_dist_a to d of the commands for ZippyDB.
_ZIPPYDB_KEYS = Distribution.of(
    "ranges",
    ranges=30,
    a=14.18,
    b=-2.917,
    c=0.0164,
    d=-0.08082,
    key_a=0.002312,
    key_b=0.3467,
)
_ZIPPYDB_SCANS = Distribution.of("pareto", theta=0.0, k=2.517, sigma=14.236, **_SCANS)
_BENCHMARK_MIX = (("get", 0.83), ("put", 0.14), ("scan", 0.03))

_PRODUCTION = (
    Production(
        name="zippydb",
        description="ZippyDB, a distributed key-value store: gets on hot key ranges, some puts",
        operations=(("get", 0.85), ("put", 0.14), ("scan", 0.01)),
        keys=_ZIPPYDB_KEYS,
        value_sizes=Distribution.of("pareto", theta=0.0, k=0.2615, sigma=25.45, **_VALUES),
        scan_lengths=_ZIPPYDB_SCANS,
        wave=(1000.0, 0.000073, 0.0, 4500.0),
        figures=ZIPPYDB,
    ),
    Production(
        name="udb",
        description="UDB, the storage layer of MySQL for the social graph: small keys and values",
        operations=_BENCHMARK_MIX,
        keys=Distribution.of("zipfian", theta=0.7094),
        value_sizes=Distribution.of("normal", mean=126.7, sd=22.1, low=1, high=1024),
        key_bytes=40,
        key_sizes=Distribution.of("normal", mean=27.1, sd=2.6, low=8, high=40),
        scan_lengths=Distribution.of("pareto", theta=0.0, k=0.0819, sigma=1.747, **_SCANS),
        figures=UDB,
    ),
    Production(
        name="up2x",
        description="UP2X, counters of machine learning: nearly all merges (RocksDB only)",
        operations=(("merge", 0.9253), ("get", 0.0746), ("put", 0.0001)),
        keys=Distribution("uniform"),
        value_sizes=Distribution.of("normal", mean=46.8, sd=11.6, low=1, high=1024),
        key_bytes=18,
        key_sizes=Distribution.of("normal", mean=10.45, sd=1.4, low=8, high=18),
        figures=UP2X,
    ),
    Production(
        name="social-graph",
        description="the social graph: power-law keys, values of some hundred bytes, short scans",
        operations=_BENCHMARK_MIX,
        keys=Distribution.of("zipfian", theta=0.7094),
        value_sizes=Distribution.of("pareto", theta=0.0, k=0.923, sigma=226.409, **_VALUES),
        scan_lengths=Distribution.of("pareto", theta=0.0, k=0.0819, sigma=1.747, **_SCANS),
        wave=(147.9, 8.3e-5, -1.734, 1064.2),
        figures=SOCIAL_GRAPH,
    ),
)


def _parameters(published: Production) -> Mapping[str, WorkloadParameter]:
    wave = published.wave
    period_s = None if wave is None else round(_FULL_TURN / wave[1])
    arrival = (
        choice_parameter(
            "arrival",
            "closed: as fast as it goes; sine: at the published rate, which waves",
            CLOSED,
            (CLOSED, SINE),
        ),
        WorkloadParameter(
            "period_s",
            "length of the rate's wave; the published one when not set",
            None,
            "s",
            f"a duration above 0; the published one is {period_s} s",
            read_positive_duration,
        ),
    )
    parameters = (
        count_parameter("num", "keys of the database", published.num, 1),
        count_parameter(
            "operations",
            "operations of the measure phase over all threads",
            published.operation_count,
            1,
        ),
        DURATION,
        count_parameter("threads", "threads of the load and of the run", 1, 1, THREADS_MAX),
        *(arrival if wave is not None else ()),
        DURABILITY,
        PAGE_CACHE,
        compression_parameter(0.5),
        DATABASES,
        COLUMN_FAMILIES,
    )
    return {parameter.name: parameter for parameter in parameters}


def _build(published: Production, given: Given, source: str) -> Workload:
    if given.get("period_s") is not None and given["arrival"] != SINE:
        why = "has no effect without arrival=sine"
        raise InputError(source, "period_s", why=why)
    mix = Mix(
        operations=published.operations,
        records=given["num"],
        keys=published.keys,
        scan_lengths=published.scan_lengths,
        value_sizes=published.value_sizes,
    )
    inserts = Mix((("insert", 1.0),), records=0, value_sizes=published.value_sizes)
    threads = given["threads"]
    phases = (
        Phase("load", PhaseKind.LOAD, mix=inserts, operations=given["num"], threads=threads),
        Phase("settle", PhaseKind.SETTLE),
        Phase(
            "run",
            PhaseKind.MEASURE,
            mix=mix,
            operations=None if given["duration_s"] is not None else given["operations"],
            duration_s=given["duration_s"],
            threads=threads,
            rate=_rate(published, given),
        ),
    )
    return Workload(
        name=published.name,
        phases=phases,
        num=given["num"],
        key_bytes=_key_bytes(published),
        value_bytes=round(mean_size(published.value_sizes)),
        compression_ratio=given["compression_ratio"],
        durability=Durability(given["durability"]),
        page_cache=PageCache(given["page_cache"]),
        key_sizes=published.key_sizes,
        databases=given["databases"],
        column_families=given["column_families"],
    )


def _key_bytes(published: Production) -> int:
    sizes = published.key_sizes
    return published.key_bytes if sizes is None else largest_size(sizes)


def _rate(published: Production, given: Given) -> SineRate | None:
    """A sin(B t + C) + D as a mean, an amplitude, a period and an offset in time."""
    if published.wave is None or given["arrival"] != SINE:
        return None
    amplitude, turn_s, phase, mean = published.wave
    period_s = given["period_s"] or _FULL_TURN / turn_s
    return SineRate(mean, amplitude, period_s, (phase % _FULL_TURN) / _FULL_TURN * period_s)


def _prepare(given: Mapping[str, object], source: str) -> dict[str, object]:
    if given.get("operations") is not None and given.get("duration_s") is not None:
        why = "has no effect together with duration_s"
        raise InputError(source, "operations", why=why, allowed="one of the two")
    return dict(given)


def _family(published: Production) -> WorkloadFamily:
    parameters = _parameters(published)
    waves = (
        {}
        if "arrival" in parameters
        else dict.fromkeys(("arrival", "period_s"), "no rate of it is published in numbers")
    )
    return WorkloadFamily(
        name=published.name,
        description=published.description,
        parameters=parameters,
        build=partial(_build, published),
        no_effect=waves,
        prepare=_prepare,
        figures=published.figures,
        sizes=("num", "operations"),
    )


PRODUCTION_FAMILIES = tuple(_family(published) for published in _PRODUCTION)
