"""Where each figure of the production workloads is from, and what nobody has published.

The commands are those that RocksDB's authors gave for db_bench's mixgraph: on the wiki page
"RocksDB Trace, Replay, Analyzer, and Workload Generation", in facebook/rocksdb pull request 5953
and in FAST 2020. Figures that were taken from others who cite an original say so, and so do those
that could not be verified at all.
"""

from __future__ import annotations

from lsmtune.workloads.family import Figure

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
