"""How programs are called for a phase, and what of a workload each of them cannot perform."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmtune.engines.formats import export
from lsmtune.errors import InputError, by_name
from lsmtune.experiment.run_length import longer_by, warmed_by
from lsmtune.model.config import Config, EngineIdentity, OptionValue
from lsmtune.model.distribution import Distribution
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.workload import (
    Companion,
    Durability,
    KeyOrder,
    Mix,
    PageCache,
    Phase,
    PhaseKind,
    Replay,
    Workload,
    YcsbKeys,
)
from lsmtune.programs import ekvsb as ekvsb_call
from lsmtune.programs import ycsb_cpp as ycsb_cpp_call
from lsmtune.programs.db_bench import (
    LEVELDB_FLAGS,
    LEVELDB_PROGRAM,
    ROCKSDB_PROGRAM,
    check_leveldb,
    check_rocksdb,
    leveldb_arguments,
    phase_seed,
    rocksdb_arguments,
)
from lsmtune.programs.find import recognised
from lsmtune.programs.output import gflags_known, nearest_flag, refused_flag
from lsmtune.programs.program import FoundProgram, Program, StepOutput
from lsmtune.programs.registry import PROGRAMS
from lsmtune.study.stored import smaller
from lsmtune.workloads.stated import make_workload

LIMITS = Limits(20.0, 1 << 30, 1 << 30)
LOAD = Phase("load", PhaseKind.LOAD, "fillrandom", operations_per_thread=1000)
SETTLE = Phase("settle", PhaseKind.SETTLE)
READ = Phase("readrandom", PhaseKind.MEASURE, "readrandom", operations_per_thread=500, threads=2)
READS = Workload("readrandom", (LOAD, SETTLE, READ), num=1000)
ORDERED = replace(READS, phases=(replace(LOAD, operation="fillseq"), SETTLE, READ))
ROW = Distribution.of(
    "row", fields=10, names_bytes=60, length=Distribution.of("constant", size=100)
)
MIX = Mix((("get", 3.0), ("update", 1.0)), records=1000, value_sizes=ROW)
YCSB = Workload(
    "ycsb-a",
    (
        Phase(
            "load",
            PhaseKind.LOAD,
            mix=Mix((("insert", 1.0),), records=0, value_sizes=ROW),
            operations=9,
        ),
        SETTLE,
        Phase("run", PhaseKind.MEASURE, mix=MIX, operations=2000, threads=3),
    ),
    num=1000,
    keys=YcsbKeys(),
)


def flags(arguments: tuple[str, ...]) -> dict[str, str]:
    return dict(argument.removeprefix("--").split("=", 1) for argument in arguments)


def test_rocksdb_db_bench_is_told_the_phase_in_its_own_words() -> None:
    fill = flags(rocksdb_arguments(READS, 0, database="/d", seed=7, settle=True, report="r"))
    assert fill["benchmarks"] == "fillrandom,flush,waitforcompaction"
    assert (fill["use_existing_db"], fill["writes"], fill["report_file"]) == ("false", "1000", "r")
    read = flags(
        rocksdb_arguments(
            replace(READS, durability=Durability.NONE), 2, database="/d", seed=0, settle=False
        )
    )
    assert read["benchmarks"] == "readrandom"
    assert (read["reads"], read["threads"], read["num"]) == ("500", "2", "1000")
    assert (read["use_existing_db"], read["disable_wal"]) == ("true", "true")
    assert "report_file" not in read
    assert int(fill["seed"]) > 0  # 0 stands for the time of day there


@given(seed=st.integers(0, 2**53), index=st.integers(0, 9))
def test_each_phase_has_a_seed_of_its_own(seed: int, index: int) -> None:
    # Thread n has the seed plus n: phases must be farther apart than threads can be.
    of = phase_seed
    assert of(seed, index) == of(seed, index)
    assert 0 < of(seed, index) < 2**62
    assert abs(of(seed, index) - of(seed, index + 1)) > 4096
    assert abs(of(seed, index) - of(seed + 1, index)) > 4096


def test_writes_over_a_database_that_is_there_are_overwrites() -> None:
    again = replace(READS, phases=(LOAD, replace(LOAD, kind=PhaseKind.MEASURE)))
    for arguments in (
        rocksdb_arguments(again, 1, database="d", seed=1, settle=False),
        leveldb_arguments(again, 1, database="d"),
    ):
        assert flags(arguments)["benchmarks"] == "overwrite"


def test_a_duration_takes_the_place_of_operations() -> None:
    timed = replace(READ, operations_per_thread=None, duration_s=3.0)
    workload = replace(READS, phases=(LOAD, SETTLE, timed))
    said = rocksdb_arguments(workload, 2, database="d", seed=1, settle=False)
    assert flags(said)["duration"] == "3"
    assert "reads" not in flags(said)


@pytest.mark.parametrize(
    ("operation", "followed"), [("readrandom", "report.csv"), ("readwhilewriting", None)]
)
def test_the_writes_beside_reads_are_no_operations_of_theirs(
    operation: str, followed: str | None
) -> None:
    """`ReporterAgent` counts the operations of all threads, those of the extra writer as well."""
    workload = replace(READS, phases=(LOAD, SETTLE, replace(READ, operation=operation)))
    request = RunRequest(EngineIdentity("rocksdb"), Config(), workload, 1, Path("/r"), LIMITS)
    found = FoundProgram("rocksdb-db_bench", Path("/db_bench"))
    step = ROCKSDB_PROGRAM.plan(request, found).steps[-1]
    assert list(step.follow) == ([followed] if followed else [])
    assert ("report_file" in flags(step.arguments)) == (followed is not None)


@pytest.mark.parametrize(
    ("name", "workload", "values"),
    [("ycsb-cpp", YCSB, "random letters"), ("ekvsb", ORDERED, "random bytes")],
)
def test_values_that_should_compress_and_do_not_are_said(
    name: str, workload: Workload, values: str
) -> None:
    """Databases twice as large stood side by side, and nobody said why."""
    found = FoundProgram(name, Path("/program"))

    def said(ratio: float) -> tuple[str, ...]:
        one = replace(workload, compression_ratio=ratio)
        request = RunRequest(EngineIdentity("rocksdb"), Config(), one, 1, Path("/r"), LIMITS)
        warnings = PROGRAMS[name].plan(request, found).warnings
        return tuple(line for line in warnings if "compress" in line)

    (line,) = said(0.4)
    assert f"{values}, which do not compress: compression_ratio 0.4 has no effect" in line
    assert said(1.0) == ()


def test_leveldb_db_bench_is_told_the_phase_in_its_own_words() -> None:
    workload = replace(ORDERED, key_bytes=20)
    read = flags(leveldb_arguments(workload, 2, database="/d"))
    assert read == {
        "benchmarks": "readrandom",
        "db": "/d",
        "use_existing_db": "1",
        "num": "1000",
        "value_size": "100",
        "compression_ratio": "0.5",
        "threads": "2",
        "histogram": "1",
        "reads": "500",
        "key_prefix": "4",
    }
    assert read.keys() <= set(LEVELDB_FLAGS)


@pytest.mark.parametrize(
    ("program", "workload", "engine", "result"),
    [
        (LEVELDB_PROGRAM, ORDERED, "leveldb", "0.000 micros/op;"),
        (
            ROCKSDB_PROGRAM,
            READS,
            "rocksdb",
            f"0.000 micros/op {-(2**63)} ops/sec 0.000 seconds 1 operations;",
        ),
    ],
)
def test_a_phase_that_took_no_time_is_said(
    tmp_path: Path, program: Program, workload: Workload, engine: str, result: str
) -> None:
    """One lookup of what is not there takes less than a microsecond.

    It was a division by zero, or RocksDB's: -9223372036854775808 was taken for the throughput.
    """
    request = RunRequest(EngineIdentity(engine), Config(), workload, 1, tmp_path, LIMITS)
    step = program.plan(request, FoundProgram(program.name, Path("/d"))).steps[-1]
    stdout, stderr = tmp_path / "stdout", tmp_path / "stderr"
    stdout.write_text(f"readrandom   :       {result} (0 of 1 found)\n")
    stderr.write_text("")
    with pytest.raises(InputError, match=r"readrandom: took less time than it can tell: 0\.000"):
        step.read(StepOutput(stdout, stderr, 0, 1, 0.0, None, 0))


def test_only_one_phase_of_leveldb_may_draw_keys() -> None:
    check_leveldb(ORDERED, "leveldb")
    with pytest.raises(InputError) as error:
        check_leveldb(READS, "leveldb")
    assert "would draw the keys of load in their order; found 'readrandom'" in str(error.value)
    assert "allowed: load=fillseq" in str(error.value)


def test_ycsb_cpp_is_given_every_proportion_and_the_row() -> None:
    load, _, run = YCSB.phases
    assert ycsb_cpp_call.is_load(load)
    assert ycsb_cpp_call.properties(YCSB, load) == {
        "threadcount": "1",
        "zeropadding": "1",
        "insertorder": "hashed",
        "fieldcount": "10",
        "fieldnameprefix": "field",
        "field_len_dist": "constant",
        "fieldlength": "100",
        "recordcount": "9",
        "insertstart": "0",
    }
    said = ycsb_cpp_call.properties(replace(YCSB, keys=YcsbKeys(order=KeyOrder.ORDERED)), run)
    assert said["insertorder"] == "ordered"
    assert {name: said[name] for name in said if name.endswith("proportion")} == {
        "readproportion": "0.75",
        "updateproportion": "0.25",
        "insertproportion": "0.0",
        "scanproportion": "0.0",
        "readmodifywriteproportion": "0.0",
    }
    assert (said["recordcount"], said["operationcount"], said["threadcount"]) == (
        "1000",
        "2000",
        "3",
    )


@pytest.mark.parametrize(
    ("numbers", "start"), [({}, "0"), ({"first": 5}, "5"), ({"insert_from": 7}, "7")]
)
def test_a_load_of_ycsb_cpp_begins_where_its_inserts_do(
    numbers: dict[str, int], start: str
) -> None:
    load = YCSB.phases[0]
    assert load.mix is not None
    later = replace(load, mix=replace(load.mix, **numbers))  # type: ignore[arg-type]
    assert ycsb_cpp_call.properties(YCSB, later)["insertstart"] == start


@pytest.mark.parametrize("weight", [1.0, 100.0])
def test_inserts_alone_are_a_load_of_ycsb_cpp_whatever_they_weigh(weight: float) -> None:
    """A file with `insert: 100` was a run among no records."""
    load = YCSB.phases[0]
    assert load.mix is not None
    inserts = replace(load, mix=replace(load.mix, operations=(("insert", weight),)))
    said = ycsb_cpp_call.properties(YCSB, inserts)
    assert ycsb_cpp_call.is_load(inserts)
    assert (said["recordcount"], said["insertstart"]) == ("9", "0")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (Distribution("uniform"), {"requestdistribution": "uniform"}),
        (Distribution.of("latest", theta=0.99), {"requestdistribution": "latest"}),
        (
            Distribution.of("scrambled_zipfian", theta=0.99, items=1000),
            {"requestdistribution": "zipfian"},
        ),
        (
            Distribution.of("scrambled_zipfian", theta=0.8),
            {"requestdistribution": "zipfian", "zipfian_const": "0.8"},
        ),
    ],
)
def test_ycsb_cpp_is_given_the_request_distribution(
    keys: Distribution, said: dict[str, str]
) -> None:
    phase = replace(YCSB.phases[2], mix=replace(MIX, keys=keys))
    assert said.items() <= ycsb_cpp_call.properties(YCSB, phase).items()


@pytest.mark.parametrize("name", ["ycsb-a", "ycsb-d", "ycsb-e"])
@given(factor=st.floats(1.0, 50.0), num=st.integers(100, 100_000))
def test_ycsb_cpp_performs_a_study_of_what_it_can_perform(
    name: str, factor: float, num: int
) -> None:
    """A trial whose runs were longer than the baseline's ended a study of YCSB E, as its requests
    were scattered over the inserts of a shorter run; and so did rungs of most sizes, by one."""
    workload = make_workload(name, {}, "-w")
    ycsb_cpp_call.check(longer_by(workload, factor), "rocksdb")
    ycsb_cpp_call.check(smaller(workload, num), "rocksdb")


@given(factor=st.floats(1.0, 50.0), threads=st.integers(1, 12))
def test_db_bench_performs_the_longer_runs_of_what_it_can_perform(
    factor: float, threads: int
) -> None:
    """It counts operations by thread. 830,000 of a longer run by 6 threads ended a study, and a
    warmup of any length its proof."""
    given_ = {"operations": 100_000 * threads, "threads": threads}
    workload = make_workload("zippydb", given_, "-w")
    check_rocksdb(longer_by(workload, factor), "rocksdb")
    check_rocksdb(warmed_by(workload, factor), "rocksdb")


def mixed(**changes: object) -> Workload:
    phase = YCSB.phases[2]
    assert phase.mix is not None
    mix = replace(phase.mix, **changes)  # type: ignore[arg-type]
    return replace(YCSB, phases=(*YCSB.phases[:2], replace(phase, mix=mix)))


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        (mixed(operations=(("delete", 1.0),)), "run: operations: it cannot perform this"),
        (mixed(keys=Distribution.of("hotspot", hot_data=0.2)), "requestdistribution"),
        (mixed(keys=Distribution.of("scrambled_zipfian", theta=0.99, items=7)), "items"),
        (mixed(first=5), "insertstart"),
        (mixed(operation_by_key=0.5), "run: operation_by_key"),
        (mixed(insert_from=2000), "insertcount"),
        (mixed(value_sizes=Distribution.of("constant", size=9)), "value_sizes"),
        (replace(YCSB, keys=None), "keys: its keys are YCSB's"),
        (replace(YCSB, durability=Durability.NONE), "durability: it cannot perform this"),
        (replace(YCSB, databases=2), "databases"),
    ],
)
def test_what_ycsb_cpp_cannot_perform_is_one_line(workload: Workload, said: str) -> None:
    with pytest.raises(InputError) as error:
        ycsb_cpp_call.check(workload, "rocksdb")
    assert said in str(error.value)
    assert str(error.value).startswith("--runner ycsb-cpp: ")


def one(**changes: object) -> Workload:
    return replace(READS, phases=(LOAD, SETTLE, replace(READ, **changes)))  # type: ignore[arg-type]


DB_BENCHES = [ROCKSDB_PROGRAM, LEVELDB_PROGRAM]


@pytest.mark.parametrize("operation", ["fillseq", "filluniquerandom"])
def test_rocksdb_db_bench_fills_no_more_keys_than_there_are(operation: str) -> None:
    """It went on behind the last key, or read behind the end of its table of keys."""
    fill = replace(LOAD, operation=operation)
    check_rocksdb(replace(READS, phases=(fill, SETTLE, READ)), "rocksdb")
    more = replace(fill, operations_per_thread=1001)
    with pytest.raises(InputError, match="found 1001; allowed: at most num, 1000, of each thread"):
        check_rocksdb(replace(READS, phases=(more, SETTLE, READ)), "rocksdb")


@pytest.mark.parametrize("info", DB_BENCHES, ids=lambda info: info.name)
@pytest.mark.parametrize(
    ("workload", "said"),
    [
        (YCSB, "keys: it has no keys of YCSB"),
        (replace(READS, key_sizes=Distribution.of("constant", size=9)), "key_sizes"),
        (replace(READS, column_families=3), "column_families"),
        (replace(READS, page_cache=PageCache.COLD), "page_cache"),
        (one(operation="readuniquerandom"), "readrandom: operation"),
        (one(operation=None, mix=MIX), "readrandom: operation"),
        (one(rate_ops_s=5.0), "readrandom: rate"),
        (one(replay=Replay("t", 1.0)), "readrandom: rate"),
        (one(replay=Replay("t")), "readrandom: replay"),
        (one(companions=(Companion("scan", "readseq"),)), "companions"),
        (one(operation="fillseq"), "fills only an empty database"),
        (one(operations_per_thread=None, operations=7), "a multiple of its 2 threads"),
        (one(duration_s=1.5), "duration_s"),
        (replace(READS, phases=(SETTLE, READ)), "nothing was written yet"),
    ],
)
def test_what_no_db_bench_can_perform_is_one_line(
    info: object, workload: Workload, said: str
) -> None:
    with pytest.raises(InputError) as error:
        info.check(workload, "")  # type: ignore[attr-defined]
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        (replace(READS, key_bytes=8), "key_bytes"),
        (replace(READS, durability=Durability.SYNC), "allowed: wal"),
        (replace(READS, page_cache=PageCache.DIRECT), "page_cache"),
        (replace(READS, num=2**31), "num"),
        (one(operations_per_thread=2**30), "operations: it .*; allowed: at most 2147"),
        (one(seek_nexts=1), "seek_nexts"),
        (replace(READS, phases=(replace(LOAD, operations_per_thread=5),)), "num, 1000"),
        (replace(READS, phases=(replace(LOAD, operation="filluniquerandom"),)), "fillseq"),
    ],
)
def test_what_leveldbs_cannot_and_rocksdbs_can_perform(workload: Workload, said: str) -> None:
    with pytest.raises(InputError, match=said):
        check_leveldb(workload, "leveldb")
    check_rocksdb(workload, "rocksdb")


UNIQUE = [
    Phase(name, PhaseKind.MEASURE, f"{kind}uniquerandom", operations_per_thread=30)
    for name, kind in (("put", "fill"), ("get", "read"), ("delete", "delete"))
]


def test_ekvsb_has_flags_for_some_options() -> None:
    options: dict[str, OptionValue] = {
        "write_buffer_size": 65536,
        "use_fsync": True,
        "use_direct_reads": False,
        "allow_concurrent_memtable_write": False,
        "compaction_style": "kCompactionStyleUniversal",
        "block_based_table_factory.filter_policy": "bloomfilter:10:false",
    }
    assert export("ekvsb", "rocksdb", options).split() == [
        *("--write-buffer-size=65536", "--use-fsync", "--disable-concurrent-memtable-write"),
        *("--compaction-style=universal", "--block-opt-bloom-filter-bits-per-key=10"),
    ]
    # Without the flag there is no filter: a configuration that says so was refused.
    no_filter = {"block_based_table_factory.filter_policy": "nullptr"}
    assert export("ekvsb", "rocksdb", no_filter) == "\n"
    with pytest.raises(InputError, match="ekvsb has no such flag: max_background_jobs"):
        export("ekvsb", "rocksdb", {"max_background_jobs": 4})


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        (one(), "threads"),
        (one(threads=1, operation="readseq"), "operation"),
        (replace(READS, durability=Durability.SYNC), "durability"),
        (Workload("w", tuple(UNIQUE), num=10), "at most num, 10: each key comes up once"),
        (Workload("w", (replace(LOAD, operations_per_thread=2**25),), num=9), "in memory"),
    ],
)
def test_what_ekvsb_cannot_perform_is_one_line(workload: Workload, said: str) -> None:
    with pytest.raises(InputError, match=said):
        ekvsb_call.check(workload, "rocksdb")


@pytest.mark.parametrize(
    ("text", "flag", "nearest"),
    [
        ("ERROR: unknown command line flag 'val_size'\n", "--val_size", "--value_size"),
        ("Invalid flag '--val_size=100'\n", "--val_size", "--value_size"),
        ("Invalid flag '--compression=0'\n", "--compression", ""),
        ("Usage: x\nUnknown option '-q'\n", "--q", ""),
        ("error: unexpected argument '--num-keys' found\n", "--num-keys", ""),
    ],
)
def test_a_refused_flag_is_found_with_its_nearest_spelling(
    text: str, flag: str, nearest: str
) -> None:
    assert refused_flag(text) == flag
    assert nearest_flag(flag, LEVELDB_FLAGS) == nearest
    assert refused_flag("all well\n") is None


def test_programs_are_told_by_what_they_answer() -> None:
    help_text = (
        "db_bench:\n    -benchmarks (Comma-separated) type: string\n    -num (N) type: int64\n"
    )
    assert recognised(help_text) == "rocksdb-db_bench"
    assert gflags_known(help_text) == ("benchmarks", "num")
    assert recognised("Invalid flag '--help'\n") == "leveldb-db_bench"
    assert recognised("Options:\n  -load: run the loading phase of the workload\n") == "ycsb-cpp"
    assert recognised("  summary   Shows summary of a benchmark result\n") == "ekvsb"
    assert recognised("usage: ls") is None


@pytest.mark.parametrize(
    ("operations", "told"),
    [
        ({"get": 1.0}, True),
        ({"get": 1.0, "update": 1.0}, False),
        ({"read_modify_write": 1.0}, False),  # told of its read and of its update alone
    ],
)
def test_ycsb_cpp_tells_the_latency_of_one_type(operations: dict[str, float], told: bool) -> None:
    """Of read-modify-writes it was an objective that no trial ever had a value of."""
    run = replace(YCSB.phases[2], mix=replace(MIX, operations=tuple(operations.items())))
    assert (
        "latency_us_p99" not in PROGRAMS["ycsb-cpp"].unreported(replace(YCSB, phases=(run,)), 0)
    ) == told


def test_what_no_program_tells_is_no_metric_of_any() -> None:
    for info in PROGRAMS.values():
        for workload in (READS, YCSB):
            unreported = info.unreported(workload, 2)
            assert {"sustained_throughput_ops_s", "drain_s", "stall_s"} <= unreported
            assert "throughput_ops_s" not in unreported
    assert "latency_us_p99" in ycsb_cpp_call.PROGRAM.unreported(YCSB, 2)
    assert "latency_us_p99" not in ycsb_cpp_call.PROGRAM.unreported(YCSB, 0)
    with pytest.raises(InputError, match="did you mean leveldb-db_bench"):
        by_name(PROGRAMS, "leveldb-dbbench", "s")
