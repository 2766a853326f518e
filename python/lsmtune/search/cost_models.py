"""What an operation costs in an LSM tree, by its options, on machines that are drawn at random.

The models are fitted to nothing. Each draw is a machine that might be: a slow disk with fast
processors, a fast one with slow ones. What is best on several of them is worth a try on the one at
hand, before anything was measured there.

Seconds of one operation are the sum of these terms, weighted by the shares of the workload:

| term | formula | source |
|---|---|---|
| insertion | skip list of a memtable: log2(entries) | RocksDB wiki, MemTable |
| write amplification, level | 1 + rewritten * ((1 + base / level 0) + (levels - 1) * (ratio / 2 + 1)) | RocksDB wiki, Tuning Guide, "Write amplification"; Dong et al., "Optimizing Space Amplification in RocksDB", CIDR 2017, section 2 |
| write amplification, universal | 1 + rewritten * log(data / flush) / log(trigger) | Dayan and Idreos, "Dostoevsky", SIGMOD 2018, table 1 (tiering) |
| a compaction of level 0 | at so many files; in RocksDB also at as many bytes as the base level may have, where compaction is by level | `ComputeCompactionScore` in `db/version_set.cc` of RocksDB; `Finalize` in that of LevelDB |
| what is stored | older versions of as much as lies above the last level | Dong et al., section 3 |
| stalls | utilisation of the background, to the power of the slack in buffers and triggers | RocksDB wiki, Write Stalls |
| runs that a read looks at | level 0 files / 2 + levels | Tuning Guide, "Read amplification" |
| needless reads | 0.6185 ** bits per key and run | Dayan, Athanassoulis and Idreos, "Monkey", SIGMOD 2017, section 2 |
| a block | copy and checksum + miss * (latency + bytes / bandwidth) + bytes * decompression + log2(entries) | Tuning Guide, "Block cache", "Block size" |
| a scan | a block of every run, then its entries | Tuning Guide, "Bloom filters" (they do not help scans) |
| cache hits | (memory / data) ** skew, first the block cache, then the page cache | Tuning Guide, "Block cache"; Che et al. 2002 for the shape |

All functions take and give arrays of shape (n,), a row per configuration. They know nothing of
options that are not listed in `_NAMES`: these do not change a prediction.
"""  # noqa: E501 (a table's row is one line)

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lsmtune.engines.option_names import number_to
from lsmtune.engines.scaling import PROCESS_BYTES, THREAD_BYTES
from lsmtune.model.config import OptionValue, option_text
from lsmtune.model.workload import WRITES, Workload
from lsmtune.search.sampler import Problem
from lsmtune.search.unit_space import BoolArray, Column, FloatArray, UnitSpace
from lsmtune.space.space import Space
from lsmtune.units import option_value
from lsmtune.workloads.distributions import data_bytes

_KIB = 2.0**10
_SCANS = frozenset({"scan", "seekrandom", "readseq"})
_TABLE = "block_based_table_factory"

# What the models call an option, and what each engine calls it.
_NAMES: Mapping[str, Mapping[str, str]] = {
    "rocksdb": {
        "buffer": "write_buffer_size",
        "buffers": "max_write_buffer_number",
        "merged": "min_write_buffer_number_to_merge",
        "trigger": "level0_file_num_compaction_trigger",
        "slowdown": "level0_slowdown_writes_trigger",
        "base": "max_bytes_for_level_base",
        "ratio": "max_bytes_for_level_multiplier",
        "file": "target_file_size_base",
        "jobs": "max_background_jobs",
        "style": "compaction_style",
        "compression": "compression",
        "block": f"{_TABLE}.block_size",
        "cache": f"{_TABLE}.block_cache",
        "filter": f"{_TABLE}.filter_policy",
    },
    "leveldb": {
        "buffer": "write_buffer_size",
        "file": "max_file_size",
        "compression": "compression",
        "block": "block_size",
        "cache": "cache_size",
        "filter": "filter_bits",
    },
}
# What an engine has where it has no such option: LevelDB's, of `db/dbformat.h` and
# `db/version_set.cc` (1.23).
_FIXED: Mapping[str, OptionValue] = {
    **{"buffer": 4 << 20, "buffers": 2, "merged": 1, "trigger": 4, "slowdown": 8},
    **{"base": 10 << 20, "ratio": 10, "file": 2 << 20, "jobs": 1, "style": "level"},
    **{"compression": "snappy", "block": 4096, "cache": 8 << 20, "filter": 0},
}
# Of the bytes, what is left over what `compression_ratio` says; microseconds to compress and to
# decompress a KiB, and those of a block beside. `zstd -b3` and `lz4 -b1` on the driver's values in
# blocks of 1, 4 and 16 KiB (ratio 0.5, one processor); Snappy as LevelDB 1.22 has it; zlib: orders
# of magnitude of lzbench.
_CODECS = {
    "none": (math.inf, 0.0, 0.0, 0.0),
    "snappy": (1.1, 0.8, 0.4, 0.0),
    "lz4": (1.1, 0.8, 0.1, 0.0),
    "zstd": (0.9, 3.4, 0.65, 1.2),
    "zlib": (0.9, 20.0, 3.0, 2.0),
}
# Probes that a block costs when it is made or read, whatever its size.
_BLOCK_PROBES = 20.0


@dataclass(frozen=True)
class _Facts:
    """What the models know of a workload; `writes`, `reads` and `scans` are shares."""

    record: float  # bytes
    data: float  # bytes of all records
    compressed: float  # what compression leaves of a byte
    threads: int
    writes: float
    reads: float
    scans: float
    entries: float  # that one scan reads


def kinds_of(workload: Workload) -> dict[str, float]:
    """The shares of `writes`, `reads` and `scans` in the measure phases of `workload`.

    Each phase counts by its operations; all count alike where one has no number of them.
    """
    phases = workload.measured_phases
    counts = [phase.operations_whole for phase in phases]
    weights = [count or 1 for count in counts] if all(counts) else [1] * len(phases)
    writes = scans = 0.0
    for phase, weight in zip(phases, weights, strict=True):
        share = weight / sum(weights)
        scans += share * sum(s for name, s in phase.shares.items() if name in _SCANS)
        if phase.operation == "readwhilewriting" or phase.replay is not None:
            writes += share * 0.5  # a trace may hold anything
        else:
            writes += share * sum(s for name, s in phase.shares.items() if name in WRITES)
    return {"writes": writes, "reads": max(0.0, 1.0 - writes - scans), "scans": scans}


def _facts(workload: Workload) -> _Facts:
    phase, data = workload.measured_phases[-1], float(data_bytes(workload))
    return _Facts(
        record=data / workload.num,
        data=data,
        compressed=workload.compression_ratio,
        threads=phase.threads,
        entries=float(max(phase.seek_nexts, 20)),
        **kinds_of(workload),
    )


# --- The terms.


@dataclass(frozen=True)
class _Tree:
    """What the options say of a tree, each (n,)."""

    buffer: FloatArray
    buffers: FloatArray
    merged: FloatArray
    trigger: FloatArray
    slowdown: FloatArray
    base: FloatArray
    ratio: FloatArray
    file: FloatArray
    jobs: FloatArray
    block: FloatArray
    cache: FloatArray
    bits: FloatArray
    universal: BoolArray
    codec: FloatArray  # (n, 4), as in `_CODECS`


def _tree(problem: Problem, unit_space: UnitSpace, points: FloatArray) -> _Tree:
    names = _NAMES[problem.engine]

    def column(word: str) -> Column:
        name = names.get(word, "")
        values = unit_space.column(points, name, problem.defaults.get(name))
        return np.full(len(points), _FIXED[word]) if values is None else values

    def number(word: str, least: float = 1.0) -> FloatArray:
        values = column(word)
        if values.dtype.kind not in "biuf":  # choices, and what is spelled as text
            values = _by_value(values, lambda text: _number(problem.engine, word, text))
        return np.maximum(values.astype(np.float64), least)

    return _Tree(
        **{word: number(word, 4096.0) for word in ("buffer", "base", "file", "cache")},
        **{word: number(word) for word in ("buffers", "merged", "trigger", "slowdown", "jobs")},
        ratio=number("ratio", 1.5),
        block=number("block", 256.0),
        bits=_by_value(column("filter"), _filter_bits),
        universal=_by_value(column("style"), lambda text: float("Universal" in text)) > 0,
        codec=_by_value(column("compression"), _codec),
    )


def _by_value(column: Column, of: Callable[[str], float | tuple[float, ...]]) -> FloatArray:
    """`of` the text of each value, (n,) or (n, numbers)."""
    texts = [option_text(value) for value in column.tolist()]
    known = {text: of(text) for text in set(texts)}
    return np.array([known[text] for text in texts])


def _number(engine: str, word: str, text: str) -> float:
    """`64M` and `67108864`, as `engine` reads them; the usual where it is no number."""
    number = number_to(engine, option_value(text))
    return float(_FIXED[word] if number is None else number)


def _filter_bits(text: str) -> float:
    """Bits per key of `bloomfilter:10`, `10` and `nullptr`."""
    bits = re.search(r"(?:^|:)(\d+(?:\.\d+)?)", text)
    return float(bits.group(1)) if bits else 0.0


def _codec(text: str) -> tuple[float, ...]:
    name = re.sub(r"^k|Compression$|HC|NotFinal", "", text).lower()
    return _CODECS.get("none" if name == "no" else name, _CODECS["snappy"])


@dataclass(frozen=True)
class Machine:
    """A machine that might be. Times are in seconds."""

    bandwidth: float  # bytes per second of the device
    latency: float  # of one read from the device
    system_call: float  # of one read from the page cache
    probe: float  # of one step of a search in memory
    codec: float  # how many times as slow as in `_CODECS`
    merge: float  # of a byte that a compaction merges
    rewritten: float  # what is rewritten, over what full levels and keys all as hot would take
    skew: float  # of accesses: 1 is uniform, less has hot keys
    stall: float  # what a stall costs, in operations
    copy: float  # of a byte that is copied out of the page cache, and its checksum


def draw_machine(rng: np.random.Generator) -> Machine:
    """Log-uniform over what disks and processors of today do.

    Measured write amplification was 0.47 to 0.58 of the formula's (medians of four recordings):
    levels are not full, and compactions prefer files that overlap little.
    """

    def between(low: float, high: float) -> float:
        return float(np.exp(rng.uniform(math.log(low), math.log(high))))

    return Machine(
        bandwidth=between(100e6, 3e9),
        latency=between(20e-6, 500e-6),
        system_call=between(2e-6, 12e-6),
        probe=between(30e-9, 150e-9),
        codec=between(0.4, 2.0),
        merge=between(0.5e-9, 4e-9),
        rewritten=between(0.3, 1.0),
        skew=between(0.3, 1.0),
        stall=between(0.1, 1.0),
        copy=between(0.05e-9, 0.4e-9),
    )


def seconds_of(
    problem: Problem, unit_space: UnitSpace, points: FloatArray, machines: Sequence[Machine]
) -> FloatArray:
    """Seconds of an operation at `points` (n, dimensions) on each machine; (n, len(machines)).

    Of several workloads the geometric mean by their weights, as a study's goal is.
    """
    tree, logs = _tree(problem, unit_space, points), np.zeros((len(points), len(machines)))
    for workload, share in problem.shares:
        facts = _facts(workload)
        shape = _shape(problem, facts, tree)
        seconds = [_seconds(problem, facts, tree, shape, machine) for machine in machines]
        logs += share * np.log(np.column_stack(seconds))
    return np.exp(logs)


def amplification_ratios(
    problem: Problem, unit_space: UnitSpace, points: FloatArray, machines: Sequence[Machine]
) -> FloatArray:
    """Write amplification at `points` over that of the baseline, on each machine.

    Shape (n, len(machines)); of several workloads that write the largest ratio, 0 where none does.
    """
    # The baseline is one configuration, in which nothing varies.
    nothing = UnitSpace(Space((), ()), ())
    stated = replace(problem, defaults={**problem.defaults, **problem.baseline})
    trees = _tree(problem, unit_space, points), _tree(stated, nothing, points[:1])
    ratios = np.zeros((len(points), len(machines)))
    for workload, _ in problem.shares:
        facts = _facts(workload)
        if not facts.writes:
            continue
        written = []
        for tree in trees:
            shape = _shape(problem, facts, tree)
            each = [_rewritten(tree, shape, machine) for machine in machines]
            written.append(shape.left[:, np.newaxis] * np.column_stack(each))
        own, base = written
        ratios = np.maximum(ratios, own / base)
    return ratios


def _seconds(
    problem: Problem, facts: _Facts, tree: _Tree, shape: _Shape, machine: Machine
) -> FloatArray:
    unpacking = tree.codec[:, 2] * 1e-6 * machine.codec  # for a KiB
    by_block = tree.codec[:, 3] * 1e-6 * machine.codec + _BLOCK_PROBES * machine.probe
    process = PROCESS_BYTES + facts.threads * THREAD_BYTES
    taken = tree.cache + tree.buffer * tree.buffers + process
    write = _write(problem, facts, tree, shape, machine)
    # Reads.
    cached = _hit_rate(tree.cache, facts.data, machine.skew)
    kept = np.maximum(problem.memory_bytes - taken, 0.0)
    in_page_cache = _hit_rate(kept, shape.stored, machine.skew)
    block = tree.block * shape.left
    device = machine.latency + block / machine.bandwidth
    miss = machine.system_call + block * machine.copy + (1.0 - in_page_cache) * device
    in_block = np.log2(np.maximum(tree.block / facts.record, 2.0)) + 4.0
    decoded = unpacking * tree.block / _KIB + by_block
    fetch = (1.0 - cached) * (miss + decoded) + machine.probe * in_block
    # A load leaves some files in level 0, too.
    level0_files = 0.5 * np.minimum(shape.level0, shape.newest) / shape.flushed
    runs = np.where(tree.universal, tree.trigger, level0_files + shape.levels)
    runs = np.maximum(runs, 1.0)
    steps = np.log2(np.maximum(tree.buffer / facts.record, 2.0)) + np.log2(shape.files)
    searched = machine.probe * (steps + np.log2(shape.stored / tree.block + 2))
    needless = np.where(tree.bits > 0, 0.6185**tree.bits, 1.0) * (runs - 1.0)
    probing = np.where(tree.bits > 0, 2 * machine.probe, 0.0) * runs
    read = searched + probing + (1.0 + needless) * fetch
    entry = machine.probe + facts.record * fetch / tree.block
    scan = runs * (searched + fetch) + facts.entries * entry
    too_much = np.maximum(taken / problem.memory_bytes - 1.0, 0.0)
    seconds: FloatArray = facts.writes * write + facts.reads * read + facts.scans * scan
    return seconds * (1.0 + 10.0 * too_much)


@dataclass(frozen=True)
class _Shape:
    """What a tree of a workload's data looks like, each (n,)."""

    left: FloatArray  # what compression leaves of a byte
    flushed: FloatArray  # bytes of a flush
    level0: FloatArray  # bytes of level 0 when it is compacted
    levels: FloatArray  # below that
    newest: FloatArray  # bytes of the newest versions
    stored: FloatArray  # bytes of all versions
    files: FloatArray


def _shape(problem: Problem, facts: _Facts, tree: _Tree) -> _Shape:
    left = np.minimum(tree.codec[:, 0] * facts.compressed, 1.0)
    newest = facts.data * left
    flushed = np.maximum(tree.buffer * tree.merged * left, facts.record)
    level0 = flushed * tree.trigger
    if problem.engine == "rocksdb":
        by_bytes = np.maximum(np.minimum(level0, tree.base), flushed)
        level0 = np.where(tree.universal, level0, by_bytes)
    levels = 1.0 + np.maximum(0.0, np.log(newest / tree.base) / np.log(tree.ratio))
    levels = np.where(newest > level0, levels, 0.0)
    # A full tree has 1 / ratio of its last level in the one above it, and so on up to the base.
    upper = np.where(levels > 1.0, np.maximum(newest / (tree.ratio - 1.0), tree.base), 0.0)
    above = np.minimum(level0 / 2 + upper, newest)
    stored = newest + (above if facts.writes > 0 else 0.0)
    files = np.maximum(newest / tree.file, 1.0)
    return _Shape(left, flushed, level0, levels, newest, stored, files)


def _write(
    problem: Problem, facts: _Facts, tree: _Tree, shape: _Shape, machine: Machine
) -> FloatArray:
    """Seconds of a write, with what flushes and compactions take."""
    rewritten = _rewritten(tree, shape, machine)
    coding = (tree.codec[:, 1] + tree.codec[:, 2]) * facts.record / _KIB
    blocks = facts.record / tree.block
    coding = (coding + tree.codec[:, 3] * blocks) * 1e-6 * machine.codec
    making = _BLOCK_PROBES * machine.probe * blocks
    background_cpu = rewritten * (coding + making + machine.merge * facts.record)
    # Those that are busy with operations compact nothing.
    jobs = np.clip(tree.jobs, 1.0, max(1, problem.cores - facts.threads))
    written = facts.record * (1.0 + shape.left * rewritten)
    background = background_cpu / jobs + written / machine.bandwidth
    entries = np.maximum(tree.buffer / facts.record, 2.0)
    insertion = machine.probe * np.log2(entries) + 1e-6
    utilisation = background / (background + insertion)
    slack = np.maximum(tree.buffers - tree.merged, 1.0) * np.maximum(
        tree.slowdown / tree.trigger, 0.5
    )
    stalls = machine.stall * (insertion + background) * utilisation**slack
    # Many small files cost metadata, few large ones make compactions long.
    upkeep = background_cpu * 0.02 * np.abs(np.log2(tree.file / np.maximum(tree.base / 8, 1.0)))
    seconds: FloatArray = np.maximum(insertion, background) + 0.3 * background + stalls + upkeep
    return seconds


def _rewritten(tree: _Tree, shape: _Shape, machine: Machine) -> FloatArray:
    """How often flushes and compactions write what is written once."""
    deeper = np.maximum(shape.levels - 1.0, 0.0)
    first = np.minimum(tree.base, shape.newest)
    leveled = 1.0 + np.where(shape.levels > 0, 1.0 + first / shape.level0, 0.0)
    leveled = leveled + deeper * (tree.ratio / 2 + 1)
    flushes = np.maximum(0.0, np.log(shape.newest / shape.flushed))
    tiered = 1.0 + flushes / np.log(np.maximum(tree.trigger, 2.0))
    written: FloatArray = np.where(tree.universal, tiered, leveled)
    return 1.0 + machine.rewritten * (written - 1.0)


def _hit_rate(cache: FloatArray, data: FloatArray | float, skew: float) -> FloatArray:
    share: FloatArray = np.minimum(cache / np.maximum(data, 1.0), 1.0) ** skew
    return share


# --- Coordinates without units, so that trees of all sizes have the same ones.

# By which options the size of another one is divided; all by what the models call them.
_RATIOS: Mapping[str, tuple[str, ...]] = {
    "base": ("buffer", "trigger"),
    "file": ("base",),
    "slowdown": ("trigger",),
}


def unitless(problem: Problem, unit_space: UnitSpace, points: FloatArray) -> dict[str, FloatArray]:
    """Options of the space as logarithms of ratios, by name, each (n,).

    Memtables and the cache over the memory, the first level over what a compaction of level 0
    brings, files over the first level, the trigger of slow-downs over that of compactions, and the
    size ratio of levels.
    """
    names, tree = _NAMES[problem.engine], _tree(problem, unit_space, points)
    coordinates: dict[str, FloatArray] = {}
    for word in ("buffer", "cache", "ratio", *_RATIOS):
        name = names.get(word, "")
        if name not in unit_space.space.by_name:
            continue
        value = np.log2(getattr(tree, word))
        if word == "buffer":
            value = value + np.log2(tree.buffers)
        if word in ("buffer", "cache"):
            value = value - math.log2(max(problem.memory_bytes, 1.0))
        for other in _RATIOS.get(word, ()):
            value = value - np.log2(getattr(tree, other))
        coordinates[name] = value
    return coordinates
