"""An analytic write-heavy LSM store: throughput as a function of 16 options, and its true optimum.

Not a model to predict an engine with, but one with the same kinds of difficulty: options that act
through products (buffer size x number of buffers), an optimum inside the ranges, options that exist
only under others, special values, failures, and noise. Per operation it adds up, in microseconds:

- *memtable*: a skip list's insertion, growing with the logarithm of the buffer;
- *compression*: processor time per byte, against a smaller volume on disk;
- *disk*: (log + flush + compaction) bytes over the bandwidth. Level compaction rewrites a byte
  `multiplier / 2 + 1` times per level (O'Neil et al. 1996; Dong et al., CIDR 2017, section 2), with
  the first level's own cost where its size does not fit the sum of the files above it. Universal
  compaction rewrites it once per merge of `width` runs, less often with a larger size ratio, which
  costs reads and space;
- *stalls*: buffers that fill up before they are flushed, a slow-down trigger too close to the
  compaction trigger, many files in level 0, too few background jobs, and too many of them for the
  processors;
- *memory*: buffers beyond 512 MiB take the page cache away; beyond 3 GiB the store is killed.

A run's throughput is that times a lognormal noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from lsmtune.model.config import OptionValue
from lsmtune.search.unit_space import UnitSpace
from lsmtune.space.parameter import make_categorical, make_condition, make_number
from lsmtune.space.range import Range
from lsmtune.space.space import Space, make_space

FloatArray = npt.NDArray[np.float64]
Columns = Mapping[str, FloatArray]

MIB = 2**20
DATA_MIB = 20_480.0  # what the store holds
VALUE_BYTES = 116.0  # one key and its value
DISK_MIB_S = 400.0
CPUS = 4.0
BUFFERS_COMFORTABLE_MIB = 512.0
BUFFERS_MAX_MIB = 3_072.0

STYLES = ("level", "universal")
COMPRESSIONS = ("none", "lz4", "zstd")

# The best that `optimum.py` found (it says how); a test searches for a better one.
OPTIMUM_OPS_S = 566_829.2


def make_landscape_space() -> Space:
    """The space: 16 options, 5 of them conditional, one with a special value."""
    level = make_condition("compaction_style", "level", "space")
    universal = make_condition("compaction_style", "universal", "space")
    zstd = make_condition("compression", "zstd", "space")
    return make_space(
        [
            make_number("write_buffer_size", Range(MIB, 512 * MIB, log=True, step=MIB)),
            make_number("max_write_buffer_number", Range(2, 12)),
            make_number("min_write_buffer_number_to_merge", Range(1, 4)),
            make_categorical("compaction_style", STYLES),
            make_number(
                "max_bytes_for_level_base",
                Range(16 * MIB, 4096 * MIB, log=True, step=MIB),
                conditions=[level],
            ),
            make_number("max_bytes_for_level_multiplier", Range(3, 20), conditions=[level]),
            make_number("universal.size_ratio", Range(1, 100), conditions=[universal]),
            make_number("universal.max_merge_width", Range(2, 32), conditions=[universal]),
            make_number("level0_file_num_compaction_trigger", Range(1, 20)),
            make_number("level0_slowdown_writes_trigger", Range(4, 64)),
            make_categorical("compression", COMPRESSIONS),
            make_number("compression_level", Range(1, 19), conditions=[zstd]),
            make_number("max_background_jobs", Range(1, 16)),
            make_number("target_file_size_base", Range(MIB, 256 * MIB, log=True, step=MIB)),
            make_number("bytes_per_sync", Range(2**16, 2**25, log=True), specials=[(0, None)]),
            make_categorical("allow_concurrent_memtable_write", [True, False]),
        ],
    )


def throughput_ops_s(columns: Columns) -> FloatArray:
    """Noiseless throughput, ops/s, NaN where the store is killed; one value per row.

    `columns` has an array (n,) per option, NaN where it is not active; choices by their index.
    """
    buffer_mib = columns["write_buffer_size"] / MIB
    merged = np.minimum(
        columns["min_write_buffer_number_to_merge"], columns["max_write_buffer_number"] - 1
    )
    flush_mib = buffer_mib * merged
    buffers_mib = buffer_mib * columns["max_write_buffer_number"]
    ratio, compress_us = _compression(columns)
    rewritten = np.where(
        columns["compaction_style"] == STYLES.index("level"),
        _level_rewrites(columns, flush_mib),
        _universal_rewrites(columns, flush_mib),
    )
    disk_us = VALUE_BYTES * (1 + (1 + rewritten) * ratio) / (DISK_MIB_S * MIB) * 1e6
    processor_us = _memtable_us(columns, buffer_mib) + compress_us * (1 + rewritten)
    jobs = columns["max_background_jobs"]
    # Background work overlaps with the foreground as far as there are jobs to do it.
    background_us = (disk_us + compress_us * rewritten) / (1 - np.exp(-jobs / 3))
    crowded = 1 + 0.05 * np.maximum(jobs - CPUS, 0)
    total_us = (processor_us**3 + background_us**3) ** (1 / 3) * crowded
    total_us = total_us * _stalls(columns, flush_mib) * _memory(buffers_mib) * _syncs(columns)
    return np.where(buffers_mib > BUFFERS_MAX_MIB, np.nan, 1e6 / total_us)


def _compression(columns: Columns) -> tuple[FloatArray, FloatArray]:
    """Compressed over plain size, and microseconds to compress one entry once."""
    level = np.nan_to_num(columns["compression_level"], nan=1.0)
    kind = columns["compression"].astype(np.intp)
    ratio = np.choose(kind, [1.0, 0.62, 0.5 - 0.008 * np.minimum(level, 12)])
    us = np.choose(kind, [0.0, 0.04, 0.10 + 0.03 * level**1.3])
    return ratio, us


def _memtable_us(columns: Columns, buffer_mib: FloatArray) -> FloatArray:
    concurrent = columns["allow_concurrent_memtable_write"] == 0  # the index of True
    return np.where(concurrent, 0.55, 0.8) + 0.05 * np.log2(buffer_mib)


def _level_rewrites(columns: Columns, flush_mib: FloatArray) -> FloatArray:
    """How often level compaction rewrites a byte."""
    base_mib = np.nan_to_num(columns["max_bytes_for_level_base"], nan=MIB) / MIB
    multiplier = np.nan_to_num(columns["max_bytes_for_level_multiplier"], nan=10.0)
    top_mib = flush_mib * columns["level0_file_num_compaction_trigger"]
    levels = np.maximum(np.log(DATA_MIB / base_mib) / np.log(multiplier), 0.0)
    # Merging level 0 rewrites all of the first level: cheap where the two are of one size.
    first = 1 + base_mib / top_mib + 0.2 * np.maximum(top_mib / base_mib - 1, 0)
    return first + levels * (multiplier / 2 + 1) * 0.55


def _universal_rewrites(columns: Columns, flush_mib: FloatArray) -> FloatArray:
    """How often universal compaction rewrites a byte, reads and space charged as rewrites."""
    width = np.nan_to_num(columns["universal.max_merge_width"], nan=2.0)
    size_ratio = np.nan_to_num(columns["universal.size_ratio"], nan=1.0)
    runs = columns["level0_file_num_compaction_trigger"]
    merges = np.log(DATA_MIB / flush_mib) / np.log(np.minimum(width, runs + 1) + 1)
    patience = 1 + 0.15 * np.log2(size_ratio)
    return 1.6 * merges / patience + 0.12 * runs + 0.035 * size_ratio + 0.04 * width


def _stalls(columns: Columns, flush_mib: FloatArray) -> FloatArray:
    """The factor by which waiting lengthens an operation."""
    spare = columns["max_write_buffer_number"] - columns["min_write_buffer_number_to_merge"]
    full = 0.8 * np.exp(-np.maximum(spare, 0) / 1.5) + 0.5 * np.exp(-flush_mib / 24)
    trigger = columns["level0_file_num_compaction_trigger"]
    slowdown = columns["level0_slowdown_writes_trigger"]
    close = 1 / (1 + np.exp((slowdown - 2.0 * trigger - 4) / 2))
    reads = 0.004 * np.maximum(slowdown - 32, 0) + 0.006 * np.maximum(trigger - 8, 0)
    file_mib = columns["target_file_size_base"] / MIB
    files = 0.015 * np.log2(file_mib / 64) ** 2
    return 1 + full + 0.7 * close + reads + files


def _memory(buffers_mib: FloatArray) -> FloatArray:
    over = np.maximum(buffers_mib / BUFFERS_COMFORTABLE_MIB - 1, 0)
    return 1 + 0.25 * over**1.5


def _syncs(columns: Columns) -> FloatArray:
    """Written back in bursts by the kernel (0), or in pieces, best of about 1 MiB."""
    size = columns["bytes_per_sync"]
    pieces = 1 + 0.006 * np.log2(np.maximum(size, 1) / MIB) ** 2
    return np.where(size == 0, 1.10, pieces)


def columns_of(unit_space: UnitSpace, points: FloatArray) -> dict[str, FloatArray]:
    """The arrays that `throughput_ops_s` takes, for points of the unit_space."""
    columns = {}
    for parameter in unit_space.space.parameters:
        index = unit_space.position[parameter.variable]
        units = points[:, index]
        drawn = unit_space.dimensions[index].scale.from_unit(np.nan_to_num(units, nan=0.5))
        scale = 1 if parameter.numbers is None else parameter.numbers.scale
        values = np.where(np.isnan(units), np.nan, drawn * scale)
        if parameter.selector is not None:
            selector = unit_space.position[parameter.selector]
            chosen = unit_space.dimensions[selector].index(np.nan_to_num(points[:, selector]))
            for number, special in enumerate(parameter.specials):
                values = np.where(chosen == number, special.value, values)
        columns[parameter.name] = values
    return columns


def throughput_of(space: Space, values: Mapping[str, OptionValue]) -> float:
    """Noiseless throughput, ops/s, of one configuration; NaN where the store is killed."""
    columns = {}
    for parameter in space.parameters:
        value: OptionValue = values.get(parameter.name, math.nan)
        number = parameter.choices.index(value) if parameter.choices else float(value)
        columns[parameter.name] = np.array([float(number)])
    return float(throughput_ops_s(columns)[0])


def measured(true_ops_s: float, noise_sd: float, rng: np.random.Generator) -> float:
    """One noisy measurement; `noise_sd` is the standard deviation of its logarithm."""
    return true_ops_s * math.exp(rng.normal(0.0, noise_sd))
