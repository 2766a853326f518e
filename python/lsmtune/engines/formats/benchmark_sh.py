"""What RocksDB's `tools/benchmark.sh` reads: variables of the environment, and flags behind a test.

Facts from benchmark.sh itself. It gives db_bench settings of its own for the options below, then
the flags that stand behind the test's name, then those that a compaction style fixes; of two flags
the last one counts. So every option that it would set otherwise is stated here, with the engine's
default where the Config says nothing, and what it fixes behind all flags is left out.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace

from lsmtune.engines.catalogue import catalogue_defaults
from lsmtune.engines.formats.base import Exported, ExportFormat, ExportRequest, LeftOut
from lsmtune.engines.formats.db_bench import ROCKSDB_FLAGS, as_arguments, flags_of
from lsmtune.engines.formats.spelling import COMPRESSION_IN_DB_BENCH, number, word
from lsmtune.engines.option_names import BLOCK_CACHE, FILTER_POLICY, TABLE_OPTION
from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue, option_text
from lsmtune.space.parameter import same_value
from lsmtune.units import option_value

_MIB = 1 << 20
_UNIVERSAL = "compaction_options_universal"

# The variable of the environment, and how many of the option's units one of its own is. Whatever
# is no whole number of a variable's unit becomes a flag instead.
_VARIABLES: Mapping[str, tuple[str, int]] = {
    f"{TABLE_OPTION}.block_size": ("BLOCK_SIZE", 1),
    BLOCK_CACHE: ("CACHE_SIZE", 1),
    "compression_opts.max_dict_bytes": ("COMPRESSION_MAX_DICT_BYTES", 1),
    "write_buffer_size": ("WRITE_BUFFER_SIZE_MB", _MIB),
    "target_file_size_base": ("TARGET_FILE_SIZE_BASE_MB", _MIB),
    "max_bytes_for_level_base": ("MAX_BYTES_FOR_LEVEL_BASE_MB", _MIB),
    "max_background_jobs": ("MAX_BACKGROUND_JOBS", 1),
    "max_subcompactions": ("SUBCOMPACTIONS", 1),
    "level0_file_num_compaction_trigger": ("LEVEL0_FILE_NUM_COMPACTION_TRIGGER", 1),
    "level0_slowdown_writes_trigger": ("LEVEL0_SLOWDOWN_WRITES_TRIGGER", 1),
    "level0_stop_writes_trigger": ("LEVEL0_STOP_WRITES_TRIGGER", 1),
}
# Options of universal compaction alone, which are taken from the variable and from no flag.
_UNIVERSAL_VARIABLES: Mapping[str, str] = {
    f"{_UNIVERSAL}.min_merge_width": "UNIVERSAL_MIN_MERGE_WIDTH",
    f"{_UNIVERSAL}.max_merge_width": "UNIVERSAL_MAX_MERGE_WIDTH",
    f"{_UNIVERSAL}.size_ratio": "UNIVERSAL_SIZE_RATIO",
    f"{_UNIVERSAL}.max_size_amplification_percent": "UNIVERSAL_MAX_SIZE_AMP",
    f"{_UNIVERSAL}.compression_size_percent": "COMPRESSION_SIZE_PERCENT",
}
_TRIVIAL_MOVE = f"{_UNIVERSAL}.allow_trivial_move"
_COMPRESSION = word("COMPRESSION_TYPE", COMPRESSION_IN_DB_BENCH)
_STYLE = "compaction_style"
_STYLES = {"kCompactionStyleLevel": "leveled", "kCompactionStyleUniversal": "universal"}
# What it sets otherwise than the engine, beside what has a variable.
_SET_BY_IT = (
    "compression",
    "bytes_per_sync",
    "max_bytes_for_level_multiplier",
    "max_open_files",
    "max_write_buffer_number",
)
_PIN_L0 = f"{TABLE_OPTION}.pin_l0_filter_and_index_blocks_in_cache"
# What it puts behind all flags, by style, so that no flag changes it.
_FIXED: Mapping[str, Mapping[str, str]] = {
    "leveled": {"num_levels": "8", "level_compaction_dynamic_level_bytes": "true", _PIN_L0: "true"},
    "universal": {"num_levels": "40", _PIN_L0: "true"},
}


def write(request: ExportRequest) -> Exported:
    """Lines to source in a shell."""
    defaults = catalogue_defaults("rocksdb", request.version)
    values = {FILTER_POLICY: "nullptr"} | request.values()
    stated_style = values.pop(_STYLE, "kCompactionStyleLevel")
    style = _STYLES.get(stated_style, "leveled")
    universal = (*_UNIVERSAL_VARIABLES, _TRIVIAL_MOVE) if style == "universal" else ()
    for name in (*_VARIABLES, *_SET_BY_IT, *universal):
        if name in defaults:
            values.setdefault(name, option_text(defaults[name]))
    variables = {"COMPACTION_STYLE": style}
    left_out: list[LeftOut] = []
    if stated_style not in _STYLES:
        left_out.append(LeftOut(_STYLE, stated_style, "benchmark.sh has no such style"))
    for name, fixed in _FIXED[style].items():
        value = values.pop(name, option_text(defaults.get(name, fixed)))
        # `1` and `true` are one value to RocksDB.
        if not same_value(option_value(value.lower()), option_value(fixed)):
            left_out.append(LeftOut(name, value, f"benchmark.sh sets {fixed}"))
    flags: dict[str, OptionValue] = {}
    for name, value in values.items():
        try:
            said = _variable(name, value, universal)
        except InputError as error:
            left_out.append(LeftOut.of(value, error))
            continue
        if said is None:
            flags[name] = value
        else:
            variables |= said
    as_flags, without = flags_of(replace(request, options=flags))
    lines = ["# Source this file, then: tools/benchmark.sh TEST $BENCHMARK_FLAGS"]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
    lines.append(f"BENCHMARK_FLAGS={shlex.quote(as_arguments(as_flags))}")
    return Exported("\n".join(lines) + "\n", (*left_out, *without))


def _variable(name: str, value: str, universal: tuple[str, ...]) -> dict[str, str] | None:
    """The variable of an option; None where a flag has to say it."""
    if name == "compression":
        return {_COMPRESSION.name: _COMPRESSION.say(name, value)}
    if name == _TRIVIAL_MOVE and name in universal:
        said = ROCKSDB_FLAGS[name].say(name, value)
        return {"UNIVERSAL_ALLOW_TRIVIAL_MOVE": "1"} if said == "true" else {}
    if name in universal:
        return {_UNIVERSAL_VARIABLES[name]: ROCKSDB_FLAGS[name].say(name, value)}
    if name in _VARIABLES:
        variable, unit = _VARIABLES[name]
        whole = int(number(variable).say(name, value))
        if whole % unit == 0:
            return {variable: str(whole // unit)}
    return None


EXPORT = ExportFormat("benchmark.sh", ("rocksdb",), "benchmark.env", write, comment="#")
