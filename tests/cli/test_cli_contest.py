"""`lsmtune contest`, on a driver without an engine, on logs, and once on a real engine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from lsmtune.errors import disk_full

sys.path.insert(0, str(Path(__file__).parent.parent / "experiment"))

from contest_parts import contest_logs, log_text

CONTEST = ("contest", "--engine", "memory", "--workload", "fillrandom", "-w", "num=1000")


def logs(home: Path) -> list[str]:
    for team, speed in (("fast", 2000.0), ("slow", 1000.0)):
        for number in (1, 2, 3):
            text = log_text(load_a=speed + number, run_a=speed - 2 * number)
            (home / f"{team}_{number}.txt").write_text(text)
    return ["fast=fast_*.txt", "slow=slow_*.txt"]


@pytest.mark.usefixtures("fake_driver")
def test_rounds_are_interleaved_stored_and_gone_on_with(lsmtune: Any, home: Path) -> None:
    asked = (*CONTEST, "a=default", "b=write_buffer_size=4MiB", "--dir", "kept", "--json")
    said = lsmtune(*asked, "--rounds", "2")
    assert said.status == 0, said.err
    board = said.json()
    assert board["standings"]["rounds"] == [1, 2]
    assert board["workload"] == "fillrandom"
    assert board["options"]["b"] == {"write_buffer_size": 4194304}
    # The fake driver says the same of every run: nothing is told apart.
    assert {(r["rank_low"], r["rank_high"]) for r in board["standings"]["totals"]} == {(1, 2)}
    assert "no rule for memory: memory, file-size" in said.err
    again = lsmtune(*asked, "--rounds", "3")
    assert again.json()["standings"]["rounds"] == [1, 2, 3]
    told = [line for line in again.err.splitlines() if line.startswith("round ")]
    assert [line[:19] for line in told] == ["round 3, run 5 of 6", "round 3, run 6 of 6"]
    assert (home / "kept" / "measurements.db").is_file()


@pytest.mark.usefixtures("fake_driver")
def test_without_a_folder_nothing_is_left(lsmtune: Any, home: Path) -> None:
    said = lsmtune(*CONTEST, "a=default", "b=write_buffer_size=4MiB", "--rounds", "1")
    assert said.status == 0, said.err
    assert "a and b share the first rank" in said.out
    assert "One round proves nothing" in said.out
    assert list(home.iterdir()) == []


@pytest.mark.usefixtures("fake_driver")
def test_a_team_that_crashes_is_listed_and_the_others_are_ranked(lsmtune: Any) -> None:
    said = lsmtune(*CONTEST, "a=default", "b=default", "bad=fake=crash", "--rounds", "1")
    assert said.status == 0, said.err
    assert "failed, not ranked: bad: round 1: crashed" in said.out
    assert "a and b share the first rank" in said.out


@pytest.mark.usefixtures("fake_driver")
def test_a_team_that_breaks_a_rule_is_not_run(lsmtune: Any, home: Path) -> None:
    (home / "rules.yaml").write_text(
        "version: 1\nrules:\n  small:\n    rule: memory_model_bytes < 0\n    about: nothing\n"
    )
    said = lsmtune(*CONTEST, "a=default", "b=default", "--rules", "rules.yaml", "--json")
    assert said.status == 1
    assert "no team could be ranked: 2 disqualified" in said.err
    board = said.json()
    assert board["standings"] is None
    assert [each["team"] for each in board["disqualified"]] == ["a", "b"]
    assert board["disqualified"][0]["broken"][0]["text"] == "memory_model_bytes < 0"


def test_logs_are_ranked_and_written_in_every_form(lsmtune: Any, home: Path) -> None:
    files = ["b.html", "b.md"]
    outputs = [word for file in files for word in ("--output", file)]
    said = lsmtune("contest", "--from-logs", *logs(home), *outputs)
    assert said.status == 0, said.err
    assert "fast is first" in said.out
    assert said.out.split()[-2:] == files
    assert (home / "b.md").read_text().startswith("# fast is first")


def test_the_logs_of_the_contest(lsmtune: Any) -> None:
    said = lsmtune("contest", "--from-logs", *contest_logs())
    assert said.status == 0, said.err
    shown = " ".join(said.out.split())
    for text in (
        "SSTable, Bloom Filter and WAL/Manifest share the first rank",
        "1 SSTable 8 3 3 1 1",
        "1 Bloom Filter 8 1 2 2 3",
        "3 WAL/Manifest 11 2 1 3 5",
        "round 4 of Bloom Filter, 84,905 ops/s, is 1.24",
        "Bloom Filter with it, WAL/Manifest without it, WAL/Manifest by median",
    ):
        assert text in shown, shown


def test_the_rules_are_shown_as_a_file_to_start_from(lsmtune: Any, home: Path) -> None:
    shown = lsmtune("contest", "--show-rules")
    assert shown.status == 0
    (home / "rules.yaml").write_text(shown.out)
    said = lsmtune(
        "contest", "--show-rules", "--rules", "rules.yaml", "--engine", "leveldb", "--json"
    )
    assert [rule["expression"] for rule in said.json()["rules"]] == [
        "write_buffer_size + cache_size <= 1GiB",
        "max_file_size <= 1GiB",
    ]
    assert lsmtune("contest", "--show-rules", "--rules", "rules.yaml").out == shown.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "a contest has 2 teams or more"),
        (("a=default",), "a contest has 2 teams or more"),
        (("a=default", "b=nothing"), "neither options, nor a preset"),
        (("a=default", "b=default", "--metric", "stalls"), "--metric: found 'stalls'"),
        (("a=default", "b=default", "--rounds", "0"), "--rounds: found '0'"),
        (("a=default", "b=default", "--seed", str(2**53 - 1)), "--seed: found '9007199254740991'"),
        (("a=default", "b=default", "--output", "b.pdf"), "--output: found 'b.pdf'"),
        (("a=default", "b=default", "--confidence", "2%"), "--confidence: found '2%'"),
        (("a=default", "b=default", "--rules", "no.yaml"), "no.yaml: no such file"),
        (("a=default", "b=default", "--workload", "contests"), "did you mean contest?"),
    ],
)
@pytest.mark.usefixtures("fake_driver")
def test_wrong_input_is_one_line(lsmtune: Any, arguments: tuple[str, ...], said: str) -> None:
    assert said in lsmtune("contest", "--engine", "memory", *arguments).refusal


def test_engines_are_not_mixed_and_not_guessed(lsmtune: Any, home: Path) -> None:
    (home / "a.properties").write_text(
        "leveldb.write_buffer_size=4194304\nleveldb.compression=no\n"
    )
    (home / "b.properties").write_text(
        "rocksdb.write_buffer_size=4194304\nrocksdb.compression=no\n"
    )
    refusal = lsmtune("contest", "a.properties", "b.properties").refusal
    assert "'a (leveldb), b (rocksdb)'" in refusal
    said = lsmtune("contest", "a=default", "b=block_size=4096")
    assert "--engine: is missing" in said.err


def test_flags_without_effect_on_logs_are_refused(lsmtune: Any, home: Path) -> None:
    said = lsmtune("contest", "--from-logs", *logs(home), "--metric", "throughput_ops_s")
    assert said.status == 2
    assert "--metric: has no effect beside --from-logs" in said.err
    assert lsmtune("contest", "--from-logs").status == 2
    for flag in ("--rounds", "--seed"):
        said = lsmtune("contest", "--from-logs", *logs(home), flag, "3")
        assert said.err == f"lsmtune: {flag}: has no effect beside --from-logs\n"
    refusal = lsmtune("contest", "--show-rules", "a=default").refusal
    assert "FILE" in refusal
    assert "has no effect beside --show-rules" in refusal


@pytest.mark.usefixtures("fake_driver")
def test_where_nothing_can_be_written_is_said_before_anything_runs(
    lsmtune: Any, home: Path
) -> None:
    (home / "board.html").mkdir()
    (home / "file").write_text("")
    for place, why in (("board.html", "is a directory"), ("file/board.md", "is no folder")):
        refusal = lsmtune(
            *CONTEST, "a=default", "b=write_buffer_size=4MiB", "--output", place
        ).refusal
        assert why in refusal
        assert "run 1" not in refusal


def test_a_board_that_cannot_be_written_is_told_all_the_same(
    lsmtune: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk was full when it was written, and rounds of hours that no --dir kept were lost."""

    def refuse(path: Path, _content: object) -> Path:
        raise disk_full(path)

    monkeypatch.setattr("lsmtune.cli.contest.write_output", refuse)
    command = ("contest", "--from-logs", *logs(home), "--output", "board.md")
    said = lsmtune(*command)
    assert said.status == 1
    assert "fast is first" in said.out
    assert "board.md" not in said.out
    assert "lsmtune: board.md: the disk is full" in said.err
    document = lsmtune(*command, "--json").json()
    assert document["standings"]["totals"][0]["team"] == "fast"
    assert "board.md: the disk is full" in document["error"]["message"]


def test_logs_of_runs_of_different_sizes_are_warned_of(lsmtune: Any, home: Path) -> None:
    (home / "a.txt").write_text(log_text(load_a=1000.0))
    (home / "b.txt").write_text(log_text(load_a=9000.0))
    command = ("contest", "--from-logs", "a.txt", "b.txt", "--output")
    said = lsmtune(*command, "board.md")
    assert said.status == 0
    assert "warning: load-a: 90,000 operations in b.txt and 10,000 in a.txt" in said.err
    assert "90,000 operations in b.txt" in (home / "board.md").read_text()
    again = lsmtune(*command, "board.md")
    assert "board.md: exists already; allowed: another --output, or --force" in again.refusal
    assert lsmtune(*command, "board.md", "--force").status == 0
    piped = lsmtune(*command, "-")
    assert piped.out == (home / "board.md").read_text()
    assert "a.txt" in piped.err


@pytest.mark.engine
def test_a_contest_of_leveldb(
    lsmtune: Any,
    home: Path,
    driver: Path,
    leveldb_library: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LSMTUNE_DRIVER", str(driver))
    lines = {"write_buffer_size": "1048576", "compression": "snappy"}
    for name, size in (("small", "65536"), ("large", "4194304"), ("huge", "2147483648")):
        text = "".join(
            f"leveldb.{k}={v}\n" for k, v in {**lines, "write_buffer_size": size}.items()
        )
        (home / f"{name}.properties").write_text(text)
    said = lsmtune(
        *("contest", "small.properties", "large.properties", "huge.properties", "--rounds", "2"),
        *("--library", str(leveldb_library), "--workload", "put-get-delete", "-w", "num=20000"),
        "--json",
    )
    assert said.status == 0, said.err
    board = said.json()
    assert [each["team"] for each in board["disqualified"]] == ["huge"]
    assert [phase["phase"] for phase in board["standings"]["phases"]] == ["put", "get", "delete"]
    assert board["engine"]["name"] == "leveldb"
    assert {row["team"] for row in board["standings"]["totals"]} == {"small", "large"}
