"""How RocksDB's db_bench is called for one phase of a Workload.

Facts from `tools/db_bench_tool.cc`, 7.8 to 11: `--num` is the number of keys, `--reads`,
`--writes` and `--deletes` are operations of each thread, `--duration` whole seconds in place of
them; seed 0 stands for the time of day; keys are a number of 8 bytes, big-endian, and zeros;
benchmarks that fill want a database of their own; `filluniquerandom` runs in one thread. A mix of
gets, puts and scans is `mixgraph` (`mixgraph_call`), which inserts nothing: `fillseq` loads for it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from lsmtune.driver.native_run import DATABASE
from lsmtune.errors import InputError
from lsmtune.model.measurement import Interval, Latency
from lsmtune.model.metrics import LATENCIES
from lsmtune.model.request import RunRequest
from lsmtune.model.workload import Durability, Mix, Phase, Workload
from lsmtune.programs.db_bench import TIMED_TYPE, WRITES, benchmark_of
from lsmtune.programs.mixgraph import BENCHMARK as MIXGRAPH
from lsmtune.programs.mixgraph import mixgraph_differences, mixgraph_flags
from lsmtune.programs.output import (
    cannot,
    check_closed_loop,
    check_durability,
    check_number_keys,
    leading_settle,
    performing,
    settled_after,
)
from lsmtune.programs.program import (
    Follow,
    FoundProgram,
    Introduction,
    Observed,
    Plan,
    Program,
    Step,
    StepOutput,
    Told,
    build_told,
    exported,
    latency_of,
    phase_measurement,
)
from lsmtune.programs.rocksdb_db_bench_output import HEADING, BenchmarkResult, parse_db_bench

NAME = "rocksdb-db_bench"
BENCHMARKS = (
    *("fillseq", "fillrandom", "filluniquerandom", "overwrite", "deleterandom"),
    *("readseq", "readrandom", "readmissing", "readwhilewriting", "seekrandom"),
)
# What a settle phase is here: memtables to the disk, then waiting for compactions.
SETTLE = ("flush", "waitforcompaction")
_LOAD = "fillseq"
_WITHOUT_DURATION = frozenset({"fillseq", "filluniquerandom", "readseq"})
_COUNT_FLAG = {"deleterandom": "deletes"}
_NO_LOG = {"disable_wal": "true"}


def check(workload: Workload, _engine_name: str) -> None:
    """Raises InputError for the first thing in `workload` that db_bench cannot perform."""
    check_number_keys(NAME, workload)
    check_closed_loop(NAME, workload, waves=True)
    check_durability(NAME, workload, tuple(Durability))
    if leading_settle(workload):
        raise cannot(NAME, "settle", why="nothing was written yet")
    for index, _ in performing(workload):
        _phase_flags(workload, index)


def benchmark(workload: Workload, index: int) -> str:
    """The benchmark that performs phase `index`. Raises InputError where there is none."""
    phase = workload.phases[index]
    if phase.mix is None:
        return benchmark_of(NAME, phase, BENCHMARKS, first=index == 0)
    if not _is_load(phase.mix):
        return MIXGRAPH
    if index != 0 or phase.mix.first != 0 or phase.mix.insert_from not in (None, 0):
        why = "mixgraph inserts nothing, and fillseq fills only an empty database, from 0 on"
        raise cannot(NAME, f"{phase.name}: operations", found="insert", why=why)
    if phase.is_open_loop:
        raise cannot(NAME, f"{phase.name}: rate", why="fillseq holds no rate")
    return _LOAD


def arguments(
    workload: Workload, index: int, *, database: str, seed: int, settle: bool, report: str = ""
) -> tuple[str, ...]:
    """The arguments that perform phase `index` of `workload`, without those of a Config.

    `seed` is that of the run, of which each phase gets its own. `settle` adds a settle phase behind
    it; `report` is the file for the interval series, empty for none. Raises what `check` raises.
    """
    flags = {
        "benchmarks": ",".join((benchmark(workload, index), *(SETTLE if settle else ()))),
        "db": database,
        "use_existing_db": "false" if index == 0 else "true",
        "num": str(workload.num),
        "key_size": str(workload.key_bytes),
        "value_size": str(workload.value_bytes),
        "compression_ratio": repr(workload.compression_ratio),
        "seed": str(phase_seed(seed, index)),
        "histogram": "true",
        "progress_reports": "false",
        **_phase_flags(workload, index),
    }
    if workload.durability is not Durability.WAL:
        flags |= {"sync": "true"} if workload.durability is Durability.SYNC else _NO_LOG
    if report:
        flags |= {"report_interval_seconds": "1", "report_file": report}
    return tuple(f"--{name}={value}" for name, value in flags.items())


def differences(workload: Workload) -> tuple[str, ...]:
    """What db_bench does otherwise than `workload`, which it can perform, says: a line each."""
    found: list[str] = []
    for index, phase in performing(workload):
        if phase.mix is None:
            continue
        if benchmark(workload, index) == MIXGRAPH:
            found += mixgraph_differences(workload, phase, phase.mix)
            continue
        sizes = phase.mix.value_sizes
        if phase.threads > 1 or (sizes is not None and sizes.name != "constant"):
            size = f"values of {workload.value_bytes} bytes each"
            found.append(f"db_bench loads by fillseq ({phase.name}): one thread, {size}")
    return tuple(found)


def _phase_flags(workload: Workload, index: int) -> dict[str, str]:
    """What phase `index` has of its own."""
    phase, name = workload.phases[index], benchmark(workload, index)
    threads = 1 if phase.mix is not None and name == _LOAD else phase.threads
    flags = {"threads": str(threads), **_size_flags(replace(phase, threads=threads), name)}
    if phase.mix is not None and name == MIXGRAPH:
        flags |= mixgraph_flags(NAME, workload, phase, phase.mix)
    if name == "seekrandom":
        flags["seek_nexts"] = str(phase.seek_nexts)
    return flags


def _is_load(mix: Mix) -> bool:
    return mix.records == 0 and {name for name, _ in mix.operations} == {"insert"}


def phase_seed(seed: int, index: int) -> int:
    """The seed of phase `index` in a run with `seed`.

    Of one seed, every process of db_bench draws the same keys: reads would follow the order in
    which another phase wrote. Thread n has the seed plus n, so that neighbours will not do either.
    """
    return random.Random(f"{seed} {index}").randrange(1, 2**62)


def _size_flags(phase: Phase, benchmark: str) -> dict[str, str]:
    if phase.duration_s is not None:
        return _duration_flags(phase, benchmark)
    count = phase.operations_per_thread
    if count is None and phase.operations is not None:
        count, rest = divmod(phase.operations, phase.threads)
        if rest:
            allowed = f"a multiple of its {phase.threads} threads"
            raise cannot(NAME, f"{phase.name}: operations", found=phase.operations, allowed=allowed)
    if benchmark == "filluniquerandom" and phase.threads != 1:
        raise cannot(NAME, f"{phase.name}: threads", found=phase.threads, allowed="1")
    flag = _COUNT_FLAG.get(benchmark, "writes" if benchmark in WRITES else "reads")
    return {} if count is None else {flag: str(count)}


def _duration_flags(phase: Phase, benchmark: str) -> dict[str, str]:
    duration_s = phase.duration_s or 0.0
    if benchmark in _WITHOUT_DURATION:
        raise cannot(NAME, f"{phase.name}: duration_s", why=f"{benchmark} ends by its operations")
    if duration_s != int(duration_s):
        raise cannot(
            NAME, f"{phase.name}: duration_s", found=duration_s, allowed="a whole number of seconds"
        )
    if phase.operations_whole is not None:
        why = "beside a number of operations: it takes one of the two"
        raise cannot(NAME, f"{phase.name}: duration_s", why=why)
    return {"duration": str(int(duration_s))}


def _blind_to(phase: Phase) -> frozenset[str]:
    """Of a mix of several types, any latency of all of them together."""
    return LATENCIES if phase.mix is not None and len(phase.mix.operations) > 1 else frozenset()


# --- RocksDB's db_bench as a runner: one process for each phase, options by an OPTIONS file
#
# A file and not flags, because db_bench has defaults of its own for what no flag says, and an
# OPTIONS file takes RocksDB's; only the size of the block cache has to be a flag as well, which
# outweighs the file (`InitializeOptionsGeneral`).

OPTIONS = "OPTIONS"
REPORT = "report.csv"
_CACHE = "block_based_table_factory.block_cache"
# What mixgraph calls the types of a mix; a seek goes on through its entries.
_MIX_TYPES = {"read": "get", "write": "put", "seek": "scan"}


def _plan(request: RunRequest, found: FoundProgram) -> Plan:
    workload = request.workload
    text = exported(NAME, "rocksdb-options", "rocksdb", request.config, found.version)
    steps = tuple(_step(request, index, phase, text) for index, phase in performing(workload))
    return Plan(steps, differences(workload))


def _step(request: RunRequest, index: int, phase: Phase, text: str) -> Step:
    workload = request.workload
    settle = settled_after(workload, index)
    load_seed = request.seed if request.load_seed is None else request.load_seed
    report = REPORT if settle is None else ""
    called = arguments(
        workload,
        index,
        database=str(request.directory / DATABASE),
        seed=load_seed if phase.kind.value == "load" else request.seed,
        settle=settle is not None,
        report=report,
    )
    cache = request.config.engine_options().get(_CACHE)
    return Step(
        arguments=(
            *called,
            f"--options_file={OPTIONS}",
            *(() if cache is None else (f"--cache_size={cache}",)),
        ),
        phases=(index,) if settle is None else (index, settle),
        read=_reader(workload, index, alone=settle is None),
        files={OPTIONS: lambda: iter((text,)), REPORT: lambda: iter(())},
        followed=REPORT if report else None,
        follow=follow_report if report else None,
    )


def _reader(workload: Workload, index: int, *, alone: bool) -> Callable[[StepOutput], Observed]:
    phase = workload.phases[index]
    name = benchmark(workload, index)

    def read(output: StepOutput) -> Observed:
        said = parse_db_bench(output.errors() + "\n" + output.text(), NAME)
        result = said.result_of(name)
        if result is None:
            why = said.skipped.get(name, "printed no result")
            raise InputError(NAME, name, why=why, found="; ".join(said.notes) or None)
        told = _told(result, phase)
        measured = phase_measurement(phase, told, output, alone=alone)
        return Observed({index: measured}, said.warnings, said.version, build_told(said.warnings))

    return read


def _told(result: BenchmarkResult, phase: Phase) -> Told:
    if result.operations is None or result.elapsed_s is None:
        # Before RocksDB 7.0: seconds of all threads together by their operations, and their rate.
        allowed = "RocksDB 7.0 or newer, which prints seconds and operations"
        raise InputError(NAME, result.name, why="printed neither", allowed=allowed)
    latencies = _latencies(result, phase)
    keys = _keys(result) if phase.threads == 1 else (None, None)
    counts = {name: latency.count for name, latency in latencies.items()}
    if phase.mix is None:
        counts = {TIMED_TYPE[result.name]: result.operations}
    return Told(
        operations=result.operations,
        elapsed_s=result.elapsed_s,
        throughput_ops_s=float(result.throughput_ops_s),
        latencies=latencies,
        own_type=next(iter(latencies)) if len(latencies) == 1 else None,
        keys_found=keys[0],
        keys_missing=keys[1],
        operations_by_type=counts,
    )


def _latencies(result: BenchmarkResult, phase: Phase) -> dict[str, Latency]:
    """By lsmtune's types; mixgraph prints a histogram of each type that it performed."""
    if phase.mix is None:
        printed = {TIMED_TYPE[result.name]: result.histograms[0]} if result.histograms else {}
    else:
        types = _MIX_TYPES if result.name == MIXGRAPH else {"write": "insert"}
        printed = {types[h.what]: h for h in result.histograms if h.what in types}
    found = {name: latency_of(histogram) for name, histogram in printed.items()}
    return {name: latency for name, latency in found.items() if latency is not None}


def _keys(result: BenchmarkResult) -> tuple[int | None, int | None]:
    """Keys found and missing; what db_bench says of them is of one thread only."""
    if result.mixgraph is not None:
        tried = result.mixgraph.gets + result.mixgraph.seeks
        return result.mixgraph.found, tried - result.mixgraph.found
    if result.keys_found is None or result.keys_tried is None:
        return None, None
    return result.keys_found, result.keys_tried - result.keys_found


def follow_report() -> Follow:
    """Reads the lines of `--report_file`; the program's memory at that moment is not in them."""
    done = 0
    before_s = 0.0

    def follow(line: str) -> Interval | None:
        nonlocal done, before_s
        if HEADING.fullmatch(line) or not line:
            return None
        elapsed, _, rate = line.partition(",")
        elapsed_s = float(elapsed)
        interval_s = elapsed_s - before_s
        operations = round(int(rate) * interval_s)
        done, before_s = done + operations, elapsed_s
        return Interval(elapsed_s, interval_s, operations, done, float(rate), None)

    return follow


def _introduced(text: str) -> Observed:
    said = parse_db_bench(text, NAME)
    return Observed({}, said.warnings, said.version, build_told(said.warnings))


PROGRAM = Program(
    name=NAME,
    engines=("rocksdb",),
    executables=("db_bench", "rocksdb_db_bench", "db_bench.rocksdb"),
    check=check,
    blind_to=_blind_to,
    note="each phase is a process of its own, which opens the database again",
    plan=_plan,
    introduction=Introduction(("--benchmarks=", "--num=1", "--db={database}"), _introduced),
)
