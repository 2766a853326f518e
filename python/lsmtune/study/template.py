"""A first study file for an engine and a workload, commented, to be edited by its reader."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from lsmtune.engines.differences import option_unit
from lsmtune.engines.ready import known_spaces
from lsmtune.machine.host import usable_cores
from lsmtune.model.config import OptionValue
from lsmtune.model.metrics import SUSTAINED, TOTAL_WITH_DRAIN_S
from lsmtune.model.workload import NAME_LENGTH_MAX, Workload
from lsmtune.search.cost_models import kinds_of
from lsmtune.search.pruners import PRUNERS
from lsmtune.search.samplers import SAMPLERS
from lsmtune.study.models import StudyModel
from lsmtune.units import exact_bytes, parse_bytes
from lsmtune.workloads.distributions import data_bytes
from lsmtune.workloads.parameter import AGING
from lsmtune.workloads.stated import FAMILIES, complete_parameters

# What is searched unless `init` is told, below the kinds of workload for which each option counts.
# The ranges hold the engine's default, and do not go where a run of seconds could not tell.
# Without any writes a memtable decides but how a load leaves the tree, and the next load pays.
_ANY_WRITES, _CONCURRENT = "any writes", "concurrent writing"
_WRITING, _MIXED, _READING = "writing", "mixed", "reading"
_SPACES = {
    "rocksdb": """\
[any writes]
  # Bytes in memory before a table is written. Multiples of 1 MiB, on a log scale.
  write_buffer_size: {type: int, low: 1MiB, high: 64MiB, log: true, step: 1MiB, default: 64MiB}
[writing]
  max_write_buffer_number: {type: int, low: 2, high: 8, default: 2}
  min_write_buffer_number_to_merge: {type: int, low: 1, high: 3, default: 1}
[writing, mixed]
  level0_file_num_compaction_trigger: {type: int, low: 2, high: 16, default: 4}
  # The first level below; compactions of level 0 rewrite what of it overlaps.
  max_bytes_for_level_base:
    {type: int, low: 64MiB, high: 512MiB, log: true, step: 64MiB, default: 256MiB}
  max_background_jobs: {type: int, low: 1, high: JOBS_HIGH, default: 2}
[mixed, reading]
  # Nested options are named with a dot.
  block_based_table_factory.block_size: {type: int, low: 1KiB, high: 64KiB, log: true, step: 1KiB}
  # Blocks that are held uncompressed; what it takes, the page cache lacks.
  block_based_table_factory.block_cache:
    {type: int, low: 8MiB, high: CACHE_HIGH, log: true, step: 8MiB, default: 32MiB}
  # Says which files cannot hold a key, so that they need not be read.
  block_based_table_factory.filter_policy:
    type: categorical
    choices: [nullptr, "bloomfilter:10:false"]
    default: nullptr
[writing, mixed, reading]
  compression:
    type: categorical
    choices: [kNoCompression, kSnappyCompression, kLZ4Compression]
[concurrent writing]
  enable_pipelined_write: {type: categorical, choices: [false, true], default: false}
  allow_concurrent_memtable_write: {type: categorical, choices: [false, true], default: true}
""",
    "leveldb": """\
[any writes]
  # Bytes in memory before a table is written. Multiples of 1 MiB, on a log scale.
  write_buffer_size: {type: int, low: 1MiB, high: 64MiB, log: true, step: 1MiB, default: 4MiB}
[writing, mixed, reading]
  # Bytes of a table file: larger ones make fewer and longer compactions.
  max_file_size: {type: int, low: 1MiB, high: 64MiB, log: true, step: 1MiB, default: 2MiB}
  block_size: {type: int, low: 1KiB, high: 64KiB, log: true, step: 1KiB, default: 4KiB}
  block_restart_interval: {type: int, low: 4, high: 64, log: true, default: 16}
[mixed, reading]
  # Bytes of the cache of uncompressed blocks; what it takes, the page cache lacks.
  cache_size: {type: int, low: 8MiB, high: CACHE_HIGH, log: true, step: 8MiB, default: 8MiB}
  # Bits for each key of a filter that says which files cannot hold a key; 0: none.
  filter_bits: {type: int, low: 4, high: 16, special: [0], default: 0}
[writing, mixed, reading]
  compression: {type: categorical, choices: [snappy, none], default: snappy}
""",
}
_PART = re.compile(r"^\[(.+)\]\n((?:  .*\n)+)", re.MULTILINE)
# As RocksDB demands: it lowers what it merges in silence.
_MERGED = "min_write_buffer_number_to_merge < max_write_buffer_number"
_CACHE_STEP_BYTES, _CACHE_HIGH_LEAST_BYTES = 8 << 20, 64 << 20
_ONE_PHASE = (
    SUSTAINED,
    "# Sustained: the time to flush what is in memory and to finish compactions is charged.",
)
_SEVERAL_PHASES = (
    TOTAL_WITH_DRAIN_S,
    "# All phases together; the time to flush and to finish compactions is charged.",
)
# Of a workload that writes in less than this share of its operations the run alone does not bring
# the tree into use: it was twice as fast in the beginning as at the end.
_SELDOM = 0.2
_RARE = 0.1  # share of the operations below which the options of reads, or of writes, hardly count
# Parameters that are written out, not as comments, because they are the size of the work.
_SIZES = ("num", "value_bytes", "recordcount", "operationcount", "operations", "threadcount")

_TEMPLATE = """\
# A study of lsmtune: what is tuned, under which workload, within which limits.
#   lsmtune tune {file_name}
version: 1
name: {engine}-{workload_name}

engine:
  name: {engine}
  # library: /path/to/lib.so   # found by itself when not given (lsmtune engines)

# {description}.
workload:
{workload}
{about_objective}
# Others: throughput_ops_s, latency_us_p99, write_amplification, rss_bytes_max, ...
# Several, of which a front is searched: objectives: [{{metric: ...}}, {{metric: ...}}]
objective:
  metric: {metric}

# What the best configuration has to beat: default, the options that you run today, an option file,
# or a preset (`lsmtune options {engine} --presets`):
#   baseline: {{write_buffer_size: 32MiB}}
{baseline}

# Options of every run, of the baseline and of the candidates:
#   options: {{max_open_files: 1000}}
{options}
# What is searched, in the engine's own names. Kinds: int, float, categorical. A value outside the
# range with a meaning of its own goes under `special: [-1]`; `when: {{other: value}}` makes a
# parameter active only while another one has that value. `lsmtune options {engine}` has them all,
# and --spaces lists ready ones.
{space}
# What must hold of options, before a run, and of metrics, after it:
#   constraints: [write_buffer_size <= 64MiB, latency_us_p99 <= 2000]
{constraints}
# {samplers}
sampler:
  name: {sampler}

# Ends runs that look bad: {pruners}
# (with the sampler auto those that are far behind; none: each run ends by itself)
#   pruner: {{name: none}}

# Whichever comes first; the time is that of the whole study, its proof included.
budget:
  time: {budget}
  # trials: 100

# What a gain may cost. By default write amplification may be 1.5 times the baseline's, space
# amplification and every p99 latency 1.25 times:
#   guards: [write_amplification <= 1.5 * baseline]

# Runs that are too short to show what is sustained are made longer before the search. To ask what a
# burst gains:
#   burst: true

# One run that passes a limit is stopped and counts as failed; the study goes on. The memory is that
# of the machine you deploy on: the page cache of the run's files counts.
limits:
  deadline: 5m
  memory: {memory}
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
    fields: Mapping[str, object],
    budget: str,
    file_name: str,
    *,
    workload: Workload,
    space: str | None = None,
    sampler: str = "auto",
    memory: str = "4GiB",
    options: Mapping[str, OptionValue] | None = None,
) -> str:
    """A study file for `workload`, which `fields` state, on `engine` (of `ENGINE_KINDS`).

    `space` is the name of a ready one; a short one that suits the workload is written out without
    it. `options` are what runs today: those of the space become the baseline, others those of
    every run. All is written as it is: the caller has checked it.
    """
    own = _space_for(workload, engine, parse_bytes(memory))
    several = len(workload.measured_phases) > 1
    metric, about_objective = _SEVERAL_PHASES if several else _ONE_PHASE
    if space is not None:
        searched = {parameter.name for parameter in known_spaces()[space].parameters}
    else:
        searched = set(re.findall(r"^  (\w[\w.]*):", own, re.MULTILINE))
    merges = space is None and "min_write_buffer_number_to_merge" in searched
    fixed = {n: v for n, v in (options or {}).items() if n not in searched}
    today = {n: v for n, v in (options or {}).items() if n in searched}
    family = FAMILIES.get(str(fields.get("name")))
    if family and AGING.name in family.parameters and 0 < kinds_of(workload)["writes"] < _SELDOM:
        fields = {AGING.name: 1, **fields}
    about = family.description if family else f"the workload {workload.name}"
    return _TEMPLATE.format(
        engine=engine,
        workload_name=workload.name[: NAME_LENGTH_MAX - len(f"{engine}-")],
        workload=_workload_lines(fields),
        description=about[:1].upper() + about[1:],
        baseline="\n".join(_field("baseline", today or "default", engine, {})),
        options="\n".join([*_field("options", fixed, engine, {}), ""]) if fixed else "",
        space=f"space:\n{own}" if space is None else f"space: {space}\n",
        constraints=f"constraints: [{_MERGED}]\n" if merges else "",
        sampler=sampler,
        samplers=", ".join(SAMPLERS),
        pruners=", ".join(name for name in PRUNERS if name != "none"),
        metric=metric,
        about_objective=about_objective,
        budget=budget,
        memory=memory,
        file_name=file_name,
    )


def _space_for(workload: Workload, engine: str, memory_bytes: int) -> str:
    """The options that count under `workload`.

    A cache may have half of the memory, and no more than what all data take in it.
    """
    shares = kinds_of(workload)
    kind = _READING if shares["writes"] < _RARE else _MIXED
    kind = _WRITING if shares["writes"] > 1 - _RARE else kind
    useful_bytes = min(memory_bytes // 2, 5 * data_bytes(workload) // 4)  # with indexes
    useful_bytes = max(_CACHE_HIGH_LEAST_BYTES, useful_bytes)
    high_bytes = useful_bytes // _CACHE_STEP_BYTES * _CACHE_STEP_BYTES
    several = any(phase.threads > 1 for phase in workload.measured_phases)
    wanted = {kind, _CONCURRENT} if several and kind != _READING else {kind}
    if any(phase.writes for phase in workload.measured_phases):
        wanted.add(_ANY_WRITES)
    parts = _PART.findall(_SPACES[engine])
    text = "".join(lines for kinds, lines in parts if wanted.intersection(kinds.split(", ")))
    jobs = str(max(4, len(usable_cores())))
    return text.replace("CACHE_HIGH", _size(high_bytes)).replace("JOBS_HIGH", jobs)


def _workload_lines(fields: Mapping[str, object]) -> str:
    """The given parameters, those of size, and the others as comments."""
    if "file" in fields:
        return f"  file: {json.dumps(fields['file'])}\n"
    name = str(fields["name"])
    lines = [f"  name: {name}\n"]
    given = {key: value for key, value in fields.items() if key != "name"}
    for parameter in FAMILIES[name].parameters.values():
        about = parameter.description
        default = complete_parameters(name, {}, "template")[parameter.name]
        if parameter.name in given or parameter.name in _SIZES:
            value = given.get(parameter.name, default)
            if isinstance(parameter.default, str):  # YAML takes a bare `null` or `a #b` for less
                value = _inline(value)
            lines.append(f"  # {about}\n  {parameter.name}: {value}\n")
        else:
            shown = "" if default is None else f" {default}"
            lines.append(f"  # {parameter.name}:{shown}   # {about}\n")
    others = {key: value for key, value in given.items() if key not in FAMILIES[name].parameters}
    return "".join([*lines, *(f"  {key}: {_inline(value)}\n" for key, value in others.items())])


# --- A study file's text from its fields: in the usual order, sizes with units, a line each.

# Fields whose names are options, so that a number may be a size.
_OF_OPTIONS = ("baseline", "options")
_SIZED = ("low", "high", "step", "default")
_LINE_MAX = 100
_PLAIN = re.compile(
    r"[A-Za-z_/][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*|([0-9.]+(ms|[hms]))+", re.ASCII
)
# Plain words that YAML, old or new, reads as something else than text.
_WORDS = frozenset(["true", "false", "yes", "no", "on", "off", "y", "n", "null", "none"])


def render_study(
    raw: Mapping[str, Any], comments: Mapping[str, str] | None = None, header: tuple[str, ...] = ()
) -> str:
    """The text of a study file whose fields are `raw`; it reads back as the same values.

    `comments` maps a dotted field (`space.name`, `workload`) to a line that stands above it;
    `header` are the lines of a comment at the top.
    """
    about = dict(comments or {})
    engine = str((raw.get("engine") or {}).get("name", ""))
    lines = [f"# {line}" for line in header]
    known = [name for name in StudyModel.model_fields if name in raw]
    block = False
    for name in [*known, *(name for name in raw if name not in known)]:
        if name in about or isinstance(raw[name], Mapping | list) or block:
            lines.append("")
        block = isinstance(raw[name], Mapping | list)
        lines += _comment(about.get(name), "")
        lines += _field(name, raw[name], engine, about)
    return "\n".join(lines) + "\n"


def render_options(options: Mapping[str, Any], engine: str) -> str:
    """Options as a mapping, to stand under `baseline:` or `options:` of a study file."""
    sized = _sized_options(options, engine)
    return "".join(f"{name}: {_inline(value)}\n" for name, value in sized.items())


def _comment(text: str | None, indent: str) -> list[str]:
    return [] if text is None else [f"{indent}# {' '.join(text.split())}"]


def _field(name: str, value: Any, engine: str, comments: Mapping[str, str]) -> list[str]:
    if isinstance(value, list):
        return [f"{name}:", *(f"  - {_inline(item)}" for item in value)]
    if not isinstance(value, Mapping) or not value:
        return [f"{name}: {_inline(value)}"]
    if name in _OF_OPTIONS:
        value = _sized_options(value, engine)
    lines = [f"{name}:"]
    for key, item in value.items():
        lines += _comment(comments.get(f"{name}.{key}"), "  ")
        shown = _sized(item) if name == "space" else item
        line = f"  {_inline(key)}: {_inline(shown)}"
        if len(line) <= _LINE_MAX or not isinstance(shown, Mapping):
            lines.append(line)
            continue
        lines.append(f"  {_inline(key)}:")
        lines += [f"    {_inline(inner)}: {_inline(value)}" for inner, value in shown.items()]
    return lines


def _inline(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_inline(k)}: {_inline(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    if isinstance(value, str) and not isinstance(value, _Size):
        plain = _PLAIN.fullmatch(value) is not None and value.lower() not in _WORDS
        return value if plain else json.dumps(value, ensure_ascii=False)
    return str(value) if not isinstance(value, float) else repr(value)


class _Size(str):
    """A size with its unit, which needs no quotes."""


def _sized_options(options: Mapping[str, Any], engine: str) -> dict[str, Any]:
    return {
        name: _size(value) if option_unit(engine, name) == "bytes" else value
        for name, value in options.items()
    }


def _sized(parameter: Any) -> Any:
    """A parameter of a size with its bounds as sizes; the unit then goes without saying."""
    if not isinstance(parameter, Mapping) or parameter.get("unit") != "bytes":
        return parameter
    sized = {k: _size(v) if k in _SIZED else v for k, v in parameter.items()}
    if any(isinstance(value, _Size) for value in sized.values()):
        del sized["unit"]
    return sized


def _size(value: Any) -> Any:
    """`value` in the largest unit of which it is a whole multiple."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1024:
        return value
    return _Size(exact_bytes(value)) or value
