"""`lsmtune bench`, on a driver without an engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

BENCH = ("bench", "--engine", "memory", "--workload", "fillrandom", "-w", "num=1000")

pytestmark = pytest.mark.usefixtures("fake_driver")


def test_json_is_one_document_with_the_measurements_fields(lsmtune: Any, home: Path) -> None:
    said = lsmtune(*BENCH, "-o", "write_buffer_size=4MiB", "--seed", "5", "--json")
    assert said.status == 0, said.err
    (measurement,) = said.json()["measurements"]
    assert measurement["outcome"] == "ok"
    assert measurement["engine"]["version"] == "10.2.1"
    assert measurement["options"] == {"write_buffer_size": "4194304"}
    assert measurement["seed"] == 5
    phase = measurement["phases"][0]
    assert phase["kind"] == "measure"
    for key in ("operations", "elapsed_s", "throughput_ops_s", "latency_us_p99", "flushes"):
        assert phase[key] is not None, key
    assert phase["latencies"]["put"]["histogram_ns_base64"]
    assert list(home.iterdir()) == []


def test_the_table_says_all_that_was_measured(lsmtune: Any) -> None:
    out = " ".join(lsmtune(*BENCH).out.split())
    for text in (
        "rocksdb 10.2.1: fillrandom, seed 1",
        "166,667 ops/s",
        "133,333 ops/s",
        "latency p99.9 210 µs",
        "latency max 3.1 ms",
        "flushes 2",
        "write amplification 1.07",
        "verified: 4,100 keys read back after reopening, all right",
        "option max_open_files=5: the engine uses 20",
        "option block_based_table_factory.block_cache=8M: the engine does not say",
    ):
        assert text in out, out
    assert "keys found" not in out


def test_each_repeat_has_a_seed_of_its_own(lsmtune: Any) -> None:
    said = lsmtune(*BENCH, "--repeat", "3", "--seed", "7", "--json")
    assert [m["seed"] for m in said.json()["measurements"]] == [7, 8, 9]
    out = lsmtune(*BENCH, "--repeat", "2").out
    assert "median of 2 runs" in out
    assert "166,667 ops/s ±0 %" in out


@pytest.mark.parametrize("command", [(*BENCH, "--repeat", "2"), ("contest", "a=default")])
def test_the_largest_seed_is_none_for_runs_that_count_up_from_it(
    lsmtune: Any, command: Sequence[str]
) -> None:
    """The second run had a seed that no JSON reader keeps, or ended in an unexpected error."""
    refusal = lsmtune(*command, "--seed", str(2**53 - 1)).refusal
    assert "--seed: found '9007199254740991'; allowed: a whole number from 0 to 900719" in refusal


def test_burst_sustained_and_drain_stand_side_by_side(lsmtune: Any) -> None:
    rows = [line.split()[0] for line in lsmtune(*BENCH).out.splitlines() if line.strip()]
    first = rows.index("burst")
    assert rows[first : first + 3] == ["burst", "sustained", "drain"]


def test_from_three_repeats_on_the_noise_is_told(lsmtune: Any) -> None:
    assert "noise" not in lsmtune(*BENCH, "--repeat", "2").out
    out = lsmtune(*BENCH, "--repeat", "3").out
    assert "noise of fillrandom from run to run, standard deviation (95 % CI):" in out
    assert "  sustained_throughput_ops_s: 0 % (0 % to 0 %)" in out
    said = lsmtune(*BENCH, "--repeat", "3", "--json").json()
    rows = {row["metric"]: row for row in said["repeats"]}
    row = rows["sustained_throughput_ops_s"]
    assert (row["phase"], row["runs"], row["low"] == row["high"]) == ("fillrandom", 3, True)
    assert row["noise"]["log_sd"] == 0.0


def test_a_run_that_is_too_short_is_warned_of(lsmtune: Any) -> None:
    out = lsmtune(*BENCH).out
    assert "warning: fillrandom: flushed 2 times; 20 make a rate of writing" in out
    assert "-w num=10000 would do" in out
    said = lsmtune(*BENCH, "--json").json()
    assert "fillrandom: flushed 2 times; 20 make a rate of writing" in said["notices"]


def test_a_longer_run_of_a_workload_file_is_advised_as_a_change_of_that_file(
    lsmtune: Any, home: Path
) -> None:
    """`-w num=N`, which the next command refused; and a family's flags where the file had its name,
    as an exported one has."""
    exported = lsmtune("workload", "export", "fillrandom", "-w", "num=1000", "--format", "yaml")
    (home / "nights.yaml").write_text(exported.out)
    out = " ".join(lsmtune("bench", "--engine", "memory", "--workload", "nights.yaml").out.split())
    assert "10 times num and the operations of the phases in its file would do" in out
    (home / "a").write_text("recordcount=1000\noperationcount=1000\n")
    assert "-w recordcount=10000" in lsmtune("bench", "--engine", "memory", "--workload", "a").out


def test_the_page_cache_that_was_asked_for_is_told(lsmtune: Any) -> None:
    assert "page cache: warm" in lsmtune(*BENCH).out
    said = lsmtune(*BENCH, "-w", "page_cache=cold")
    assert "page cache: cold: dropped before each measure phase" in said.out
    assert "Nothing shows that the cold runs began cold" in said.out


def test_a_failed_run_is_exit_1_and_its_measurement_is_still_printed(lsmtune: Any) -> None:
    said = lsmtune(*BENCH, "-o", "fake=crash", "-o", "signal=6", "--json")
    assert said.status == 1
    assert said.json()["measurements"][0]["outcome"] == "crashed"
    assert said.err.startswith("lsmtune: bench: run with seed 1 ended crashed: killed by SIGABRT")
    assert said.err.count("\n") == 1
    assert "Assertion" in lsmtune(*BENCH, "-o", "fake=crash", "-o", "signal=6").out


def test_what_the_engine_refuses_is_exit_2_with_the_nearest_name(lsmtune: Any) -> None:
    said = lsmtune(*BENCH, "-o", "fake=fail", "-o", "line=1", "--repeat", "3")
    assert said.status == 2
    assert said.out == ""
    assert said.err == (
        "lsmtune: bench: -o write_bufer_size: unknown option; did you mean write_buffer_size?\n"
    )


def test_limits_reach_the_run(lsmtune: Any) -> None:
    said = lsmtune(*BENCH, "-o", "fake=hang", "--deadline", "500ms", "--json")
    assert said.status == 1
    assert said.json()["measurements"][0]["outcome"] == "timeout"


def test_databases_are_made_in_dir_and_removed(lsmtune: Any, home: Path) -> None:
    said = lsmtune(*BENCH, "--dir", "made/here", "--json")
    assert said.status == 0
    assert list((home / "made" / "here").iterdir()) == []
    (home / "file").write_text("")
    said = lsmtune(*BENCH, "--dir", "file")
    assert said.status == 2
    assert said.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--library", "/nowhere.so"], "--library: memory is built into the driver"),
        (["-o", "write_buffer_size"], "-o/--option: found 'write_buffer_size'; allowed: name=va"),
        (["--memory", "4M"], "--memory: found '4M'"),
        (["--repeat", "0"], "--repeat: found '0'; allowed: a whole number from 1 to 1000"),
    ],
)
def test_bad_input(lsmtune: Any, arguments: list[str], line: str) -> None:
    assert line in lsmtune(*BENCH, *arguments).refusal


def test_an_unknown_engine_and_a_missing_one(lsmtune: Any) -> None:
    refusal = lsmtune("bench", "--engine", "rokcsdb", "--workload", "fillrandom").refusal
    assert "did you mean rocksdb?" in refusal


def test_no_driver_lists_the_places(lsmtune: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LSMTUNE_DRIVER", "/nowhere/driver")
    refusal = lsmtune(*BENCH).refusal
    assert "LSMTUNE_DRIVER" in refusal
    assert "make setup" in refusal
