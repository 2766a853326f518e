"""A first study file for an engine and a workload, commented, to be edited by its reader."""

from __future__ import annotations

from collections.abc import Mapping

from lsmtune.pruners import PRUNERS
from lsmtune.samplers import SAMPLERS
from lsmtune.workloads import NAMED_WORKLOADS, WORKLOAD_PARAMETERS, complete_parameters

TEMPLATE_ENGINES = ("rocksdb", "leveldb")

_LIBRARY_HINT = "  # library: /path/to/lib.so   # found by itself when not given (lsmtune engines)"

# Ranges that hold the engine's default and do not go where a run of seconds could not tell.
_WRITE_SPACE = {
    "rocksdb": """\
  # Bytes in memory before a table is written. Multiples of 1 MiB, on a log scale.
  write_buffer_size: {type: int, low: 1MiB, high: 64MiB, log: true, step: 1MiB, default: 64MiB}
  # From 4 up, so that it stays above min_write_buffer_number_to_merge, as RocksDB demands.
  max_write_buffer_number: {type: int, low: 4, high: 8}
  min_write_buffer_number_to_merge: {type: int, low: 1, high: 3, default: 1}
  level0_file_num_compaction_trigger: {type: int, low: 2, high: 16, default: 4}
  max_background_jobs: {type: int, low: 1, high: 4, default: 2}
  compression:
    type: categorical
    choices: [kNoCompression, kSnappyCompression, kLZ4Compression]
  enable_pipelined_write: {type: categorical, choices: [false, true], default: false}
  allow_concurrent_memtable_write: {type: categorical, choices: [false, true], default: true}
""",
    "leveldb": """\
  # Bytes in memory before a table is written. Multiples of 1 MiB, on a log scale.
  write_buffer_size: {type: int, low: 1MiB, high: 64MiB, log: true, step: 1MiB, default: 4MiB}
  # Bytes of a table file: larger ones make fewer and longer compactions.
  max_file_size: {type: int, low: 1MiB, high: 64MiB, log: true, step: 1MiB, default: 2MiB}
  block_size: {type: int, low: 1KiB, high: 64KiB, log: true, step: 1KiB, default: 4KiB}
  block_restart_interval: {type: int, low: 4, high: 64, log: true, default: 16}
  compression: {type: categorical, choices: [snappy, none], default: snappy}
""",
}
_READ_SPACE = {
    "rocksdb": """\
  # Nested options are named with a dot.
  block_based_table_factory.block_size: {type: int, low: 1KiB, high: 64KiB, log: true, step: 1KiB}
  block_based_table_factory.block_cache: {type: int, low: 8MiB, high: 256MiB, log: true, step: 8MiB}
  block_based_table_factory.filter_policy:
    type: categorical
    choices: [nullptr, "bloomfilter:10:false"]
  compression:
    type: categorical
    choices: [kNoCompression, kSnappyCompression, kLZ4Compression]
  write_buffer_size: {type: int, low: 1MiB, high: 64MiB, log: true, step: 1MiB, default: 64MiB}
""",
    "leveldb": """\
  block_size: {type: int, low: 1KiB, high: 64KiB, log: true, step: 1KiB, default: 4KiB}
  block_restart_interval: {type: int, low: 4, high: 64, log: true, default: 16}
  # Bytes of the cache of uncompressed blocks.
  cache_size: {type: int, low: 8MiB, high: 256MiB, log: true, step: 8MiB, default: 8MiB}
  compression: {type: categorical, choices: [snappy, none], default: snappy}
  max_file_size: {type: int, low: 1MiB, high: 64MiB, log: true, step: 1MiB, default: 2MiB}
""",
}
_ONE_PHASE = (
    "sustained_throughput_ops_s",
    "# Sustained: the time to flush what is in memory and to finish compactions is charged.",
)
_OF_SEVERAL_PHASES = frozenset({"put-get-delete"})
_SEVERAL_PHASES = (
    "total_with_drain_s",
    "# All phases together; the time to flush and to finish compactions is charged.",
)
_WRITES = frozenset({"fillseq", "fillrandom", "overwrite", "deleterandom", "put-get-delete"})

_TEMPLATE = """\
# A study of lsmtune: what is tuned, under which workload, within which limits.
#   lsmtune tune {file_name}
version: 1
name: {engine}-{workload}

engine:
  name: {engine}
{library_hint}

# {description}.
workload:
  name: {workload}
{parameters}
{about_objective}
# Others: throughput_ops_s, latency_us_p99, write_amplification, rss_bytes_max, ...
# Several, of which a front is searched: objectives: [{{metric: ...}}, {{metric: ...}}]
objective:
  metric: {metric}

# What the best configuration has to beat: default, the options that you run today, an option file,
# or a preset (`lsmtune options {engine} --presets`):
#   baseline: {{write_buffer_size: 32MiB}}
baseline: default

# Options of every run, of the baseline and of the candidates:
#   options: {{max_open_files: 1000}}

# What is searched, in the engine's own names. Kinds: int, float, categorical. A value outside the
# range with a meaning of its own goes under `special: [-1]`; `when: {{other: value}}` makes a
# parameter active only while another one has that value. `lsmtune options {engine}` has them all,
# and --spaces lists ready ones.
{space}
# What must hold of options, before a run, and of metrics, after it:
#   constraints: [write_buffer_size <= 64MiB, latency_us_p99 <= 2000]

# {samplers}
sampler:
  name: {sampler}

# Ends runs that look bad: {pruners}
#   pruner: {{name: median, rungs: {{every: 1s}}}}

# Whichever comes first; the time is that of the whole study, its proof included.
budget:
  time: {budget}
  # trials: 100

# One run that passes a limit is stopped and counts as failed; the study goes on.
limits:
  deadline: 5m
  memory: 4GiB
  disk: 20GiB

# The best configuration and the baseline meet in pairs of fresh runs, at most so many: the proof
# ends as soon as its interval says enough, and says what it would take where it never does.
proof:
  pairs: 30
  confidence: 0.95
  # What is too small to matter, so that a proof may end as equivalent:
  #   smallest_effect: 3%

# Noise: pairs of the baseline against itself before the search, trials between two anchors (runs of
# the baseline, against which drift is seen), and runs of a trial that may be the best:
#   noise: {{calibration: 3, anchors: 10, repeats: 3}}

# Runs on a loaded database start from copies of one that was loaded once, in the study's folder:
#   databases: {{reuse: true, size: 20GiB}}

seed: 0
"""


def study_text(
    engine: str,
    workload: str,
    parameters: Mapping[str, object],
    budget: str,
    file_name: str,
    *,
    space: str | None = None,
    sampler: str = "tpe",
) -> str:
    """A study file for `workload` on `engine` (one of `TEMPLATE_ENGINES`).

    `space` is the name of a ready one; a short one that suits the workload is written out without
    it. `parameters`, `budget`, `space` and `sampler` are written as they are: the caller has
    checked them.
    """
    spaces = _WRITE_SPACE if workload in _WRITES else _READ_SPACE
    metric, about = _SEVERAL_PHASES if workload in _OF_SEVERAL_PHASES else _ONE_PHASE
    return _TEMPLATE.format(
        engine=engine,
        workload=workload,
        library_hint=_LIBRARY_HINT,
        description=NAMED_WORKLOADS[workload].description.capitalize(),
        parameters=_parameter_lines(workload, parameters),
        space=f"space:\n{spaces[engine]}" if space is None else f"space: {space}\n",
        sampler=sampler,
        samplers=", ".join(SAMPLERS),
        pruners=", ".join(name for name in PRUNERS if name != "none"),
        metric=metric,
        about_objective=about,
        budget=budget,
        file_name=file_name,
    )


def _parameter_lines(workload: str, given: Mapping[str, object]) -> str:
    """The given parameters, the two that matter most, and the others as comments."""
    lines = []
    for name, default in complete_parameters(workload, {}, "template").items():
        about = WORKLOAD_PARAMETERS[name].description
        if name in given or name in ("num", "value_bytes"):
            lines.append(f"  # {about}\n  {name}: {given.get(name, default)}\n")
        else:
            value = "" if default is None else f" {default}"
            lines.append(f"  # {name}:{value}   # {about}\n")
    return "".join(lines)
