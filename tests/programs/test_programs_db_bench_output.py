"""What both db_benches print: results, histograms, the engine's own tables, and what is cut off."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from program_parts import PEER_OUTPUT, files_of, golden, refusal

from lsmtune.errors import InputError
from lsmtune.model.config import Build, Config, EngineIdentity
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.workload import Phase, PhaseKind, Workload
from lsmtune.programs.db_bench import ROCKSDB_PROGRAM
from lsmtune.programs.db_bench_output import (
    LEVELDB,
    ROCKSDB,
    Dialect,
    follow_report,
    leveldb_pace,
    parse_db_bench,
)
from lsmtune.programs.program import FoundProgram, StepOutput

ROCKSDB_TEXT = golden("rocksdb-7.8.3.txt")
LEVELDB_TEXT = golden("leveldb-1.22.txt")
BOTH = pytest.mark.parametrize(
    ("dialect", "text"),
    [(ROCKSDB, ROCKSDB_TEXT), (LEVELDB, LEVELDB_TEXT)],
    ids=("rocksdb", "leveldb"),
)


def test_a_run_of_rocksdb_is_read_whole() -> None:
    said = parse_db_bench(ROCKSDB_TEXT, "out", ROCKSDB)
    assert said.version == "7.8.3"
    assert said.warnings == ("Assertions are enabled; benchmarks unnecessarily slow",)
    assert said.build is Build.ASSERTIONS_ON
    assert [(b.name, b.warmup) for b in said.benchmarks] == [
        ("fillrandom", False),
        ("readrandom", True),
        ("readrandom", False),
        ("readrandom", False),
        ("seekrandom", False),
    ]
    fill = said.benchmarks[0]
    assert (fill.operations, fill.histograms[0].what) == (2000, "write")
    assert "PERF_CONTEXT" in ROCKSDB_TEXT
    read = said.result_of("readrandom")
    assert read is said.benchmarks[3]
    assert read is not None
    assert read.keys_tried == 2000
    assert 0 < (read.keys_found or 0) < 2000
    assert "STATISTICS:" in ROCKSDB_TEXT
    assert "** Compaction Stats" in ROCKSDB_TEXT
    assert "[MEDIAN 2 runs]" in ROCKSDB_TEXT
    assert said.notes == ()


def test_a_run_of_leveldb_is_read_whole() -> None:
    said = parse_db_bench(LEVELDB_TEXT, "out", LEVELDB)
    assert (said.version, said.build) == ("1.22", Build.RELEASE)
    names = ["fillseq", "readrandom", "readhot", "seekrandom", "compact"]
    assert [b.name for b in said.benchmarks] == names
    assert "unknown benchmark 'nope'" in LEVELDB_TEXT
    read = said.result_of("readrandom")
    assert read is not None
    assert read.keys_found == 2000
    (histogram,) = read.histograms
    assert histogram.count == 2000
    medians = re.findall(r"Median: (\S+)", LEVELDB_TEXT)
    assert histogram.percentile_us(50.0) == pytest.approx(float(medians[1]), abs=6e-5)
    (compact,) = said.benchmarks[-1].histograms
    assert (compact.count, compact.latency(), compact.percentile_us(99.0)) == (0, None, None)
    assert "Compactions" in LEVELDB_TEXT
    assert "--- level 2 ---" in LEVELDB_TEXT
    assert said.notes == ()


def test_percentiles_from_the_buckets_are_those_it_prints() -> None:
    benchmarks = parse_db_bench(ROCKSDB_TEXT, "out", ROCKSDB).benchmarks
    histograms = [histogram for benchmark in benchmarks for histogram in benchmark.histograms]
    lines = re.findall("^Percentiles:(.*)", ROCKSDB_TEXT, re.MULTILINE)
    for histogram, line in zip(histograms, lines, strict=True):
        assert histogram.count == sum(bucket.count for bucket in histogram.buckets)
        percentiles = {float(p): float(us) for p, us in re.findall(r" P(\S+): (\S+)", line)}
        for percent, printed in percentiles.items():
            assert histogram.percentile_us(percent) == pytest.approx(printed, abs=0.0051)
        p95 = histogram.percentile_us(95.0)
        assert p95 is not None
        assert percentiles[75] <= p95 <= percentiles[99] + 0.01


def test_older_results_without_seconds_leave_them_unknown() -> None:
    line = "fillseq      :       2.345 micros/op 426439 ops/sec;   47.2 MB/s\n"
    said = parse_db_bench(f"RocksDB:    version 6.29\n{line}", "out", ROCKSDB)
    (result,) = said.benchmarks
    assert (result.elapsed_s, result.operations, result.throughput_ops_s) == (None, None, 426439)


@pytest.mark.parametrize(
    ("printed", "rate_ops_s"),
    [
        ("10 ops/sec 9.174 seconds 100 operations", 10.9004),
        ("500000 ops/sec 0.002 seconds 1400 operations", 500_001.0),
        ("500000 ops/sec 0.003 seconds 1300 operations", 500_000.0),
        ("500000 ops/sec 0.000 seconds 100 operations", 500_000.0),
    ],
)
def test_a_rate_has_the_digits_that_rocksdb_cuts_off(
    tmp_path: Path, printed: str, rate_ops_s: float
) -> None:
    """Configurations with 9.9 and 10.0 synced writes a second were 11 % apart."""
    phase = Phase("fillrandom", PhaseKind.MEASURE, "fillrandom", operations_per_thread=100)
    request = RunRequest(
        EngineIdentity("rocksdb"), Config(), Workload("w", (phase,), num=100), 1, tmp_path, Limits()
    )
    (step,) = ROCKSDB_PROGRAM.plan(request, FoundProgram(ROCKSDB_PROGRAM.name, Path("/d"))).steps
    stdout, stderr = tmp_path / "stdout", tmp_path / "stderr"
    stdout.write_text(f"fillrandom   :       2.000 micros/op {printed};\n")
    stderr.write_text("")
    observed = step.read(StepOutput(stdout, stderr, 0, 1, 0.0, None, 0))
    assert observed.phases[0].throughput_ops_s == pytest.approx(rate_ops_s, rel=1e-5)


def test_mixgraph_says_how_many_keys_its_gets_and_seeks_found() -> None:
    line = (
        "mixgraph     :      17.860 micros/op 55990 ops/sec 8.930 seconds 500000 operations;"
        "   29.4 MB/s ( Gets:425078 Puts:69765 Seek:5157, reads 215117 in 430235 found, "
        "avg size: 43.2 value, 103.0 scan)\n"
    )
    (result,) = parse_db_bench(line, "out", ROCKSDB).benchmarks
    assert (result.keys_found, result.keys_tried) == (215117, 425078 + 5157)


@given(
    operations=st.integers(1, 10**9),
    threads=st.integers(1, 64),
    elapsed_s=st.floats(0.001, 1e5),
)
def test_the_pace_of_leveldb_follows_from_the_time_of_one_thread(
    operations: int, threads: int, elapsed_s: float
) -> None:
    # Threads that all take equally long: their seconds together by their operations.
    micros = threads * elapsed_s * 1e6 / operations
    expected = pytest.approx((elapsed_s, operations / elapsed_s))
    assert leveldb_pace(micros, operations, threads) == expected


def test_warnings_are_kept() -> None:
    text = (
        "LevelDB:    version 1.23\n"
        "WARNING: Optimization is disabled: benchmarks unnecessarily slow\n"
        "WARNING: Assertions are enabled; benchmarks unnecessarily slow\n"
        "WARNING: Snappy compression is not enabled\n"
    )
    said = parse_db_bench(text, "out", LEVELDB)
    assert said.warnings == (
        "Optimization is disabled: benchmarks unnecessarily slow",
        "Assertions are enabled; benchmarks unnecessarily slow",
        "Snappy compression is not enabled",
    )


@pytest.mark.parametrize(
    ("dialect", "header"),
    [(ROCKSDB, "Memtablerep: SkipListFactory"), (LEVELDB, "LevelDB:    version 1.23")],
)
def test_skipped_benchmarks_and_notes_are_kept(dialect: Dialect, header: str) -> None:
    text = f"{header}\nfillseq      : skipped (--use_existing_db is true)\nwhat\n"
    said = parse_db_bench(text, "out", dialect)
    assert said.skipped == {"fillseq": "--use_existing_db is true"}
    assert said.notes == ("what",)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("Percentiles: P50", "Percents: P50", "allowed: a line of dashes"),
        ("Count: 2000 Average", "Count: 2001 Average", "do not add up to its count"),
    ],
)
def test_a_broken_part_is_refused_with_its_line(old: str, new: str, said: str) -> None:
    assert old in ROCKSDB_TEXT
    with pytest.raises(InputError) as error:
        parse_db_bench(ROCKSDB_TEXT.replace(old, new), "out", ROCKSDB)
    assert str(error.value).startswith("out: line ")
    assert said in str(error.value)


@BOTH
def test_output_of_others_is_refused(dialect: Dialect, text: str) -> None:
    other = LEVELDB_TEXT if text is ROCKSDB_TEXT else ROCKSDB_TEXT
    for strange in ("", "hello\n", golden("ycsb-cpp.txt"), other):
        with pytest.raises(InputError, match=f"allowed: output of {dialect.engine}'s db_bench"):
            parse_db_bench(strange, "out", dialect)


def test_the_lines_of_a_report_are_intervals() -> None:
    follow = follow_report()
    # A full disk may cut off the last one, which ended the command with a traceback.
    lines = ["secs_elapsed,interval_qps", "1,7", "3,9", "", "4,", "4"]
    steps = [step for step in map(follow, lines) if step is not None]
    # A reporter that came a second late writes the operations of both seconds, not their rate.
    assert [(s.elapsed_s, s.interval_s, s.operations, s.operations_total) for s in steps] == [
        (1.0, 1.0, 7, 7),
        (3.0, 2.0, 9, 16),
    ]
    assert [step.throughput_ops_s for step in steps] == [7.0, 4.5]
    part = follow_report()("1.5,8")
    assert part is not None
    assert (part.elapsed_s, part.operations) == (1.5, 8)


def test_no_operation_of_a_report_is_lost_where_the_clock_was_set_back() -> None:
    steps = [step for step in map(follow_report(), ["2,10", "1,4", "3,6"]) if step is not None]
    assert [(s.elapsed_s, s.operations, s.operations_total) for s in steps] == [
        (2.0, 10, 10),
        (3.0, 10, 20),
    ]


@given(st.text(max_size=200))
def test_no_text_breaks_the_parser_in_any_other_way(text: str) -> None:
    for dialect in (ROCKSDB, LEVELDB):
        assert "\n" not in refusal(partial(parse_db_bench, dialect=dialect), text)


@BOTH
def test_a_run_that_was_cut_off_at_any_line_is_read_or_refused(dialect: Dialect, text: str) -> None:
    lines = text.split("\n")
    for kept in range(len(lines)):
        said = refusal(partial(parse_db_bench, dialect=dialect), "\n".join(lines[:kept]))
        assert said.startswith("out: ") or not said


@pytest.mark.parametrize("path", files_of(PEER_OUTPUT, "rocksdb*.txt"))
def test_every_output_of_our_rocksdb_peers_parses_to_its_end(path: Path) -> None:
    said = parse_db_bench(path.read_text(), path.name, ROCKSDB)
    assert said.version == "7.8.3"
    assert said.benchmarks
    assert ("debian" in path.name) == bool(said.warnings)
    assert all(note.startswith(("real", "user", "sys")) for note in said.notes), said.notes
    for benchmark in said.benchmarks:
        assert benchmark.operations is not None
        assert benchmark.name != "mixgraph" or benchmark.keys_tried is not None


@pytest.mark.parametrize("path", files_of(PEER_OUTPUT, "leveldb-*.txt"))
def test_every_output_of_our_leveldb_peers_parses_to_its_end(path: Path) -> None:
    said = parse_db_bench(path.read_text(), path.name, LEVELDB)
    assert said.version == "1.23"
    assert said.benchmarks
    assert said.notes == ()


@pytest.mark.parametrize("path", files_of(PEER_OUTPUT, "rocksdb-report-interval.csv"))
def test_the_report_of_our_peers_is_followed(path: Path) -> None:
    steps = [step for step in map(follow_report(), path.read_text().splitlines()) if step]
    assert [step.elapsed_s for step in steps] == [1, 2, 3, 4, 5]
