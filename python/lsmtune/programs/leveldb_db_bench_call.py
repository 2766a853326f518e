"""How LevelDB's db_bench is called for one phase of a Workload.

Facts from `benchmarks/db_bench.cc` (`db/db_bench.cc` up to 1.22): it has no seed: thread n draws
the same numbers in every process, and up to 1.22 in every benchmark of one, so that reads would
follow the order in which keys were written; `--num` is the number of keys and
of writes of each thread, `--reads` of reads; keys are 16 decimal digits, with `--key_prefix` (from
1.23) more; it waits for no compactions and can leave out no log.
"""

from __future__ import annotations

from lsmtune.programs.db_bench_words import WRITES, benchmark_of
from lsmtune.programs.info import ProgramInfo
from lsmtune.programs.performing import (
    cannot,
    check_closed_loop,
    check_durability,
    check_number_keys,
    leading_settle,
    performing,
)
from lsmtune.records.workload import Durability, PageCache, Phase, Workload

NAME = "leveldb-db_bench"
BENCHMARKS = (
    *("fillseq", "fillrandom", "overwrite", "deleterandom", "readseq", "readrandom"),
    *("readmissing", "readhot", "readwhilewriting", "seekrandom"),
)
# Every flag that `main` of db_bench.cc reads; the last three came with 1.23.
FLAGS = (
    *("benchmarks", "compression_ratio", "histogram", "use_existing_db", "reuse_logs", "num"),
    *("reads", "threads", "value_size", "write_buffer_size", "max_file_size", "block_size"),
    *("cache_size", "bloom_bits", "open_files", "db", "comparisons", "compression", "key_prefix"),
)
_COUNTED_BY_NUM = WRITES | {"deleterandom"}
_IN_ORDER = frozenset({"fillseq", "readseq"})
_KEY_DIGITS = 16
_INT_MAX = 2**31 - 1


def check(workload: Workload, _engine_name: str) -> None:
    """Raises InputError for the first thing in `workload` that db_bench cannot perform."""
    check_number_keys(NAME, workload)
    check_closed_loop(NAME, workload)
    check_durability(NAME, workload, (Durability.WAL,))
    if workload.page_cache is PageCache.DIRECT:
        raise cannot(NAME, "page_cache", found="direct", allowed="warm")
    if workload.key_bytes < _KEY_DIGITS:
        raise cannot(NAME, "key_bytes", found=workload.key_bytes, allowed=f"{_KEY_DIGITS} or more")
    if workload.num > _INT_MAX:
        raise cannot(NAME, "num", found=workload.num, allowed=f"at most {_INT_MAX}")
    if leading_settle(workload):
        raise cannot(NAME, "settle", why="nothing was written yet")
    for index, phase in performing(workload):
        _check_phase(workload, phase, benchmark_of(NAME, phase, BENCHMARKS, first=index == 0))
    _check_draws(workload)


def _check_draws(workload: Workload) -> None:
    """Refuses more than one phase that draws keys: they would all draw the same ones."""
    drawing = [phase for _, phase in performing(workload) if phase.operation not in _IN_ORDER]
    if len(drawing) > 1:
        first, last = drawing[0], drawing[-1]
        why = f"it has no seed, so that this would draw the keys of {first.name} in their order"
        allowed = "load=fillseq, or no other phase that draws keys"
        raise cannot(
            NAME, f"{last.name}: operation", found=last.operation, why=why, allowed=allowed
        )


def operations_of(workload: Workload, phase: Phase) -> int:
    """Operations of all threads together; of `readseq` where the database has so many keys."""
    whole = phase.operations_whole
    return workload.num * phase.threads if whole is None else whole


def arguments(workload: Workload, index: int, *, database: str) -> tuple[str, ...]:
    """The arguments that perform phase `index` of `workload`, without those of a Config.

    Raises what `check` raises.
    """
    phase = workload.phases[index]
    flags = {
        "benchmarks": benchmark_of(NAME, phase, BENCHMARKS, first=index == 0),
        "db": database,
        "use_existing_db": "0" if index == 0 else "1",
        "num": str(workload.num),
        "value_size": str(workload.value_bytes),
        "compression_ratio": repr(workload.compression_ratio),
        "threads": str(phase.threads),
        "histogram": "1",
    }
    if phase.operation not in _COUNTED_BY_NUM:
        flags["reads"] = str(operations_of(workload, phase) // phase.threads)
    if workload.key_bytes > _KEY_DIGITS:
        flags["key_prefix"] = str(workload.key_bytes - _KEY_DIGITS)
    return tuple(f"--{name}={value}" for name, value in flags.items())


def _check_phase(workload: Workload, phase: Phase, benchmark: str) -> None:
    if phase.duration_s is not None:
        raise cannot(NAME, f"{phase.name}: duration_s", why="it ends by its operations alone")
    if phase.seek_nexts:
        raise cannot(NAME, f"{phase.name}: seek_nexts", found=phase.seek_nexts, allowed="0")
    each, rest = divmod(operations_of(workload, phase), phase.threads)
    if rest:
        allowed = f"a multiple of its {phase.threads} threads"
        raise cannot(NAME, f"{phase.name}: operations", found=phase.operations, allowed=allowed)
    if benchmark in _COUNTED_BY_NUM and each != workload.num:
        allowed = f"num, {workload.num}, of each thread"
        raise cannot(NAME, f"{phase.name}: operations", found=each, allowed=allowed)


NO_SEED = "LevelDB's db_bench has no seed: it draws the same keys in every run"
INFO = ProgramInfo(
    name=NAME,
    engines=("leveldb",),
    executables=("db_bench", "leveldb_db_bench", "db_bench.leveldb"),
    check=check,
    known_flags=FLAGS,
    note="operations per second follow from its micros/op; each phase is a process of its own",
)
