"""What speaks against a configuration before it has run: unsafe options, and too much memory.

An unsafe option trades data, or the checks that guard it, for speed. A study may not use one unless
its durability class makes it harmless, or the study names it under `allow_unsafe`; then every
report says so. Whether a value is unsafe is read from its text, so that `1` and `true` are the same
here as they are to the engine.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lsmtune.engines.catalogue import option_catalogue
from lsmtune.engines.library import ENGINE_KINDS
from lsmtune.engines.memory_model import memory_model
from lsmtune.engines.option_names import split_parts, whole_size
from lsmtune.errors import InputError
from lsmtune.model.config import Config, EngineIdentity, OptionValue, option_text
from lsmtune.model.request import Limits
from lsmtune.model.workload import Durability
from lsmtune.units import format_bytes

_ON = ("true", "1")
_OFF = ("false", "0")
_LOGGED = (Durability.SYNC, Durability.WAL)


@dataclass(frozen=True)
class UnsafeOption:
    """`option` of RocksDB is unsafe with some values, in the durability classes `under`.

    These are `values`, whatever their case, every number below 0, which means no limit as -1 does,
    and every one that is `at_least` so large.
    """

    option: str
    values: Collection[str]
    reason: str
    under: Collection[Durability] = tuple(Durability)
    at_least: float = math.inf

    def is_unsafe(self, value: OptionValue) -> bool:
        """Whether `value` is one of the unsafe ones."""
        text = option_text(value).strip().lower()
        whole = whole_size(text)
        if whole is not None:
            text = str(whole)  # an engine's own `1k` is 1024
        if text in [each.lower() for each in self.values]:
            return True
        try:
            number = float(text)
        except ValueError:
            return False
        return number < 0 or number >= self.at_least


# Files in level 0 that no sane deployment has: every get looks into each of them, and each of them
# is open. RocksDB's defaults are 4 (compaction), 20 (slow-down) and 36 (stop).
_LEVEL0_UNBOUNDED = 1000
_GROWS = "level 0 grows without bound, and reads and restarts pay for it later"
_DEBT = "compaction may fall behind without bound, and later runs pay for it"


# From the comments on each option in RocksDB's include/rocksdb/{options,advanced_options,table}.h.
UNSAFE_OPTIONS = (
    UnsafeOption("disable_auto_compactions", _ON, "compaction off: the tree is never put in order"),
    UnsafeOption(
        "compaction_style",
        ["kCompactionStyleFIFO", "kCompactionStyleNone"],
        "FIFO deletes the oldest data when space runs out; None never compacts",
    ),
    UnsafeOption(
        "manual_wal_flush",
        _ON,
        "log records stay in the process until they are flushed by hand: a crash loses them",
        _LOGGED,
    ),
    UnsafeOption(
        "avoid_flush_during_shutdown",
        _ON,
        "without a log, closing the database loses what is in memory",
        (Durability.NONE,),
    ),
    UnsafeOption(
        "wal_recovery_mode",
        ["kSkipAnyCorruptedRecords"],
        "recovery skips damaged records and goes on",
        _LOGGED,
    ),
    UnsafeOption("level0_file_num_compaction_trigger", ["-1"], _GROWS, at_least=_LEVEL0_UNBOUNDED),
    UnsafeOption("level0_slowdown_writes_trigger", ["-1"], _GROWS, at_least=_LEVEL0_UNBOUNDED),
    UnsafeOption("level0_stop_writes_trigger", ["-1"], _GROWS, at_least=_LEVEL0_UNBOUNDED),
    UnsafeOption("hard_pending_compaction_bytes_limit", ["0"], _DEBT),
    UnsafeOption("best_efforts_recovery", _ON, "recovery may go back to an older state in silence"),
    UnsafeOption("unordered_write", _ON, "gives up the guarantee that snapshots do not change"),
    UnsafeOption("inplace_update_support", _ON, "overwrites values in memory: snapshots break"),
    UnsafeOption(
        "paranoid_checks", _OFF, "damage is not looked for, and writes go on after errors"
    ),
    UnsafeOption("force_consistency_checks", _OFF, "damage of the tree's shape is not looked for"),
    UnsafeOption("flush_verify_memtable_count", _OFF, "lost entries of a flush are not noticed"),
    UnsafeOption(
        "compaction_verify_record_count", _OFF, "lost entries of a compaction go unnoticed"
    ),
    UnsafeOption(
        "skip_checking_sst_file_sizes_on_db_open", _ON, "missing or cut files go unnoticed at open"
    ),
    UnsafeOption("block_based_table_factory.checksum", ["kNoChecksum"], "blocks have no checksum"),
)

# Options of a single write in db_bench and the C interface: here a part of the workload.
DURABILITY_OPTIONS = frozenset({"disable_wal", "disablewal", "disable_write_ahead_log", "sync"})


def unsafe_options(engine: str) -> Mapping[str, UnsafeOption]:
    """The unsafe options of `engine` by name: none is known of another engine than RocksDB."""
    return {each.option: each for each in UNSAFE_OPTIONS} if engine == "rocksdb" else {}


def unsafe_reason(engine: str, option: str, value: OptionValue, durability: Durability) -> str:
    """Why `option` of `engine` is unsafe with `value`; empty where it is not."""
    unsafe = unsafe_options(engine).get(option)
    if unsafe is None or durability not in unsafe.under or not unsafe.is_unsafe(value):
        return ""
    return unsafe.reason


def unsafe_uses(
    engine: str, options: Mapping[str, OptionValue], durability: Durability
) -> tuple[tuple[str, OptionValue, str], ...]:
    """What is unsafe in `options`, nested ones included: its dotted name, its value, and why."""
    return tuple(
        (name, value, reason)
        for name, value in flattened(options)
        if (reason := unsafe_reason(engine, name, value, durability))
    )


def check_allowance(
    name: str, engine: str, used: Collection[str], source: str, field: str, unused: str
) -> None:
    """`name`, an option that the user allows although it is unsafe, is one, and is in `used`.

    Raises `InputError`, naming `source` and `field`, otherwise; `unused` says why it has no effect.
    """
    known = unsafe_options(engine)
    if name not in known:
        allowed = "" if known else f"nothing, as {engine} has no such option"
        raise InputError(source, field, found=name, allowed=allowed, known=known)
    if name not in used:
        raise InputError(source, field, found=name, why=f"has no effect: {unused}")


def flattened(options: Mapping[str, OptionValue]) -> Iterator[tuple[str, OptionValue]]:
    """Every option with its value, those inside `{name=value;...}` under their dotted name."""
    for name, value in options.items():
        yield name, value
        if isinstance(value, str) and value.strip().startswith("{"):
            # Read leniently: what the engine makes of half a structure is not known.
            parts, depth = split_parts(value.strip().removeprefix("{").removesuffix("}"))
            whole = parts if depth <= 0 else parts[:-1]
            named = [part.partition("=") for part in whole]
            nested = {part.strip(): text.strip() for part, _, text in named if part.strip()}
            yield from ((f"{name}.{part}", inner) for part, inner in flattened(nested))


ALLOW_FLAG = "--allow-unsafe"
_PARTS_SHOWN = 2  # of a memory model: the rest is small


@dataclass(frozen=True)
class Doubts:
    """What speaks against one Config before it has run, in clauses.

    `unsafe` has one beside each unsafe option; `memory` is empty for a Config that by the model
    keeps within the limit.
    """

    unsafe: Sequence[tuple[str, str]]
    memory: str

    def reasons(self, allowed: Collection[str] = ()) -> list[str]:
        """A clause for each doubt, less the unsafe options that the user has `allowed`."""
        reasons = [clause for option, clause in self.unsafe if option not in allowed]
        return [*reasons, self.memory] if self.memory else reasons

    def warnings(self, allowed: Collection[str]) -> list[str]:
        """A clause for each unsafe option that the user has `allowed`."""
        return [clause for option, clause in self.unsafe if option in allowed]


def doubts(
    engine: EngineIdentity, config: Config, durability: Durability, limits: Limits, source: str
) -> Doubts:
    """What speaks against `config`.

    Raises `InputError`, naming `source`, for a value that the memory model cannot read.
    """
    memory, unsafe = "", []
    if engine.name in ENGINE_KINDS:
        parts = memory_model(engine.name, config.options, version=engine.version, source=source)
        memory = _memory_clause(parts, limits.memory_bytes)
    for name, value, reason in unsafe_uses(engine.name, config.options, durability):
        info = option_catalogue(engine.name).get(name)
        risks = ", ".join(info.risk).replace("_", " ") if info else ""
        why = f"{reason}; risk: {risks}" if risks else reason
        under = f"is unsafe under durability {durability.value}"
        unsafe.append((name, f"{name}={option_text(value)} {under} ({why})"))
    return Doubts(unsafe, memory)


def _memory_clause(parts: Mapping[str, int], limit_bytes: int) -> str:
    """Says that memory may exceed `limit_bytes`; empty where it keeps within it."""
    total_bytes = sum(parts.values())
    if total_bytes <= limit_bytes:
        return ""
    largest = sorted(parts.items(), key=lambda part: -part[1])[:_PARTS_SHOWN]
    shown = ", ".join(f"{name} {format_bytes(size)}" for name, size in largest)
    return (
        f"by the memory model it may come to use {format_bytes(total_bytes)} ({shown}), "
        f"more than the limit of {format_bytes(limit_bytes)} (--memory)"
    )


def check_allowed(allowed: Sequence[str], engine: str, several: Sequence[Doubts]) -> None:
    """Raises `InputError` for an allowance of `--allow-unsafe` that none of `several` needs."""
    used = {option for each in several for option, _ in each.unsafe}
    unused = "no configuration here has it with an unsafe value"
    for name in allowed:
        check_allowance(name, engine, used, ALLOW_FLAG, "", unused)
