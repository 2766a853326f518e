"""What YCSB-cpp prints: phases, statuses, commands, and logs that are cut off or edited."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from program_parts import CONTEST_LOGS, PEER_OUTPUT, SHARED, files_of, golden, refusal

from lsmtune.errors import InputError
from lsmtune.programs.ycsb_cpp_output import parse_status, parse_ycsb_log

LOG = golden("ycsb-cpp.txt")
BARE = "Run runtime(sec): 2\nRun operations(ops): 10\nRun throughput(ops/sec): 5\n"


def test_a_log_has_its_phases_with_what_they_were_called_with() -> None:
    log = parse_ycsb_log(LOG, "log")
    load, run = log.phases
    assert (load.kind, load.workload, load.operations) == ("load", "workloada", 2000)
    assert (load.elapsed_s, load.throughput_ops_s) == (0.0129219, 154776.0)
    assert (run.kind, run.line) == ("run", 8)
    read = run.by_type["READ"]
    assert (read.count, read.latency_us_p99, read.latency_us_p999) == (983, 5.36, 8.70)
    assert sum(latency.count for latency in run.by_type.values()) == run.operations
    assert log.notes == ()


def test_without_statuses_and_percentiles_what_is_not_said_is_not_there() -> None:
    text = (
        f"{BARE}"
        "2022-08-16 17:32:14 0 sec: 8 operations; [SCAN: Count=8 Max=2.00 Min=1.00 Avg=1.50]\n"
        "Run runtime(sec): 8.5e-05\nRun operations(ops): 8\nRun throughput(ops/sec): 94117.6\n"
    )
    bare, basic = parse_ycsb_log(text, "log").phases
    assert (bare.by_type, bare.workload) == ({}, None)
    assert basic.by_type["SCAN"].latency_us_p99 is None
    assert basic.elapsed_s == 8.5e-05


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("Run operations(ops): 2000\n", "", "log: line 11: found 'Run throughput"),
        ("Run throughput(ops/sec): 50640.6\n", "", "log: line 12: found 'the end'"),
        ("50640.6", "60640.6", "log: line 12: found 60640.6; allowed: operations by runtime"),
        ("Run operations", "Load operations", "log: line 11: found 'Load operations(ops): 2000'"),
        ("Count=983", "Count=x", "log: line 9: found '2026-11-21"),
    ],
)
def test_a_log_that_is_cut_off_or_edited_is_refused_with_its_line(
    old: str, new: str, said: str
) -> None:
    head, _, tail = LOG.rpartition("Run runtime")
    text = head.replace(old, new) + "Run runtime" + tail.replace(old, new)
    with pytest.raises(InputError) as error:
        parse_ycsb_log(text, "log")
    assert str(error.value).startswith(said)


def test_other_text_is_a_note_and_alone_no_log() -> None:
    assert parse_ycsb_log(f"make: nothing\n{LOG}\nreal 0m1", "log").notes == (
        "make: nothing",
        "real 0m1",
    )
    with pytest.raises(InputError, match="log: found 'Usage: ycsb'; allowed: output of YCSB-cpp"):
        parse_ycsb_log("Usage: ycsb", "log")


@pytest.mark.parametrize(
    ("line", "workload"),
    [
        ("# cmd: ycsb -load -db leveldb -P a.properties -P w/workloadb -s", "workloadb"),
        ("$ ./ycsb -run -P 'my workload'", "my workload"),
        ("./ycsb -t -db rocksdb", None),
    ],
)
def test_commands_are_told_from_prose(line: str, workload: str | None) -> None:
    log = parse_ycsb_log(f"{line}\n{BARE}", "log")
    assert (log.phases[0].workload, log.notes) == (workload, ())


@pytest.mark.parametrize("line", ["# it's -run and -P", "the -run of today", "-load only", ""])
def test_prose_is_no_command(line: str) -> None:
    command = "ycsb -run -P workloada"
    assert parse_ycsb_log(f"{command}\n{line}\n{BARE}", "log").phases[0].workload == "workloada"


@given(st.text(max_size=200))
def test_no_text_breaks_the_parser_in_any_other_way(text: str) -> None:
    assert "\n" not in refusal(parse_ycsb_log, text)
    assert parse_status(text) is None


@pytest.mark.parametrize("path", files_of(CONTEST_LOGS, "*.txt"))
def test_every_log_of_the_contest_has_its_four_phases(path: Path) -> None:
    log = parse_ycsb_log(path.read_text(), path.name)
    assert [(phase.kind, phase.workload) for phase in log.phases] == [
        ("load", "workloada"),
        ("run", "workloada"),
        ("run", "workloadb"),
        ("run", "workloadd"),
    ]
    assert {phase.operations for phase in log.phases} == {2_000_000}
    for phase in log.phases:
        assert sum(latency.count for latency in phase.by_type.values()) == phase.operations
    assert log.notes == ()


def test_the_contest_logs_say_what_others_read_in_them() -> None:
    table = SHARED / "dku-contest" / "results.csv"
    if not table.is_file():
        pytest.skip(f"{table}: not here")
    with table.open() as file:
        rows = list(csv.DictReader(file))
    order = ["load_a", "run_a", "run_b", "run_d"]
    expected = sorted(
        (order.index(row["phase"]), float(row["throughput_ops_s"]), row["op"], int(row["op_count"]))
        for row in rows
    )
    found = sorted(
        (index, phase.throughput_ops_s, name, latency.count)
        for path in CONTEST_LOGS.glob("*.txt")
        for index, phase in enumerate(parse_ycsb_log(path.read_text(), path.name).phases)
        for name, latency in phase.by_type.items()
    )
    assert found == expected


@pytest.mark.parametrize("path", files_of(PEER_OUTPUT, "ycsb-*.txt"))
def test_every_log_of_our_peers_parses_to_its_end(path: Path) -> None:
    log = parse_ycsb_log(path.read_text(), path.name)
    assert len(log.phases) == 4
    assert all(phase.by_type for phase in log.phases)
    assert log.notes == ()


@pytest.mark.parametrize(
    "text",
    [
        BARE.replace("10", "1e999"),
        BARE.replace("): 2", "): 1e999"),
        BARE.replace("): 5", "): 1e999"),
        "2022-08-16 17:32:14 0 sec: 8 operations; [SCAN: Count=8 Max=inf Min=1 Avg=1]\n" + BARE,
        "2022-08-16 17:32:14 0 sec: 8 operations; [SCAN: Count=8 Max=2 Min=1 Avg=nan]\n" + BARE,
    ],
)
def test_a_figure_without_end_is_refused_with_its_line(text: str) -> None:
    """Found by fuzzing: operations beyond all bounds ended as an OverflowError."""
    with pytest.raises(InputError, match="log: "):
        parse_ycsb_log(text, "log")


def test_a_status_with_more_digits_than_any_count_is_none() -> None:
    """Found by fuzzing: Python refuses to read 5,000 digits, with a ValueError."""
    assert parse_status(f"2022-08-16 17:32:14 {'9' * 5000} sec: 8 operations;") is None
