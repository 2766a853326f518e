"""How RocksDB's and LevelDB's db_bench are called, and what a phase of theirs came to."""

from __future__ import annotations

import random
import re
import shlex
from collections.abc import Collection, Mapping
from functools import partial

from lsmtune.driver.runner import DATABASE
from lsmtune.engines.formats.base import ExportRequest
from lsmtune.engines.formats.db_bench import flags_of
from lsmtune.engines.formats.spelling import INT_MAX
from lsmtune.engines.option_names import BLOCK_CACHE, NO_BLOCK_CACHE
from lsmtune.errors import InputError, nearest_name
from lsmtune.model.config import OptionValue
from lsmtune.model.measurement import PhaseMeasurement
from lsmtune.model.metrics import LATENCIES
from lsmtune.model.request import RunRequest
from lsmtune.model.workload import Durability, PageCache, Phase, PhaseKind, Workload
from lsmtune.programs.db_bench_output import (
    LEVELDB,
    ROCKSDB,
    BenchmarkResult,
    follow_report,
    introduced,
    leveldb_pace,
    read_result,
)
from lsmtune.programs.mixgraph import mixgraph_differences, mixgraph_flags
from lsmtune.programs.output import (
    cannot,
    check_performable,
    performing,
    refuse_leading_settle,
    settles_after,
)
from lsmtune.programs.program import (
    FoundProgram,
    Introduction,
    Plan,
    Program,
    Step,
    StepOutput,
    options_for,
    phase_measurement,
    settle_warnings,
)
from lsmtune.programs.registry import LEVELDB_NAME, ROCKSDB_NAME

# The operation type, in lsmtune's words, that a benchmark's latencies are those of.
TIMED_TYPE: Mapping[str, str] = {
    **dict.fromkeys(("fillseq", "fillrandom", "filluniquerandom", "overwrite"), "put"),
    **dict.fromkeys(("readrandom", "readmissing", "readhot", "readwhilewriting"), "get"),
    **{"deleterandom": "delete", "readseq": "next", "seekrandom": "seek"},
}
_WRITES = frozenset(name for name, timed in TIMED_TYPE.items() if timed == "put")
_FRESH = _WRITES - {"overwrite"}  # benchmarks that begin with an empty database
_INTRODUCTION = ("--benchmarks=", "--num=1", "--db={database}")


def _benchmark_of(program: str, phase: Phase, known: tuple[str, ...], *, first: bool) -> str:
    """The benchmark that performs `phase`, one of `known`.

    On a database that is there already (not `first`), random keys are written by `overwrite`.
    Raises InputError for an operation that the program has no benchmark of.
    """
    operation = phase.operation
    field = f"{phase.name}: operation"
    if operation is None:
        what = "a mix of operations" if phase.mix is not None else "nothing"
        raise cannot(program, field, found=what, allowed=", ".join(known))
    if operation == "fillrandom" and not first:
        operation = "overwrite"
    if operation not in known:
        nearest = nearest_name(operation, known)
        hint = f"; the nearest is {nearest}" if nearest else ""
        raise cannot(program, field, found=operation, allowed=f"{', '.join(known)}{hint}")
    if operation in _FRESH and not first:
        raise cannot(program, field, found=operation, why="it fills only an empty database")
    return operation


# --- RocksDB's db_bench
#
# Facts from `tools/db_bench_tool.cc`, 7.8 to 11: `--num` is the number of keys, `--reads`,
# `--writes` and `--deletes` are operations of each thread, `--duration` whole seconds in place of
# them; seed 0 stands for the time of day; keys are a number of 8 bytes, big-endian, and zeros;
# benchmarks that fill want a database of their own; `filluniquerandom` runs in one thread. A mix of
# gets, puts and scans is `mixgraph`, which inserts nothing: `fillseq` loads for it.
#
# Options go by an OPTIONS file and not by flags, because db_bench has defaults of its own for what
# no flag says, and an OPTIONS file takes RocksDB's; only size and kind of the block cache have to
# be flags as well, which outweigh the file (`InitializeOptionsGeneral`).

_ROCKSDB_BENCHMARKS = (
    *("fillseq", "fillrandom", "filluniquerandom", "overwrite", "deleterandom"),
    *("readseq", "readrandom", "readmissing", "readwhilewriting", "seekrandom"),
)
_MIXGRAPH = "mixgraph"
_LOAD = "fillseq"
_EACH_ONCE = frozenset({"fillseq", "filluniquerandom"})
_WITHOUT_DURATION = _EACH_ONCE | {"readseq"}
_HAS_A_WRITER = "readwhilewriting"
_OPTIONS = "OPTIONS"
_REPORT = "report.csv"
# What mixgraph calls the types of a mix; a seek goes on through its entries.
_MIX_TYPES = {"read": "get", "write": "put", "seek": "scan"}


def check_rocksdb(workload: Workload, _engine_name: str) -> None:
    """Raises InputError for the first thing in `workload` that db_bench cannot perform."""
    check_performable(ROCKSDB_NAME, workload, tuple(Durability), waves=True)
    refuse_leading_settle(ROCKSDB_NAME, workload)
    for index, _ in performing(workload):
        _rocksdb_phase_flags(workload, index)


def rocksdb_benchmark(workload: Workload, index: int) -> str:
    """The benchmark that performs phase `index`. Raises InputError where there is none."""
    phase = workload.phases[index]
    if phase.mix is None:
        return _benchmark_of(ROCKSDB_NAME, phase, _ROCKSDB_BENCHMARKS, first=index == 0)
    mix = phase.mix
    if mix.records != 0 or mix.names != {"insert"}:
        return _MIXGRAPH
    if index != 0 or mix.first != 0 or mix.insert_from not in (None, 0):
        why = "mixgraph inserts nothing, and fillseq fills only an empty database, from 0 on"
        raise cannot(ROCKSDB_NAME, f"{phase.name}: operations", found="insert", why=why)
    if phase.is_open_loop:
        raise cannot(ROCKSDB_NAME, f"{phase.name}: rate", why="fillseq holds no rate")
    return _LOAD


def rocksdb_arguments(
    workload: Workload, index: int, *, database: str, seed: int, settle: bool, report: str = ""
) -> tuple[str, ...]:
    """The arguments that perform phase `index` of `workload`, without those of a Config.

    `seed` is that of the run, of which each phase gets its own. `settle` adds a settle phase behind
    it: memtables to the disk, then waiting for compactions. `report` is the file for the interval
    series, empty for none. Raises what `check_rocksdb` raises.
    """
    settling = ("flush", "waitforcompaction") if settle else ()
    flags = {
        "benchmarks": ",".join((rocksdb_benchmark(workload, index), *settling)),
        "db": database,
        "use_existing_db": "false" if index == 0 else "true",
        "num": str(workload.num),
        "key_size": str(workload.key_bytes),
        "value_size": str(workload.value_bytes),
        "compression_ratio": repr(workload.compression_ratio),
        "seed": str(phase_seed(seed, index)),
        "histogram": "true",
        "progress_reports": "false",
        **_rocksdb_phase_flags(workload, index),
    }
    if workload.durability is Durability.SYNC:
        flags["sync"] = "true"
    elif workload.durability is Durability.NONE:
        flags["disable_wal"] = "true"
    if report:
        flags |= {"report_interval_seconds": "1", "report_file": report}
    return tuple(f"--{name}={value}" for name, value in flags.items())


def phase_seed(seed: int, index: int) -> int:
    """The seed of phase `index` in a run with `seed`.

    Of one seed, every process of db_bench draws the same keys: reads would follow the order in
    which another phase wrote. Thread n has the seed plus n, so that neighbours will not do either.
    """
    return random.Random(f"{seed} {index}").randrange(1, 2**62)


def _rocksdb_phase_flags(workload: Workload, index: int) -> dict[str, str]:
    """What phase `index` has of its own."""
    phase, benchmark = workload.phases[index], rocksdb_benchmark(workload, index)
    threads = 1 if phase.mix is not None and benchmark == _LOAD else phase.threads
    flags = {"threads": str(threads), **_size_flags(phase, benchmark, threads)}
    each = int(flags.get("writes", 0))
    if phase.operation in _EACH_ONCE and each > workload.num:
        # It would go on behind the last key, or behind the end of its table of them.
        field, allowed = f"{phase.name}: operations", f"at most num, {workload.num}, of each thread"
        raise cannot(ROCKSDB_NAME, field, found=each, allowed=allowed)
    if phase.mix is not None and benchmark == _MIXGRAPH:
        flags |= mixgraph_flags(workload, phase, phase.mix)
    if benchmark == "seekrandom":
        flags["seek_nexts"] = str(phase.seek_nexts)
    return flags


def _size_flags(phase: Phase, benchmark: str, threads: int) -> dict[str, str]:
    """How long the phase lasts: whole seconds, or operations of each of `threads` threads."""
    count = phase.operations_per_thread
    if (duration_s := phase.duration_s) is not None:
        field = f"{phase.name}: duration_s"
        if benchmark in _WITHOUT_DURATION:
            raise cannot(ROCKSDB_NAME, field, why=f"{benchmark} ends by its operations")
        if duration_s != int(duration_s):
            allowed = "a whole number of seconds"
            raise cannot(ROCKSDB_NAME, field, found=duration_s, allowed=allowed)
        if phase.operations_whole is not None:
            why = "beside a number of operations: it takes one of the two"
            raise cannot(ROCKSDB_NAME, field, why=why)
        return {"duration": str(int(duration_s))}
    if count is None and phase.operations is not None:
        count, rest = divmod(phase.operations, threads)
        if rest:
            field, allowed = f"{phase.name}: operations", f"a multiple of its {threads} threads"
            raise cannot(ROCKSDB_NAME, field, found=phase.operations, allowed=allowed)
    if benchmark == "filluniquerandom" and threads != 1:
        raise cannot(ROCKSDB_NAME, f"{phase.name}: threads", found=threads, allowed="1")
    flag = "writes" if benchmark in _WRITES else "reads"
    flag = "deletes" if benchmark == "deleterandom" else flag
    return {} if count is None else {flag: str(count)}


def rocksdb_differences(workload: Workload) -> tuple[str, ...]:
    """What db_bench does otherwise than `workload`, which it can perform, says: a line each."""
    lines: list[str] = []
    for index, phase in performing(workload):
        if phase.mix is None:
            continue
        sizes = phase.mix.value_sizes
        if rocksdb_benchmark(workload, index) == _MIXGRAPH:
            lines += mixgraph_differences(workload, phase, phase.mix)
        elif phase.threads > 1 or (sizes is not None and sizes.name != "constant"):
            size = f"values of {workload.value_bytes} bytes each"
            lines.append(f"db_bench loads by fillseq ({phase.name}): one thread, {size}")
    return tuple(lines)


def _plan_rocksdb(request: RunRequest, executable: FoundProgram) -> Plan:
    """One process for each phase and the settle phase behind it."""
    workload = request.workload
    text = options_for(
        ROCKSDB_NAME, "rocksdb-options", "rocksdb", request.config.options, executable.version
    )
    cache = _cache_flags(request.config.options, executable.flags)
    options = (f"--options_file={_OPTIONS}", *cache)
    load_seed = request.seed if request.load_seed is None else request.load_seed
    steps = []
    for index, phase in performing(workload):
        settle, benchmark = settles_after(workload, index), rocksdb_benchmark(workload, index)
        # A report counts the writer beside the readers as well, and the seconds of settling.
        reports = not settle and benchmark != _HAS_A_WRITER
        called = rocksdb_arguments(
            workload,
            index,
            database=str(request.directory / DATABASE),
            seed=load_seed if phase.kind is PhaseKind.LOAD else request.seed,
            settle=settle,
            report=_REPORT if reports else "",
        )
        measured = partial(_rocksdb_phase, phase, not settle)
        step = Step(
            arguments=(*called, *options),
            phases=(index,),  # when settling begins and ends, nobody says
            read=partial(read_result, ROCKSDB_NAME, ROCKSDB, index, benchmark, measured),
            files={_OPTIONS: lambda: iter((text,)), _REPORT: lambda: iter(())},
            follow={_REPORT: follow_report} if reports else {},
        )
        steps.append(step)
    return Plan(tuple(steps), rocksdb_differences(workload))


def _cache_flags(options: Mapping[str, OptionValue], known: Collection[str]) -> tuple[str, ...]:
    """The size and kind of the block cache, if `options` say a size; 0 where they want none.

    db_bench puts a cache of its own default into the file's options unless the size is 0. A size
    in an options string is an LRU cache's to RocksDB; newer db_bench makes a hyper clock cache
    unless told otherwise, and older ones do not have the flag (`known` are those it has).

    Raises InputError for a size that is no whole number, which is what the flag takes.
    """
    request = ExportRequest("rocksdb", options)
    wants_none = request.values().get(NO_BLOCK_CACHE) in ("true", "1")
    said, left_out = flags_of(request)
    refused = next((each.refused for each in left_out if each.option == BLOCK_CACHE), None)
    if refused is not None and not wants_none:
        raise refused.but(source=f"--runner {ROCKSDB_NAME}", field=f"options.{BLOCK_CACHE}")
    size = "0" if wants_none else said.get("cache_size")
    if size is None:
        return ()
    kind = ("--cache_type=lru_cache",) if size != "0" and "cache_type" in known else ()
    return (f"--cache_size={size}", *kind)


def _rocksdb_phase(
    phase: Phase, alone: bool, result: BenchmarkResult, output: StepOutput
) -> PhaseMeasurement:
    done, elapsed_s, rate = result.operations, result.elapsed_s, result.throughput_ops_s
    if done is None or elapsed_s is None or rate is None:
        # Before RocksDB 7.0: seconds of all threads together by their operations, and their rate.
        allowed = "RocksDB 7.0 or newer, which prints seconds and operations"
        raise InputError(ROCKSDB_NAME, result.name, why="printed neither", allowed=allowed)
    throughput_ops_s = float(rate)
    if elapsed_s:  # seconds are rounded, and the rate is cut to a whole number: as near as both say
        throughput_ops_s = min(max(done / elapsed_s, throughput_ops_s), throughput_ops_s + 1)
    if phase.mix is None:
        timed = TIMED_TYPE[result.name]
        printed = {timed: result.histograms[0]} if result.histograms else {}
    else:  # mixgraph prints a histogram of each type that it performed
        types = _MIX_TYPES if result.name == _MIXGRAPH else {"write": "insert"}
        printed = {types[h.what]: h for h in result.histograms if h.what in types}
    latencies = {name: known for name, h in printed.items() if (known := h.latency()) is not None}
    by_type = {name: latency.count for name, latency in latencies.items()}
    if phase.mix is None:
        by_type = {TIMED_TYPE[result.name]: done}
    keys_found = result.keys_found if phase.threads == 1 else None
    tried = result.keys_tried
    return phase_measurement(
        phase,
        output,
        alone=alone,
        operations=done,
        elapsed_s=elapsed_s,
        throughput_ops_s=throughput_ops_s,
        latencies=latencies,
        keys_found=keys_found,
        keys_missing=None if keys_found is None or tried is None else tried - keys_found,
        operations_by_type=by_type,
    )


def _rocksdb_blind_to(workload: Workload, index: int) -> frozenset[str]:
    """A latency of all types of a mix together; CPU time where the process also settles."""
    mix = workload.phases[index].mix
    latencies = LATENCIES if mix is not None and len(mix.operations) > 1 else frozenset[str]()
    return latencies | {"cpu_us_per_operation"} if settles_after(workload, index) else latencies


ROCKSDB_PROGRAM = Program(
    name=ROCKSDB_NAME,
    engines=("rocksdb",),
    executables=("db_bench", "rocksdb_db_bench", "db_bench.rocksdb"),
    answer=re.compile(r"^ +-benchmarks \(", re.MULTILINE),  # the help of gflags
    check=check_rocksdb,
    blind_to=_rocksdb_blind_to,
    note="each phase is a process of its own, which opens the database again",
    plan=_plan_rocksdb,
    introduction=Introduction(_INTRODUCTION, partial(introduced, ROCKSDB_NAME, ROCKSDB)),
)


# --- LevelDB's db_bench
#
# Facts from `benchmarks/db_bench.cc` (`db/db_bench.cc` up to 1.22): it has no seed: thread n draws
# the same numbers in every process, and up to 1.22 in every benchmark of one, so that reads would
# follow the order in which keys were written; `--num` is the number of keys and of writes of each
# thread, `--reads` of reads; keys are 16 decimal digits, with `--key_prefix` (from 1.23) more; it
# waits for no compactions and can leave out no log. Options go by flags.

_LEVELDB_BENCHMARKS = (
    *("fillseq", "fillrandom", "overwrite", "deleterandom", "readseq", "readrandom"),
    *("readmissing", "readhot", "readwhilewriting", "seekrandom"),
)
# Every flag that `main` of db_bench.cc reads; the last three came with 1.23.
LEVELDB_FLAGS = (
    *("benchmarks", "compression_ratio", "histogram", "use_existing_db", "reuse_logs", "num"),
    *("reads", "threads", "value_size", "write_buffer_size", "max_file_size", "block_size"),
    *("cache_size", "bloom_bits", "open_files", "db", "comparisons", "compression", "key_prefix"),
)
_COUNTED_BY_NUM = _WRITES | {"deleterandom"}
_IN_ORDER = frozenset({"fillseq", "readseq"})
_KEY_DIGITS = 16
_NO_SEED = "LevelDB's db_bench has no seed: it draws the same keys in every run"
_NO_SETTLE = "LevelDB's db_bench cannot wait for compactions: reads start from a tree that is busy"


def check_leveldb(workload: Workload, _engine_name: str) -> None:
    """Raises InputError for the first thing in `workload` that db_bench cannot perform."""
    check_performable(LEVELDB_NAME, workload, (Durability.WAL,))
    if workload.page_cache is PageCache.DIRECT:
        raise cannot(LEVELDB_NAME, "page_cache", found="direct", allowed="warm")
    if workload.key_bytes < _KEY_DIGITS:
        allowed = f"{_KEY_DIGITS} or more"
        raise cannot(LEVELDB_NAME, "key_bytes", found=workload.key_bytes, allowed=allowed)
    if workload.num > INT_MAX:
        raise cannot(LEVELDB_NAME, "num", found=workload.num, allowed=f"at most {INT_MAX}")
    refuse_leading_settle(LEVELDB_NAME, workload)
    for index, phase in performing(workload):
        _check_leveldb_phase(workload, index, phase)
    drawing = [phase for _, phase in performing(workload) if phase.operation not in _IN_ORDER]
    if len(drawing) > 1:
        first, last = drawing[0], drawing[-1]
        why = f"it has no seed, so that this would draw the keys of {first.name} in their order"
        allowed = "load=fillseq, or no other phase that draws keys"
        field = f"{last.name}: operation"
        raise cannot(LEVELDB_NAME, field, found=last.operation, why=why, allowed=allowed)


def _check_leveldb_phase(workload: Workload, index: int, phase: Phase) -> None:
    benchmark = _benchmark_of(LEVELDB_NAME, phase, _LEVELDB_BENCHMARKS, first=index == 0)
    if phase.duration_s is not None:
        field, why = f"{phase.name}: duration_s", "it ends by its operations alone"
        raise cannot(LEVELDB_NAME, field, why=why)
    if phase.seek_nexts:
        field = f"{phase.name}: seek_nexts"
        raise cannot(LEVELDB_NAME, field, found=phase.seek_nexts, allowed="0")
    field, whole = f"{phase.name}: operations", _leveldb_operations(workload, phase)
    if whole > INT_MAX:
        raise cannot(LEVELDB_NAME, field, found=whole, allowed=f"at most {INT_MAX}")
    each, rest = divmod(whole, phase.threads)
    if rest:
        allowed = f"a multiple of its {phase.threads} threads"
        raise cannot(LEVELDB_NAME, field, found=phase.operations, allowed=allowed)
    if benchmark in _COUNTED_BY_NUM and each != workload.num:
        allowed = f"num, {workload.num}, of each thread"
        raise cannot(LEVELDB_NAME, field, found=each, allowed=allowed)


def _leveldb_operations(workload: Workload, phase: Phase) -> int:
    """Operations of all threads together; of `readseq` where the database has so many keys."""
    whole = phase.operations_whole
    return workload.num * phase.threads if whole is None else whole


def leveldb_arguments(workload: Workload, index: int, *, database: str) -> tuple[str, ...]:
    """The arguments that perform phase `index` of `workload`, without those of a Config.

    Raises what `check_leveldb` raises.
    """
    phase = workload.phases[index]
    flags = {
        "benchmarks": _benchmark_of(LEVELDB_NAME, phase, _LEVELDB_BENCHMARKS, first=index == 0),
        "db": database,
        "use_existing_db": "0" if index == 0 else "1",
        "num": str(workload.num),
        "value_size": str(workload.value_bytes),
        "compression_ratio": repr(workload.compression_ratio),
        "threads": str(phase.threads),
        "histogram": "1",
    }
    if phase.operation not in _COUNTED_BY_NUM:
        flags["reads"] = str(_leveldb_operations(workload, phase) // phase.threads)
    if workload.key_bytes > _KEY_DIGITS:
        flags["key_prefix"] = str(workload.key_bytes - _KEY_DIGITS)
    return tuple(f"--{name}={value}" for name, value in flags.items())


def _plan_leveldb(request: RunRequest, _executable: FoundProgram) -> Plan:
    """One process for each phase."""
    workload, database = request.workload, str(request.directory / DATABASE)
    options = shlex.split(options_for(LEVELDB_NAME, "db_bench", "leveldb", request.config.options))
    steps = []
    for index, phase in performing(workload):
        benchmark = _benchmark_of(LEVELDB_NAME, phase, _LEVELDB_BENCHMARKS, first=index == 0)
        measured = partial(_leveldb_phase, workload, phase)
        read = partial(read_result, LEVELDB_NAME, LEVELDB, index, benchmark, measured)
        called = leveldb_arguments(workload, index, database=database)
        steps.append(Step((*called, *options), (index,), read))
    return Plan(tuple(steps), settle_warnings(workload, _NO_SEED, _NO_SETTLE))


def _leveldb_phase(
    workload: Workload, phase: Phase, result: BenchmarkResult, output: StepOutput
) -> PhaseMeasurement:
    timed = TIMED_TYPE[result.name]
    latency = result.histograms[0].latency() if result.histograms else None
    # A histogram counts what was done, which is less where a scan came to the end of the keys.
    operations = _leveldb_operations(workload, phase) if latency is None else latency.count
    micros = result.micros_per_operation
    elapsed_s, throughput_ops_s = leveldb_pace(micros, operations, phase.threads)
    keys_found = result.keys_found if phase.threads == 1 else None
    return phase_measurement(
        phase,
        output,
        alone=True,
        operations=operations,
        elapsed_s=elapsed_s,
        throughput_ops_s=throughput_ops_s,
        latencies={} if latency is None else {timed: latency},
        keys_found=keys_found,
        keys_missing=None if keys_found is None else operations - keys_found,
        operations_by_type={timed: operations},
    )


LEVELDB_PROGRAM = Program(
    name=LEVELDB_NAME,
    engines=("leveldb",),
    executables=("db_bench", "leveldb_db_bench", "db_bench.leveldb"),
    answer=re.compile(r"^Invalid flag '--help'", re.MULTILINE),
    check=check_leveldb,
    known_flags=LEVELDB_FLAGS,
    note="operations per second follow from its micros/op; each phase is a process of its own",
    plan=_plan_leveldb,
    introduction=Introduction(_INTRODUCTION, partial(introduced, LEVELDB_NAME, LEVELDB)),
)
