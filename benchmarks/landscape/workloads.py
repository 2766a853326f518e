"""What the landscapes are of: three workloads, a space of eight options, and the points in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from lsmtune.engines.catalogue import catalogue_defaults
from lsmtune.engines.ready import known_spaces
from lsmtune.experiment.schedule import Stream, derive_seed
from lsmtune.model.config import OptionValue
from lsmtune.model.goal import Direction, WeightedWorkload
from lsmtune.model.workload import Workload
from lsmtune.search.sampler import Problem
from lsmtune.search.searcher import Searcher
from lsmtune.search.starts import model_optima, preset_starts, projected, textbook_starts
from lsmtune.search.unit_space import UnitSpace, make_unit_space
from lsmtune.space.parameter import make_categorical, make_number
from lsmtune.space.range import Range
from lsmtune.space.space import Space, make_space
from lsmtune.workloads.stated import make_workload

MIB = 2**20
Options = Mapping[str, OptionValue]
_TABLE = "block_based_table_factory"
_MODELS_SEED = derive_seed(12, Stream.SAMPLER, 0)  # as in `study.start`


@dataclass(frozen=True)
class Recorded:
    """A workload at the target: what is run, what it is judged by, and its memory."""

    workload: Workload
    memory_bytes: int


# A measured run takes some 3 to 6 seconds on two cores. What is read is larger than the memory,
# which holds the page cache as well.
RECORDED: Mapping[str, Recorded] = {
    "writing": Recorded(
        make_workload("overwrite", {"num": 200_000, "value_bytes": 400}, "landscape"), 1024 * MIB
    ),
    "reading": Recorded(
        make_workload("ycsb-c", {"recordcount": 200_000, "operationcount": 150_000}, "landscape"),
        192 * MIB,
    ),
    "mixed": Recorded(
        make_workload("ycsb-a", {"recordcount": 200_000, "operationcount": 150_000}, "landscape"),
        256 * MIB,
    ),
}
METRIC = "sustained_throughput_ops_s"


def make_landscape_space() -> Space:
    """Eight options that matter on these workloads, with ranges that fit their data."""
    basic = {parameter.name: parameter for parameter in known_spaces()["rocksdb-basic"].parameters}
    return make_space(
        [
            make_number("write_buffer_size", Range(MIB, 64 * MIB, log=True, step=MIB)),
            make_number("max_bytes_for_level_base", Range(4 * MIB, 256 * MIB, log=True, step=MIB)),
            make_number("target_file_size_base", Range(MIB, 64 * MIB, log=True, step=MIB)),
            make_number("level0_file_num_compaction_trigger", Range(2, 16)),
            make_number(f"{_TABLE}.block_size", Range(1024, 65536, log=True, step=1024)),
            make_number(f"{_TABLE}.block_cache", Range(2 * MIB, 128 * MIB, log=True, step=MIB)),
            make_categorical(f"{_TABLE}.filter_policy", ("nullptr", "bloomfilter:10")),
            make_categorical("compression", basic["compression"].choices),
        ]
    )


def problem_of(name: str, version: str | None, cores: int) -> Problem:
    """What is known of the workload `name` before a run."""
    recorded = RECORDED[name]
    known = catalogue_defaults("rocksdb", version)
    workloads = [WeightedWorkload(name, recorded.workload, 1.0)]
    return Problem("rocksdb", workloads, known, recorded.memory_bytes, cores)


def accepts(name: str, values: Options) -> str:
    """Why a configuration would be killed for its memory; empty where it would not."""
    held = 2 * int(values["write_buffer_size"]) + int(values[f"{_TABLE}.block_cache"])
    return "" if held <= 0.9 * RECORDED[name].memory_bytes else "too much memory"


def _parts(
    name: str, version: str | None, cores: int
) -> tuple[Problem, UnitSpace, dict[str, OptionValue] | None]:
    """What is known of a landscape before a run, its space, and the defaults as a point of it."""
    problem, unit_space = problem_of(name, version, cores), make_unit_space(make_landscape_space())
    return problem, unit_space, projected(unit_space, problem.defaults, problem.defaults)


def starts(name: str, version: str | None, cores: int, each: int) -> list[Options]:
    """The defaults, and what the textbook says: `each` presets and optima at most."""
    problem, unit_space, default = _parts(name, version, cores)
    accepted = partial(accepts, name)
    found = textbook_starts(problem, unit_space, accepted, default, _MODELS_SEED, each)
    return found if default is None else [default, *found]


def textbook(name: str, version: str | None, cores: int) -> list[tuple[str, Options]]:
    """The defaults, all presets that suit, and optima of cost models: recorded in any case."""
    problem, unit_space, default = _parts(name, version, cores)
    found: list[tuple[str, Options]] = [] if default is None else [("default", default)]
    found += preset_starts(problem, unit_space).items()
    optima = model_optima(problem, unit_space, partial(accepts, name), default, _MODELS_SEED)
    found += [(f"cost model {index}", values) for index, values in enumerate(optima)]
    kept: list[tuple[str, Options]] = []
    for label, values in found:
        if not accepts(name, values) and values not in [known for _, known in kept]:
            kept.append((label, values))
    return kept


def points(name: str, count: int, version: str | None, cores: int) -> list[tuple[str, Options]]:
    """`count` configurations with labels: the textbook's, then Sobol points.

    The first ones are the same whatever the count.
    """
    found = textbook(name, version, cores)
    searcher = Searcher(
        make_landscape_space(),
        "sobol",
        {},
        0,
        [Direction.MAXIMIZE],
        accepts=lambda values: accepts(name, values),
    )
    while len(found) < count:
        values = dict(searcher.ask().values)
        if values not in [known for _, known in found]:
            found.append(("sobol", values))
    return found[:count]
