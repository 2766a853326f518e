"""`lsmtune verify --runner`: a proof by a program that people trust, on whole runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from made_up import write_program

FAKE = Path(__file__).parents[1] / "driver" / "fake_trusted.py"
VERIFY = ("verify", "--engine", "rocksdb", "--workload", "fillrandom", "-w", "num=1000")
ONE = (*VERIFY, "--runner", "rocksdb-db_bench", "--candidate", "write_buffer_size=1MiB")
BURST = ("--metric", "throughput_ops_s")


@pytest.fixture(autouse=True)
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with a fake of RocksDB's db_bench alone."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return write_program(folder / "db_bench", FAKE.read_text())


def test_a_proof_is_made_by_the_program(lsmtune: Any, tmp_path: Path) -> None:
    said = lsmtune(*ONE, *BURST, "--pairs", "6", "--dir", str(tmp_path / "kept"), "--json")
    assert said.status == 3, said.err  # the fake is as fast with either
    document = said.json()
    verdict = document["verdict"]
    assert (verdict["metric"], verdict["pairs"], verdict["method"]) == (
        "throughput_ops_s",
        6,
        "whole",
    )
    (whole,) = document["warnings"]
    assert "whole runs: a program that is not lsmtune's own driver cannot be stopped" in whole
    assert "Assertions are enabled" in said.err
    # The same command goes on from them, and has all of them already.
    assert lsmtune(*ONE, *BURST, "--pairs", "6", "--dir", str(tmp_path / "kept")).status == 3


def test_a_path_in_place_of_PATH(  # noqa: N802
    lsmtune: Any, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    given = lsmtune(*ONE, *BURST, "--pairs", "6", "--program", str(program))
    assert given.status == 3, given.err
    missing = lsmtune(*ONE, *BURST)
    assert missing.status == 2
    assert "not on PATH" in missing.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((*ONE, *BURST, "--method", "slices"), "--method: a program that is not lsmtune's own"),
        ((*ONE, *BURST, "--method", "duet"), "--method: a program that is not lsmtune's own"),
        (ONE, "--metric: rocksdb-db_bench cannot tell it; found 'sustained_throughput_ops_s'"),
        ((*ONE, "--metric", "stall_s"), "--metric: rocksdb-db_bench cannot tell it; found"),
        ((*ONE, *BURST, "--library", "x.so"), "--library: rocksdb-db_bench carries an engine"),
        (
            (*VERIFY, "--runner", "all", "--candidate", "write_buffer_size=1MiB"),
            "--runner: found 'all'; allowed: native, rocksdb-db_bench, ",
        ),
        (
            (*VERIFY, "--program", "x", "--candidate", "write_buffer_size=1MiB"),
            "--program: has no effect with --runner native",
        ),
        ((*ONE, *BURST, "-w", "rate_ops_s=9"), "--runner rocksdb-db_bench: fillrandom: rate"),
    ],
)
def test_what_cannot_be_is_one_line(lsmtune: Any, arguments: tuple[str, ...], said: str) -> None:
    assert said in lsmtune(*arguments).refusal
