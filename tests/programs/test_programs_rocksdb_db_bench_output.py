"""What RocksDB's db_bench prints: results, histograms, averages, stats, and what is cut off."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from program_parts import PEER_OUTPUT, files_of, golden, refusal

from lsmtune.errors import InputError
from lsmtune.programs.rocksdb_db_bench import follow_report
from lsmtune.programs.rocksdb_db_bench_output import parse_db_bench

TEXT = golden("rocksdb-7.8.3.txt")


def test_a_run_is_read_whole() -> None:
    said = parse_db_bench(TEXT, "out")
    assert said.version == "7.8.3"
    assert said.warnings == ("Assertions are enabled; benchmarks unnecessarily slow",)
    assert said.headers["Keys"].startswith("16 bytes each")
    assert [(b.name, b.warmup) for b in said.benchmarks] == [
        ("fillrandom", False),
        ("readrandom", True),
        ("readrandom", False),
        ("readrandom", False),
        ("seekrandom", False),
    ]
    fill = said.benchmarks[0]
    assert (fill.operations, fill.histograms[0].what) == (2000, "write")
    assert fill.perf_context["user_key_comparison_count"] > 0
    read = said.result_of("readrandom")
    assert read is said.benchmarks[3]
    assert read is not None
    assert read.keys_tried == 2000
    assert 0 < (read.keys_found or 0) < 2000
    assert [(a.runs, a.median) for a in said.averages] == [(2, False), (2, False), (2, True)]
    assert "STATISTICS:" in TEXT
    assert "** Compaction Stats" in TEXT
    assert said.notes == ()


def test_percentiles_from_the_buckets_are_those_it_prints() -> None:
    for benchmark in parse_db_bench(TEXT, "out").benchmarks:
        for histogram in benchmark.histograms:
            assert histogram.count == sum(bucket.count for bucket in histogram.buckets)
            for name, printed in histogram.percentiles.items():
                assert histogram.percentile_us(float(name)) == pytest.approx(printed, abs=0.0051)
            p95 = histogram.percentile_us(95.0)
            assert p95 is not None
            assert histogram.percentiles["75"] <= p95 <= histogram.percentiles["99"] + 0.01


def test_older_results_without_seconds_leave_them_unknown() -> None:
    line = "fillseq      :       2.345 micros/op 426439 ops/sec;   47.2 MB/s\n"
    (result,) = parse_db_bench(f"RocksDB:    version 6.29\n{line}", "out").benchmarks
    assert (result.elapsed_s, result.operations, result.mb_per_s) == (None, None, 47.2)


def test_mixgraph_says_its_operations() -> None:
    line = (
        "mixgraph     :      17.860 micros/op 55990 ops/sec 8.930 seconds 500000 operations;"
        "   29.4 MB/s ( Gets:425078 Puts:69765 Seek:5157, reads 430235 in 430235 found, "
        "avg size: 43.2 value, 103.0 scan)\n"
    )
    (result,) = parse_db_bench(line, "out").benchmarks
    assert result.mixgraph is not None
    assert (result.mixgraph.gets, result.mixgraph.scan_length_mean) == (425078, 103.0)


def test_skipped_benchmarks_and_notes_are_kept() -> None:
    text = (
        "Memtablerep: SkipListFactory\nfillseq      : skipped (--use_existing_db is true)\nwhat\n"
    )
    said = parse_db_bench(text, "out")
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
    assert old in TEXT
    with pytest.raises(InputError) as error:
        parse_db_bench(TEXT.replace(old, new), "out")
    assert str(error.value).startswith("out: line ")
    assert said in str(error.value)


def test_output_of_others_is_refused() -> None:
    for text in ("", "hello\n", golden("ycsb-cpp.txt"), golden("leveldb-1.22.txt")):
        with pytest.raises(InputError, match="allowed: output of RocksDB's db_bench"):
            parse_db_bench(text, "out")


def test_the_lines_of_a_report_are_intervals() -> None:
    follow = follow_report()
    lines = ["secs_elapsed,interval_qps", "1,7", "3,9", ""]
    steps = [step for step in map(follow, lines) if step is not None]
    assert [(s.elapsed_s, s.interval_s, s.operations, s.operations_total) for s in steps] == [
        (1.0, 1.0, 7, 7),
        (3.0, 2.0, 18, 25),
    ]
    assert [step.throughput_ops_s for step in steps] == [7.0, 9.0]


@given(st.text(max_size=200))
def test_no_text_breaks_the_parser_in_any_other_way(text: str) -> None:
    assert "\n" not in refusal(parse_db_bench, text)


@given(st.integers(0, TEXT.count("\n")))
def test_a_run_that_was_cut_off_at_any_line_is_read_or_refused(lines: int) -> None:
    said = refusal(parse_db_bench, "\n".join(TEXT.split("\n")[:lines]))
    assert said.startswith("out: ") or not said


@pytest.mark.parametrize("path", files_of(PEER_OUTPUT, "rocksdb*.txt"))
def test_every_output_of_our_peers_parses_to_its_end(path: Path) -> None:
    said = parse_db_bench(path.read_text(), path.name)
    assert said.version == "7.8.3"
    assert said.benchmarks
    assert ("debian" in path.name) == bool(said.warnings)
    assert all(note.startswith(("real", "user", "sys")) for note in said.notes), said.notes
    for benchmark in said.benchmarks:
        assert benchmark.operations is not None
        assert bool(benchmark.mixgraph) == (benchmark.name == "mixgraph")


@pytest.mark.parametrize("path", files_of(PEER_OUTPUT, "rocksdb-report-interval.csv"))
def test_the_report_of_our_peers_is_followed(path: Path) -> None:
    steps = [step for step in map(follow_report(), path.read_text().splitlines()) if step]
    assert [step.elapsed_s for step in steps] == [1, 2, 3, 4, 5]
