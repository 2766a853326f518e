"""A configuration at another scale: what is as large as the data shrinks with the data.

An LSM tree on a tenth of the data has the same shape, levels full to the same share, if memtables,
files, the first level, caches and limits are a tenth as large. Blocks, bits of a filter for each
key, ratios, triggers and numbers of threads mean the same at every scale. The catalogue says which
options are of the former kind (`scales_with: data`).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress

from lsmtune.engines.catalogue import OptionInfo, catalogue_defaults, option_catalogue
from lsmtune.engines.library import ENGINE_KINDS
from lsmtune.engines.option_names import BLOCK_CACHE, CACHE_CAPACITY, number_to, split_structure
from lsmtune.model.config import OptionValue
from lsmtune.space.parameter import same_value

# Sizes are multiples of a page, as direct I/O and arenas want them.
PAGE_BYTES = 4096

# What the driver and an engine take of the memory whatever the data are, and for each thread; it
# does not scale. Of YCSB's workload A on 1,000,000 records the kernel charged 146 MB beside the
# pages of files, on 0.0577 of everything 20.6 MB: 12.9 MB are fixed; with 16 threads and 6 more in
# the background 11.5 MB more (RocksDB 10.10.1). What a model has too much is page cache that the
# target lacks: with 48 MiB it held 1.28 of its database, the target 0.84.
PROCESS_BYTES, THREAD_BYTES = 13 << 20, 1 << 20


def scaled(
    engine: str, options: Mapping[str, OptionValue], scale: float, version: str | None = None
) -> dict[str, OptionValue]:
    """`options` for `scale` times the data they were meant for, 0 < scale <= 1.

    The engine's defaults scale, too, so that they come to be stated: a memtable of 64 MiB that
    nobody set would else hold all of a small database. Special values (no limit, off) stay as they
    are, and so does what the catalogue does not know. The text of an object that has sizes
    (`{block_cache=1G;}`) comes back as its parts. A size is rounded to whole pages, and is at
    least what the engine takes (`least`), where it was not smaller before. Without a catalogue
    nothing scales. `version` is the engine's; None stands for the newest that the catalogue knows.
    """
    if scale == 1.0 or engine not in ENGINE_KINDS:
        return dict(options)
    sizes = scaling_options(engine)
    if BLOCK_CACHE in sizes:  # `{capacity=1G}` is another way to state it
        sizes[CACHE_CAPACITY] = sizes[BLOCK_CACHE]
    flat, defaults = _taken_apart(options, sizes), catalogue_defaults(engine, version)
    for name, info in sizes.items():
        value = flat.get(name)
        if value is None and name == info.name and _is_default(engine, info, flat):
            value = defaults.get(name)
        size = number_to(engine, value)
        if size is not None and (smaller := _scaled(info, size, scale)) != size:
            flat[name] = smaller
    return flat


def scaled_memory(memory_bytes: int, scale: float, threads: int) -> int:
    """The memory limit for `scale` times the data: what a process takes for itself stays."""
    fixed_bytes = min(memory_bytes, PROCESS_BYTES + threads * THREAD_BYTES)
    return fixed_bytes + round((memory_bytes - fixed_bytes) * scale)


def _taken_apart(
    options: Mapping[str, OptionValue], sizes: Iterable[str]
) -> dict[str, OptionValue]:
    """`options` with the parts of an object by dotted name where it may have one of `sizes`."""
    flat: dict[str, OptionValue] = {}
    for name, value in options.items():
        has_size = any(size.startswith(f"{name}.") for size in sizes)
        if has_size and isinstance(value, str) and value.strip().startswith("{"):
            with suppress(ValueError):  # the engine says what is wrong with it
                parts = {f"{name}.{part}": text for part, text in split_structure(value).items()}
                flat |= _taken_apart(parts, sizes)
                continue
        flat[name] = value
    return flat


def scaling_options(engine: str) -> dict[str, OptionInfo]:
    """The options of `engine` that scale with the data, by name."""
    known = option_catalogue(engine) if engine in ENGINE_KINDS else {}
    return {name: info for name, info in known.items() if info.scales_with == "data"}


# Where nobody sets these, RocksDB takes a share or a multiple of another one that scales
# (`SanitizeCfOptions` in `db/column_family.cc`).
_DERIVED = frozenset({"arena_block_size", "max_compaction_bytes"})


def least_of(info: OptionInfo) -> int:
    """The smallest size that an option is scaled to."""
    return PAGE_BYTES if info.least is None else math.ceil(info.least)


def _is_default(engine: str, info: OptionInfo, options: Mapping[str, OptionValue]) -> bool:
    """Whether an option that is not set is at a default of its own, and does something."""
    if info.name in _DERIVED:
        return False
    # The whole object is stated as one text that has no parts, or the cache by its capacity.
    if info.name.rpartition(".")[0] in options or f"{info.name}.capacity" in options:
        return False
    known = option_catalogue(engine)
    for name, values in info.condition.items():
        value = options.get(name, known[name].default)
        if value is None or not any(same_value(value, each) for each in values):
            return False
    return True


def _scaled(info: OptionInfo, value: int | float, scale: float) -> int | float:
    if value <= 0 or value in [special for special, _ in info.specials]:
        return value
    least = min(least_of(info), value)
    # At a scale near 1 the nearest page may lie above a value that is no whole number of them.
    pages = min(round(value * scale / PAGE_BYTES), int(value // PAGE_BYTES))
    return max(least, pages * PAGE_BYTES)


# --- what is collected in memory and then in level 0 before an engine compacts
#
# The options of RocksDB, and the constants of LevelDB (`db/dbformat.h`: kL0_CompactionTrigger).

_BUFFER, _MERGED = "write_buffer_size", "min_write_buffer_number_to_merge"
_TRIGGER, _TRIGGER_USUAL = "level0_file_num_compaction_trigger", 4
_NO_COMPACTION = "disable_auto_compactions"


def write_cycle(
    engine: str, options: Mapping[str, OptionValue], defaults: Mapping[str, OptionValue]
) -> tuple[int, int]:
    """Bytes that are written until a flush, and flushes until a compaction, at least 1 each.

    `defaults` are the engine's, for what `options` leave alone. Where nothing is ever compacted, as
    a negative trigger says, too, no number of flushes is enough: `sys.maxsize`. (1, 1) for an
    engine without a catalogue, of which nothing is known.
    """
    if engine not in ENGINE_KINDS:
        return 1, 1

    def number(name: str, other: int) -> int:
        value = number_to(engine, options.get(name, defaults.get(name, other)))
        return other if value is None else max(1, int(value))

    written_bytes = number(_BUFFER, 1) * number(_MERGED, 1)
    trigger = number_to(engine, options.get(_TRIGGER))
    never = trigger is not None and trigger < 0
    if never or same_value(options.get(_NO_COMPACTION, False), True):
        return written_bytes, sys.maxsize
    return written_bytes, number(_TRIGGER, _TRIGGER_USUAL)
