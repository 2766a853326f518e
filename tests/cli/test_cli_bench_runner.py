"""`lsmtune bench --runner`: a program in the place of the driver, and all of them side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lsmtune.cli import bench as bench_runners
from lsmtune.driver.native import NativeRunner
from lsmtune.model.config import Build, EngineIdentity
from lsmtune.programs.runner import RunnerChoice
from made_up import write_program

RUNNERS = Path(__file__).parents[1] / "driver"
BENCH = ("bench", "--workload", "fillrandom", "-w", "num=1000")
ROCKSDB = (*BENCH, "--engine", "rocksdb")
KINDS = {"rocksdb-db_bench": "db_bench", "leveldb-db_bench": "leveldb_db_bench", "ekvsb": "ekvsb"}

pytestmark = pytest.mark.usefixtures("fake_driver")


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH of fakes alone: both db_benches and ekvsb."""
    text = (RUNNERS / "fake_trusted.py").read_text()
    folder = tmp_path / "bin"
    folder.mkdir()
    for kind, name in KINDS.items():
        own = text.replace('KIND = "rocksdb-db_bench"', f'KIND = "{kind}"')
        write_program(folder / name, own)
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.mark.usefixtures("programs")
def test_a_program_takes_the_place_of_the_driver(lsmtune: Any, home: Path) -> None:
    said = lsmtune(*ROCKSDB, "--runner", "rocksdb-db_bench", "--repeat", "2", "--json")
    assert said.status == 0, said.err
    document = said.json()
    assert [m["seed"] for m in document["measurements"]] == [1, 2]
    measurement = document["measurements"][0]
    assert measurement["runner"] == "rocksdb-db_bench"
    assert measurement["engine"]["build"] == "assertions-on"
    phase = measurement["phases"][0]
    assert (phase["operations"], phase["sustained_throughput_ops_s"]) == (1000, None)
    assert phase["latencies"]["put"]["latency_us_mean"] == 2.0
    assert any("Assertions are enabled" in line for line in document["warnings"])
    assert list(home.iterdir()) == []


@pytest.mark.usefixtures("programs")
def test_the_table_leaves_out_what_is_not_told(lsmtune: Any) -> None:
    out = lsmtune(*ROCKSDB, "--runner", "rocksdb-db_bench").out
    assert "burst" in out
    assert "500,000 ops/s" in out
    assert "Assertions are enabled" in out
    assert "sustained" not in out
    assert "drain" not in out


@pytest.mark.usefixtures("programs")
def test_all_runners_stand_side_by_side(
    lsmtune: Any, fake_driver: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The fake driver needs no library, which the command would look for.
    engine = EngineIdentity("rocksdb", "10.2.1", str(fake_driver), Build.RELEASE)
    arm = RunnerChoice("native", NativeRunner(fake_driver), engine)
    monkeypatch.setattr(bench_runners, "native_runner", lambda *_: arm)
    assert "sustained" in lsmtune(*ROCKSDB, "--runner", "all").out
    said = lsmtune(*ROCKSDB, "--runner", "all", "--repeat", "2", "--json")
    assert said.status == 0, said.err
    document = said.json()
    assert any("different engine builds" in line for line in document["warnings"])
    names = [each["runner"] for each in document["runners"]]
    assert names == ["native", "rocksdb-db_bench", "ekvsb"]
    assert all(len(each["measurements"]) == 2 for each in document["runners"])
    missing = {each["runner"]: each["why"] for each in document["missing"]}
    assert missing["leveldb-db_bench"] == "--engine: found 'rocksdb'; allowed: leveldb"
    assert missing["ycsb-cpp"].startswith("keys: its keys are YCSB's")
    figures = {
        (each["runner"], each["metric"]): each
        for each in document["comparison"]
        if each["phase"] == "fillrandom"
    }
    ours = figures["native", "throughput_ops_s"]["median"]
    theirs = figures["rocksdb-db_bench", "throughput_ops_s"]
    assert theirs["ratio_to_native"] == pytest.approx(500_000 / ours)
    assert figures["native", "throughput_ops_s"]["ratio_to_native"] == 1.0
    untold = figures["ekvsb", "sustained_throughput_ops_s"]
    assert (untold["median"], untold["runs"]) == (None, 0)


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--runner", "db_bench"), "--runner: found 'db_bench'; allowed: native, rocksdb-db_bench"),
        (("--program", "x"), "--program: has no effect with --runner native"),
        (("--runner", "all", "--program-argument=-x"), "--program-argument: has no effect"),
        (
            ("--runner", "rocksdb-db_bench", "--program-argument=--val_size=9"),
            "--program-argument: unknown flag of rocksdb-db_bench; found '--val_size=9'; "
            "did you mean --value_size?",
        ),
        (
            ("--runner", "rocksdb-db_bench", "--program-argument=--value_size=9"),
            "--program-argument: lsmtune sets this flag itself; found '--value_size=9'",
        ),
        (("--runner", "ycsb-cpp"), "--runner ycsb-cpp: keys: its keys are YCSB's"),
        (("--runner", "leveldb-db_bench"), "--runner leveldb-db_bench: --engine: found 'rocksdb'"),
        (
            ("--runner", "rocksdb-db_bench", "--library", "x"),
            "--library: rocksdb-db_bench carries an engine of its own",
        ),
        (
            ("--runner", "rocksdb-db_bench", "-w", "rate_ops_s=5"),
            "--runner rocksdb-db_bench: fillrandom: rate: it holds no rate",
        ),
        (
            ("--runner", "ekvsb", "-o", "max_background_jobs=2"),
            "--runner ekvsb: options: ekvsb has no such flag: max_background_jobs",
        ),
        (("--runner", "ekvsb", "--program", "/bin/true"), "is no program that lsmtune knows"),
    ],
)
def test_what_cannot_be_is_one_line(lsmtune: Any, arguments: tuple[str, ...], said: str) -> None:
    assert said in lsmtune(*ROCKSDB, *arguments).refusal


def test_a_program_that_is_nowhere_says_where_it_was_looked_for(
    lsmtune: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    refusal = lsmtune(*ROCKSDB, "--runner", "rocksdb-db_bench").refusal
    assert "not on PATH: looked for db_bench, rocksdb_db_bench" in refusal
    assert "allowed: --program PATH of one" in refusal
