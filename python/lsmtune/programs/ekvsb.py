"""How ekvsb is called: its flags for RocksDB's options, and the JSON of its workload.

Facts from ekvsb's `src/main.rs` and `src/task.rs`: a workload is a JSON array of tasks on stdin,
held in memory whole; it is performed in order in one thread; values are random bytes, keys text.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping

from lsmtune.driver.native_run import DATABASE
from lsmtune.errors import InputError
from lsmtune.model.measurement import Latency, PhaseMeasurement
from lsmtune.model.metrics import PERCENTILES
from lsmtune.model.request import RunRequest
from lsmtune.model.workload import Durability, PageCache, Phase, PhaseKind, Workload
from lsmtune.programs.ekvsb_output import EkvsbRecord, EkvsbSummary, Summing, read_records
from lsmtune.programs.output import (
    cannot,
    check_closed_loop,
    check_durability,
    check_number_keys,
    performing,
)
from lsmtune.programs.program import (
    FoundProgram,
    Observed,
    Plan,
    Program,
    Step,
    StepOutput,
    Told,
    phase_measurement,
)

NAME = "ekvsb"
METHOD = {
    "fillseq": "PUT",
    "fillrandom": "PUT",
    "filluniquerandom": "PUT",
    "overwrite": "PUT",
    "readrandom": "GET",
    "readuniquerandom": "GET",
    "deleterandom": "DELETE",
    "deleteuniquerandom": "DELETE",
}
_IN_ORDER = frozenset({"fillseq"})
_EACH_ONCE = frozenset({"fillseq", "filluniquerandom", "readuniquerandom", "deleteuniquerandom"})
# The JSON of a task is some 60 bytes and becomes a string of Rust: 2^24 of them are 2 GiB.
OPERATIONS_MAX = 2**24

# RocksDB's option to ekvsb's flag; a flag of `_SWITCHES` stands alone and says what is in it.
FLAGS: Mapping[str, str] = {
    "compaction_readahead_size": "compaction-readahead-size",
    "bytes_per_sync": "bytes-per-sync",
    "table_cache_numshardbits": "table-cache-num-shard-bits",
    "max_write_buffer_number": "max-write-buffer-number",
    "write_buffer_size": "write-buffer-size",
    "max_bytes_for_level_base": "max-bytes-for-level-base",
    "max_bytes_for_level_multiplier": "max-bytes-for-level-multiplier",
    "max_manifest_file_size": "max-manifest-file-size",
    "target_file_size_base": "target-file-size-base",
    "min_write_buffer_number_to_merge": "min-write-buffer-number-to-merge",
    "level0_file_num_compaction_trigger": "level-zero-file-num-compaction-trigger",
    "level0_slowdown_writes_trigger": "level-zero-slowdown-writes-trigger",
    "level0_stop_writes_trigger": "level-zero-stop-writes-trigger",
    "num_levels": "num-levels",
    "memtable_prefix_bloom_size_ratio": "memtable-prefix-bloom-ratio",
    "block_based_table_factory.block_size": "block-opt-block-size",
    "block_based_table_factory.block_cache": "block-opt-lru-cache",
}
SWITCHES: Mapping[str, tuple[str, str]] = {
    "use_fsync": ("use-fsync", "true"),
    "use_direct_reads": ("use-direct-reads", "true"),
    "use_direct_io_for_flush_and_compaction": ("use-direct-io-for-flush-and-compaction", "true"),
    "disable_auto_compactions": ("disable-auto-compactions", "true"),
    "allow_concurrent_memtable_write": ("disable-concurrent-memtable-write", "false"),
    "advise_random_on_open": ("disable-advise-random-on-open", "false"),
    "block_based_table_factory.no_block_cache": ("block-opt-disable-cache", "true"),
    "block_based_table_factory.cache_index_and_filter_blocks": (
        "block-opt-cache-index-and-filter-blocks",
        "true",
    ),
}
_WORDS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "compaction_style": (
        "compaction-style",
        {
            "kCompactionStyleLevel": "level",
            "kCompactionStyleUniversal": "universal",
            "kCompactionStyleFIFO": "fifo",
        },
    ),
    "block_based_table_factory.index_type": (
        "block-opt-index-type",
        {
            "kBinarySearch": "binary-search",
            "kHashSearch": "hash-search",
            "kTwoLevelIndexSearch": "two-level-index-search",
        },
    ),
}
ALL_FLAGS = (
    *FLAGS.values(),
    *(flag for flag, _ in SWITCHES.values()),
    *(flag for flag, _ in _WORDS.values()),
    *("force-default", "parallelism", "optimize-level-style-compaction"),
    *("optimize-for-point-lookup", "min-write-buffer-number", "memtable-factory-vector"),
    *("memtable-factory-hashskiplist-bucket-count", "memtable-factory-hashskiplist-height"),
    *("memtable-factory-hashskiplist-branching-factor",),
    *("memtable-factory-hashlinklist-bucket-count",),
    *("block-opt-bloom-filter-bits-per-key", "block-opt-bloom-filter-block-based"),
)
_FILTER = "block_based_table_factory.filter_policy"
_BLOOM = "bloomfilter:"


def check(workload: Workload, _engine_name: str) -> None:
    """Raises InputError for the first thing in `workload` that ekvsb cannot perform."""
    check_number_keys(NAME, workload)
    check_closed_loop(NAME, workload)
    check_durability(NAME, workload, (Durability.WAL,))
    if workload.page_cache is not PageCache.WARM:
        raise cannot(NAME, "page_cache", found=workload.page_cache.value, allowed="warm")
    if workload.key_bytes < len(str(workload.num - 1)):
        allowed = f"{len(str(workload.num - 1))} or more: its keys are text, decimal digits"
        raise cannot(NAME, "key_bytes", found=workload.key_bytes, allowed=allowed)
    total = 0
    for _, phase in performing(workload):
        total += operations_of(workload, phase)
    if total > OPERATIONS_MAX:
        allowed = f"at most {OPERATIONS_MAX} in all phases: it holds its workload in memory"
        raise cannot(NAME, "num", found=total, allowed=allowed)


def operations_of(workload: Workload, phase: Phase) -> int:
    """How many tasks `phase` is. Raises InputError for what ekvsb cannot perform of it."""
    field = f"{phase.name}: operation"
    if phase.operation not in METHOD:
        found = phase.operation or ("a mix of operations" if phase.mix is not None else "nothing")
        raise cannot(NAME, field, found=found, allowed=", ".join(METHOD))
    if phase.threads != 1:
        raise cannot(NAME, f"{phase.name}: threads", found=phase.threads, allowed="1")
    if phase.duration_s is not None:
        raise cannot(NAME, f"{phase.name}: duration_s", why="it ends by its operations alone")
    count = phase.operations_whole
    count = workload.num if count is None else count
    if phase.operation in _EACH_ONCE and count > workload.num:
        allowed = f"at most num, {workload.num}: each key comes up once"
        raise cannot(NAME, f"{phase.name}: operations", found=count, allowed=allowed)
    return count


def tasks_json(workload: Workload, seed: int) -> Iterator[str]:
    """The JSON of the workload, all phases one after another, in pieces; settle phases are none."""
    yield "["
    lead = ""
    for index, phase in performing(workload):
        method = METHOD[str(phase.operation)]
        for number in _numbers(workload, phase, random.Random(f"{seed} {index}")):
            yield lead + _task(method, str(number).zfill(workload.key_bytes), workload.value_bytes)
            lead = ",\n"
    yield "]\n"


def _numbers(workload: Workload, phase: Phase, generator: random.Random) -> Iterator[int]:
    count = operations_of(workload, phase)
    if phase.operation in _IN_ORDER:
        yield from range(count)
    elif phase.operation in _EACH_ONCE:
        yield from generator.sample(range(workload.num), count)
    else:
        for _ in range(count):
            yield generator.randrange(workload.num)


def _task(method: str, key: str, value_bytes: int) -> str:
    if method == "PUT":
        return json.dumps({method: {"key": key, "value": {"size": value_bytes}}})
    return json.dumps({method: {"key": key}})


def option_arguments(options: Mapping[str, str]) -> tuple[str, ...]:
    """The flags of `ekvsb run rocksdb` for `options`, as text in RocksDB's spelling.

    Raises InputError for an option or a value that ekvsb has no flag of.
    """
    found: list[str] = []
    for name, value in options.items():
        if name in FLAGS:
            found += [f"--{FLAGS[name]}", value]
        elif name in SWITCHES:
            found += _switch(name, value)
        elif name in _WORDS:
            flag, words = _WORDS[name]
            if value not in words:
                raise cannot(NAME, f"options.{name}", found=value, allowed=", ".join(words))
            found += [f"--{flag}", words[value]]
        elif name == _FILTER and value.startswith(_BLOOM):
            bits = value.removeprefix(_BLOOM).partition(":")[0]
            found += ["--block-opt-bloom-filter-bits-per-key", bits]
        else:
            known = ", ".join(sorted({*FLAGS, *SWITCHES, *_WORDS, _FILTER}))
            raise cannot(NAME, f"options.{name}", why="it has no flag for this", allowed=known)
    return tuple(found)


def _switch(name: str, value: str) -> list[str]:
    flag, when = SWITCHES[name]
    if value not in ("true", "false"):
        raise cannot(NAME, f"options.{name}", found=value, allowed="true, false")
    return [f"--{flag}"] if value == when else []


def _blind_to(_phase: Phase) -> frozenset[str]:
    told = {"latency_us_p50", "latency_us_p95", "latency_us_p99"}
    return frozenset(PERCENTILES) - told | {"cpu_us_per_operation"}


WITHIN = "ekvsb counts only the time within operations; what lies between them is left out"


# --- ekvsb as a runner: one process performs all phases, whose records are told apart by number

WORKLOAD = "workload.json"
NO_SETTLE = "ekvsb cannot wait for compactions: its next phase starts from a tree that is busy"
_TYPE = {"PUT": "put", "GET": "get", "DELETE": "delete"}
_US_PER_S = 1e6


def _plan(request: RunRequest, _found: FoundProgram) -> Plan:
    workload = request.workload
    options = option_arguments(request.config.engine_options())
    phases = performing(workload)
    step = Step(
        arguments=("run", "rocksdb", str(request.directory / DATABASE), *options),
        phases=tuple(index for index, _ in phases),
        read=_reader(workload),
        files={WORKLOAD: _tasks(workload, request.seed)},
        stdin=WORKLOAD,
    )
    settles = any(phase.kind is PhaseKind.SETTLE for phase in workload.phases)
    return Plan((step,), (WITHIN, NO_SETTLE) if settles else (WITHIN,))


def _tasks(workload: Workload, seed: int) -> Callable[[], Iterator[str]]:
    return lambda: tasks_json(workload, seed)


def _reader(workload: Workload) -> Callable[[StepOutput], Observed]:
    def read(output: StepOutput) -> Observed:
        with output.stdout.open(encoding="utf-8", errors="replace") as lines:
            records = read_records(lines, NAME)
            return Observed(_phases(workload, records, output))

    return read


def _phases(
    workload: Workload, records: Iterator[EkvsbRecord], output: StepOutput
) -> Mapping[int, PhaseMeasurement]:
    """Each phase's records, in the order in which they were asked for."""
    found: dict[int, PhaseMeasurement] = {}
    phases = performing(workload)
    for index, phase in phases:
        wanted, summing, method = operations_of(workload, phase), Summing(), ""
        for _ in range(wanted):
            record = next(records, None)
            if record is None:
                why = f"ended after {summing.count} of {wanted} operations of {phase.name}"
                raise InputError(NAME, why=why)
            method = record.method
            summing.add(record)
        summary = summing.summary()
        if summary.errors:
            why = f"{summary.errors} of {wanted} operations of {phase.name} failed"
            raise InputError(NAME, why=why)
        told = _told(summary, _TYPE[method])
        found[index] = phase_measurement(phase, told, output, alone=len(phases) == 1)
    return found


def _told(summary: EkvsbSummary, timed: str) -> Told:
    count = summary.oks + summary.errors
    latency, reads = summary.latency, timed == "get"
    return Told(
        operations=count,
        elapsed_s=summary.elapsed_s,
        throughput_ops_s=summary.ops or 0.0,
        latencies={
            timed: Latency(
                count=count,
                latency_us_mean=summary.elapsed_s / count * _US_PER_S,
                latency_us_p50=latency.median_s * _US_PER_S,
                latency_us_p95=latency.p95_s * _US_PER_S,
                latency_us_p99=latency.p99_s * _US_PER_S,
                latency_us_max=latency.max_s * _US_PER_S,
            )
        },
        own_type=timed,
        keys_found=summary.exists if reads else None,
        keys_missing=summary.absents if reads else None,
        operations_by_type={timed: count},
    )


PROGRAM = Program(
    name=NAME,
    engines=("rocksdb",),
    executables=("ekvsb",),
    check=check,
    blind_to=_blind_to,
    known_flags=ALL_FLAGS,
    note=WITHIN,
    plan=_plan,
)
