"""What LevelDB's db_bench prints, and the operations per second that follow from it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from program_parts import PEER_OUTPUT, files_of, golden, refusal

from lsmtune.errors import InputError
from lsmtune.programs.leveldb_db_bench import BenchmarkResult, parse_leveldb_db_bench

TEXT = golden("leveldb-1.22.txt")


def test_a_run_is_read_whole() -> None:
    said = parse_leveldb_db_bench(TEXT, "out")
    assert said.version == "1.22"
    assert [b.name for b in said.benchmarks] == [
        "fillseq",
        "readrandom",
        "readhot",
        "seekrandom",
        "compact",
    ]
    assert said.unknown == ("nope",)
    read = said.result_of("readrandom")
    assert read is not None
    assert read.keys_found == 2000
    assert read.histogram is not None
    assert read.histogram.count == 2000
    assert read.histogram.percentile_us(50.0) == pytest.approx(read.histogram.median_us, abs=6e-5)
    compact = said.benchmarks[-1].histogram
    assert compact is not None
    assert (compact.count, compact.median_us, compact.percentile_us(99.0)) == (0, None, None)
    assert said.compactions
    assert sum(said.files[2].values()) == 128194
    assert said.notes == ()


@given(
    operations=st.integers(1, 10**9),
    threads=st.integers(1, 64),
    elapsed_s=st.floats(0.001, 1e5),
)
def test_operations_per_second_follow_from_the_time_of_one_thread(
    operations: int, threads: int, elapsed_s: float
) -> None:
    # Threads that all take equally long: their seconds together by their operations.
    micros = threads * elapsed_s * 1e6 / operations
    result = BenchmarkResult("readrandom", micros, None)
    assert result.throughput_ops_s(threads) == pytest.approx(operations / elapsed_s)
    assert result.elapsed_s(operations, threads) == pytest.approx(elapsed_s)


def test_warnings_are_kept() -> None:
    text = (
        "LevelDB:    version 1.23\n"
        "WARNING: Optimization is disabled: benchmarks unnecessarily slow\n"
        "WARNING: Assertions are enabled; benchmarks unnecessarily slow\n"
        "WARNING: Snappy compression is not enabled\n"
        "fillseq      : skipped (--use_existing_db is true)\n"
    )
    said = parse_leveldb_db_bench(text, "out")
    assert said.warnings == (
        "Optimization is disabled: benchmarks unnecessarily slow",
        "Assertions are enabled; benchmarks unnecessarily slow",
        "Snappy compression is not enabled",
    )
    assert said.skipped == {"fillseq": "--use_existing_db is true"}


def test_output_of_others_is_refused() -> None:
    for text in ("", "x\n", golden("rocksdb-7.8.3.txt"), golden("ycsb-cpp.txt")):
        with pytest.raises(InputError, match="allowed: output of LevelDB's db_bench"):
            parse_leveldb_db_bench(text, "out")


@given(st.integers(0, TEXT.count("\n")))
def test_a_run_that_was_cut_off_at_any_line_is_read_or_refused(lines: int) -> None:
    said = refusal(parse_leveldb_db_bench, "\n".join(TEXT.split("\n")[:lines]))
    assert said.startswith("out: ") or not said


@pytest.mark.parametrize("path", files_of(PEER_OUTPUT, "leveldb-*.txt"))
def test_every_output_of_our_peers_parses_to_its_end(path: Path) -> None:
    said = parse_leveldb_db_bench(path.read_text(), path.name)
    assert said.version == "1.23"
    assert said.benchmarks
    assert said.compactions
    assert said.notes == ()
