"""Workloads of Facebook's production databases, as far as they are published.

Cao, Dong, Vemuri, Du: "Characterizing, Modeling, and Benchmarking RocksDB Key-Value Workloads at
Facebook", FAST 2020, and what RocksDB's authors published of it for db_bench's mixgraph: commands
on the wiki page "RocksDB Trace, Replay, Analyzer, and Workload Generation", in facebook/rocksdb
pull request 5953 and in FAST 2020. Figures that were taken from others who cite an original say
so, and so do those that could not be verified at all.

Sizes are small here so that a run takes seconds, and the published ones can be given. Where
db_bench differs from its own model, this follows the model: values and scans are drawn each by
itself and conditioned on their bounds, not wrapped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

from lsmtune.errors import InputError
from lsmtune.model.distribution import Distribution
from lsmtune.model.setting import Setting, duration, one_of, whole
from lsmtune.model.workload import (
    THREADS_MAX,
    Durability,
    Mix,
    PageCache,
    Phase,
    PhaseKind,
    SineRate,
    Workload,
)
from lsmtune.workloads.distributions import mean_size
from lsmtune.workloads.parameter import (
    AGING,
    COLUMN_FAMILIES,
    DATABASES,
    DURABILITY,
    DURATION,
    PAGE_CACHE,
    Figure,
    Given,
    WorkloadFamily,
    aged,
    compression_parameter,
    not_beside_duration,
    settings_by_name,
)

_WIKI = "RocksDB wiki, Trace, Replay, Analyzer, and Workload Generation: command for ZippyDB"
_PULL = "facebook/rocksdb pull request 5953, commit 8ea087ad16: command in its message"
_SOCIAL = "RocksDB wiki, as a research note cites it; not checked against the original"
_TABLE_2 = "FAST 2020, table 2, as a research note cites it; not checked against the original"
_PAPER = "FAST 2020, its command for mixgraph, as repositories that use it repeat it"
_NOT_VERIFIED = "said of FAST 2020, section 4; NOT VERIFIED, as no text of it was at hand"
_MIXGRAPH = "db_bench_tool.cc: bounds that mixgraph has unless told otherwise"

_COMPRESSION = Figure("compression_ratio", "0.5, the default of db_bench")
_THREADS = Figure("threads", "1; the commands leave it to db_bench")
_ORDER = Figure(
    "which keys are hot",
    "the hottest are neighbours: only how hot the first, second, ... are is published",
)
_BENCHMARK_RATIOS = Figure(
    "operations",
    "get 0.83, put 0.14, scan 0.03: those of the paper's own benchmark, which is of ZippyDB",
)

ZIPPYDB = (
    Figure("operations", "get 0.85, put 0.14, scan 0.01", _WIKI),
    Figure("operations, in the paper's command", "get 0.83, put 0.14, scan 0.03", _PAPER),
    Figure("hotness of key ranges", "14.18 exp(-2.917 x) + 0.0164 exp(-0.08082 x)", _WIKI),
    Figure("key ranges", "30", _WIKI),
    Figure("hotness within a range", "0.002312 x^0.3467", _PULL),
    Figure("value_sizes", "generalised Pareto, k 0.2615, sigma 25.45, theta 0", _WIKI),
    Figure("bounds of values", "10 to 1024 bytes", _MIXGRAPH),
    Figure("scan_lengths", "generalised Pareto, k 2.517, sigma 14.236, theta 0", _WIKI),
    Figure("bounds of scans", "at most 10000 entries", _MIXGRAPH),
    Figure("key_bytes", "48", _WIKI),
    Figure("key and value sizes", "keys 47.9 (sd 3.7), values 42.9 (sd 26.1) bytes", _TABLE_2),
    Figure("rate", "1000 sin(0.000073 t) + 4500 operations per second, a wave a day", _WIKI),
    Figure("full size", "num 50000000, operations 420000000", _WIKI),
    Figure("deletes", "none, as in the command; the paper counts some without a model of them"),
    _THREADS,
    _COMPRESSION,
)
UDB = (
    Figure("key_sizes", "mean 27.1, sd 2.6 bytes", _TABLE_2),
    Figure("value_sizes", "mean 126.7, sd 22.1 bytes", _TABLE_2),
    Figure("shape of both", "normal; only mean and deviation are published"),
    Figure("hotness of keys", "0.001636 x^-0.7094, that of the social graph", _SOCIAL),
    Figure(
        "scan_lengths", "generalised Pareto, k 0.0819, sigma 1.747, of the social graph", _SOCIAL
    ),
    _BENCHMARK_RATIOS,
    Figure("rate", "closed loop; a day's wave is described, without numbers"),
    Figure("size", "num 500000: a database's number of keys is not published"),
    Figure("column_families", "1; the paper has six, without the share of each here"),
    _ORDER,
    _THREADS,
    _COMPRESSION,
)
UP2X = (
    Figure("operations", "merge 0.9253, get 0.0746, put 0.0001", _NOT_VERIFIED),
    Figure("key_sizes", "mean 10.45, sd 1.4 bytes", _TABLE_2),
    Figure("value_sizes", "mean 46.8, sd 11.6 bytes", _TABLE_2),
    Figure(
        "shape of both", "normal, keys of 8 bytes at least; only mean and deviation are published"
    ),
    Figure("merge operator", "put, an operand is a whole new value; theirs adds counters"),
    Figure("hotness of keys", "uniform; no model of it is published"),
    Figure("rate", "closed loop; no model of it is published"),
    Figure("size", "num 500000: a database's number of keys is not published"),
    _THREADS,
    _COMPRESSION,
)
SOCIAL_GRAPH = (
    Figure("hotness of keys", "0.001636 x^-0.7094 + 3.217e-9, here a Zipfian of 0.7094", _SOCIAL),
    Figure("value_sizes", "generalised Pareto, k 0.923, sigma 226.409, theta 0", _SOCIAL),
    Figure("bounds of values", "10 to 1024 bytes", _MIXGRAPH),
    Figure("scan_lengths", "generalised Pareto, k 0.0819, sigma 1.747, theta 0", _SOCIAL),
    Figure("rate", "147.9 sin(8.3e-5 t - 1.734) + 1064.2 operations per second", _SOCIAL),
    _BENCHMARK_RATIOS,
    Figure("key_bytes", "48, as in the command for ZippyDB"),
    Figure("size", "num 500000: the number of keys is not published"),
    _ORDER,
    _THREADS,
    _COMPRESSION,
)


CLOSED, SINE = "closed", "sine"
_COUNT = 500_000  # keys and operations, unless told otherwise
# Values of mixgraph are at most `mix_max_value_size`, scans at most `mix_max_scan_len`, by its
# defaults; values at least 10 bytes (db_bench_tool.cc).
_VALUES = {"low": 10, "high": 1024}
_SCANS = {"low": 1, "high": 10_000}


@dataclass(frozen=True)
class Production:
    """A published workload. `wave`, where one is published, is A, B, C and D of its rate.

    The rate is A sin(B t + C) + D operations per second, with t in seconds.
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


# -key_dist_a/b and -keyrange_dist_a to d of the commands for ZippyDB.
_ZIPPYDB_KEYS = Distribution.of(
    "ranges", ranges=30, a=14.18, b=-2.917, c=0.0164, d=-0.08082, key_a=0.002312, key_b=0.3467
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


def _build(published: Production, given: Given, source: str) -> Workload:
    if given.get("period_s") is not None and given["arrival"] != SINE:
        why = "has no effect without arrival=sine"
        raise InputError(source, "period_s", why=why)
    ranges = published.keys.get("ranges")
    if isinstance(ranges, int) and given["num"] < ranges:
        allowed = f"at least {ranges}, a key for each of its key ranges"
        raise InputError(source, "num", found=given["num"], allowed=allowed)
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
    workload = Workload(
        name=published.name,
        phases=phases,
        num=given["num"],
        key_bytes=published.key_bytes,
        value_bytes=round(mean_size(published.value_sizes)),
        compression_ratio=given["compression_ratio"],
        durability=Durability(given["durability"]),
        page_cache=PageCache(given["page_cache"]),
        key_sizes=published.key_sizes,
        databases=given["databases"],
        column_families=given["column_families"],
    )
    return aged(workload, given["aging"])


def _rate(published: Production, given: Given) -> SineRate | None:
    """A sin(B t + C) + D as a mean, an amplitude, a period and an offset in time."""
    if published.wave is None or given["arrival"] != SINE:
        return None
    amplitude, turn_s, phase, mean = published.wave
    period_s = given["period_s"] or math.tau / turn_s
    return SineRate(mean, amplitude, period_s, (phase % math.tau) / math.tau * period_s)


_ARRIVAL = Setting(
    "arrival",
    "closed: as fast as it goes; sine: at the published rate, which waves",
    CLOSED,
    one_of(CLOSED, SINE),
)


def _family(published: Production) -> WorkloadFamily:
    arrival: tuple[Setting, ...] = ()
    if published.wave is not None:
        about = "length of the rate's wave; the published one when not set"
        period_s = round(math.tau / published.wave[1])
        allowed = f"a duration above 0; the published one is {period_s} s"
        arrival = (_ARRIVAL, Setting("period_s", about, None, duration(allowed)))
    no_wave = dict.fromkeys(("arrival", "period_s"), "no rate of it is published in numbers")
    return WorkloadFamily(
        name=published.name,
        description=published.description,
        parameters=settings_by_name(
            (
                Setting("num", "keys of the database", _COUNT, whole(1)),
                Setting(
                    "operations",
                    "operations of the measure phase over all threads",
                    _COUNT,
                    whole(1),
                ),
                DURATION,
                Setting("threads", "threads of the load and of the run", 1, whole(1, THREADS_MAX)),
                *arrival,
                DURABILITY,
                PAGE_CACHE,
                compression_parameter(0.5),
                DATABASES,
                COLUMN_FAMILIES,
                AGING,
            )
        ),
        build=partial(_build, published),
        no_effect={} if arrival else no_wave,
        prepare=partial(not_beside_duration, "operations"),
        figures=published.figures,
        sizes=("num", "operations"),
    )


PRODUCTION_FAMILIES = tuple(_family(published) for published in _PRODUCTION)
