"""What the landscapes are of: three workloads, a space of eight options, and the points in it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from lsmtune.engines.catalogue import catalogue_defaults
from lsmtune.experiment.schedule import Stream, derive_seed
from lsmtune.model.config import OptionValue
from lsmtune.model.goal import Direction, WeightedWorkload
from lsmtune.search.sampler import Problem
from lsmtune.search.searcher import Searcher
from lsmtune.search.starts import model_optima, preset_starts, projected, textbook_starts
from lsmtune.search.unit_space import make_unit_space
from lsmtune.study.build import parse_spec
from lsmtune.study.spec import Spec

Options = Mapping[str, OptionValue]
METRIC = "sustained_throughput_ops_s"
CORES = 2  # of the machine of all recordings
_MODELS_SEED = derive_seed(12, Stream.SAMPLER, 0)  # as in `study.start`
# Eight options that matter on these workloads, with ranges that fit their data.
_STUDY = """\
version: 1
name: landscape
engine: {{name: rocksdb}}
workload: {workload}
objective: {{metric: sustained_throughput_ops_s}}
space:
  write_buffer_size: {{type: int, low: 1MiB, high: 64MiB, log: true, step: 1MiB}}
  max_bytes_for_level_base: {{type: int, low: 4MiB, high: 256MiB, log: true, step: 1MiB}}
  target_file_size_base: {{type: int, low: 1MiB, high: 64MiB, log: true, step: 1MiB}}
  level0_file_num_compaction_trigger: {{type: int, low: 2, high: 16}}
  block_based_table_factory.block_size: {{type: int, low: 1KiB, high: 64KiB, log: true, step: 1KiB}}
  block_based_table_factory.block_cache:
    {{type: int, low: 2MiB, high: 128MiB, log: true, step: 1MiB}}
  block_based_table_factory.filter_policy:
    {{type: categorical, choices: [nullptr, "bloomfilter:10"]}}
  compression:
    type: categorical
    choices: [kNoCompression, kSnappyCompression, kLZ4Compression, kZSTD]
sampler: {{name: {sampler}}}
limits: {{memory: {memory}}}
budget: {{trials: {trials}}}
seed: {seed}
"""
# The workload at the target, and its memory. A measured run takes some 3 to 6 seconds on two cores.
# What is read is larger than the memory, which holds the page cache as well.
_TARGETS = {
    "writing": ("{name: overwrite, num: 200000, value_bytes: 400}", "1GiB"),
    "reading": ("{name: ycsb-c, recordcount: 200000, operationcount: 150000}", "192MiB"),
    "mixed": ("{name: ycsb-a, recordcount: 200000, operationcount: 150000}", "256MiB"),
}


def study_of(name: str, sampler: str = "random", trials: int = 1, seed: int = 0) -> Spec:
    """A study of the workload `name` at the target."""
    workload, memory = _TARGETS[name]
    asked = {"sampler": sampler, "trials": trials, "seed": seed}
    return parse_spec(_STUDY.format(workload=workload, memory=memory, **asked), Path("study.yaml"))


RECORDED = {name: study_of(name) for name in _TARGETS}
UNIT = make_unit_space(RECORDED["writing"].space)


def problem_of(name: str, version: str | None, cores: int = CORES) -> Problem:
    """What is known of the workload `name` before a run."""
    study, known = RECORDED[name], catalogue_defaults("rocksdb", version)
    workloads = [WeightedWorkload(name, study.workload, 1.0)]
    return Problem("rocksdb", workloads, known, study.limits.memory_bytes, cores)


def accepts(name: str, values: Options) -> str:
    """Why a configuration would be killed for its memory; empty where it would not."""
    held = 2 * int(values["write_buffer_size"])
    held += int(values["block_based_table_factory.block_cache"])
    return "" if held <= 0.9 * RECORDED[name].limits.memory_bytes else "too much memory"


def default_of(problem: Problem) -> dict[str, OptionValue] | None:
    """The engine's defaults as a point of the space, which has all of them."""
    return projected(UNIT, problem.defaults, problem.defaults)


def starts(name: str, version: str | None) -> list[Options]:
    """What `auto` begins with: the defaults, and what the textbook says."""
    problem = problem_of(name, version)
    default = default_of(problem)
    found = textbook_starts(problem, UNIT, partial(accepts, name), default, _MODELS_SEED)
    return [default, *found]


def points(name: str, count: int, version: str | None, cores: int) -> list[tuple[str, Options]]:
    """`count` configurations with labels: the textbook's, then Sobol points.

    The textbook's are the defaults, all presets that suit, and optima of cost models. The first
    ones are the same whatever the count.
    """
    problem, accepted = problem_of(name, version, cores), partial(accepts, name)
    default = default_of(problem)
    optima = model_optima(problem, UNIT, accepted, default, _MODELS_SEED)
    found: list[tuple[str, Options]] = []
    textbook = [("default", default), *preset_starts(problem, UNIT).items()]
    textbook += [(f"cost model {index}", values) for index, values in enumerate(optima)]
    for label, values in textbook:
        if not accepted(values) and values not in [known for _, known in found]:
            found.append((label, values))
    searcher = Searcher(UNIT.space, "sobol", {}, 0, [Direction.MAXIMIZE], accepts=accepted)
    while len(found) < count:
        values = dict(searcher.ask().values)
        if values not in [known for _, known in found]:
            found.append(("sobol", values))
    return found[:count]
