"""Flags of `ekvsb run rocksdb`, one line for a shell: from ekvsb's `src/main.rs`.

It has none for most options, and keeps RocksDB's defaults for those.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from lsmtune.engines.formats.base import Exported, ExportFormat, ExportRequest, spelled
from lsmtune.engines.formats.spelling import Spelling, bloom_bits, decimal, number, word
from lsmtune.engines.option_names import (
    BLOCK_CACHE,
    FILTER_POLICY,
    NO_BLOCK_CACHE,
    TABLE_OPTION,
    TRUTHS,
)

_NUMBERS = (
    *("compaction_readahead_size", "bytes_per_sync", "max_write_buffer_number"),
    *("write_buffer_size", "max_bytes_for_level_base", "max_manifest_file_size"),
    *("target_file_size_base", "num_levels", "min_write_buffer_number_to_merge"),
)
_ALONE, _UNSAID = "alone", "unsaid"  # in place of a flag's value


def _switch(flag: str, when: bool = True) -> Spelling:
    """A flag that stands alone, and the value that it says; the other is the engine's default."""
    return word(flag, {text: _ALONE if t is when else _UNSAID for text, t in TRUTHS.items()})


def _say_bits(option: str, text: str) -> str:
    bits = bloom_bits(option, text, "ekvsb")
    return str(bits) if bits else _UNSAID


FLAGS: Mapping[str, Spelling] = {
    **{name: number(name.replace("_", "-")) for name in _NUMBERS},
    "max_bytes_for_level_multiplier": decimal("max-bytes-for-level-multiplier"),
    "table_cache_numshardbits": number("table-cache-num-shard-bits"),
    "level0_file_num_compaction_trigger": number("level-zero-file-num-compaction-trigger"),
    "level0_slowdown_writes_trigger": number("level-zero-slowdown-writes-trigger"),
    "level0_stop_writes_trigger": number("level-zero-stop-writes-trigger"),
    "memtable_prefix_bloom_size_ratio": decimal("memtable-prefix-bloom-ratio"),
    f"{TABLE_OPTION}.block_size": number("block-opt-block-size"),
    BLOCK_CACHE: number("block-opt-lru-cache"),
    FILTER_POLICY: Spelling("block-opt-bloom-filter-bits-per-key", _say_bits, str),
    "use_fsync": _switch("use-fsync"),
    "use_direct_reads": _switch("use-direct-reads"),
    "use_direct_io_for_flush_and_compaction": _switch("use-direct-io-for-flush-and-compaction"),
    "disable_auto_compactions": _switch("disable-auto-compactions"),
    "allow_concurrent_memtable_write": _switch("disable-concurrent-memtable-write", when=False),
    "advise_random_on_open": _switch("disable-advise-random-on-open", when=False),
    NO_BLOCK_CACHE: _switch("block-opt-disable-cache"),
    f"{TABLE_OPTION}.cache_index_and_filter_blocks": _switch(
        "block-opt-cache-index-and-filter-blocks"
    ),
    "compaction_style": word(
        "compaction-style",
        {
            "kCompactionStyleLevel": "level",
            "kCompactionStyleUniversal": "universal",
            "kCompactionStyleFIFO": "fifo",
        },
    ),
    f"{TABLE_OPTION}.index_type": word(
        "block-opt-index-type",
        {
            "kBinarySearch": "binary-search",
            "kHashSearch": "hash-search",
            "kTwoLevelIndexSearch": "two-level-index-search",
        },
    ),
}


def write(request: ExportRequest) -> Exported:
    """The flags, one line."""
    said, left_out = spelled(request, FLAGS.get, "ekvsb has no such flag")
    # ekvsb takes -1 for a flag where it stands alone.
    words = [
        f"--{flag}" if value == _ALONE else f"--{flag}={value}"
        for flag, value in said.items()
        if value != _UNSAID
    ]
    return Exported(shlex.join(words) + "\n", left_out)


EXPORT = ExportFormat("ekvsb", ("rocksdb",), "ekvsb.flags", write)
