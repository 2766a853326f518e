"""`lsmtune sweep`, on a driver without an engine."""

from __future__ import annotations

import signal
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from lsmtune.cli.rounds_progress import SweepProgress
from lsmtune.experiment import sweep_grid
from lsmtune.experiment.files import run_directory
from lsmtune.experiment.rounds import read_rounds
from lsmtune.experiment.store import StoredMeasurement

SWEEP = ("sweep", "--engine", "memory", "--workload", "fillrandom", "-w", "num=1000")
AXES = ("--axis", "value_bytes=100,200", "--axis", "option:write_buffer_size=1MiB,4MiB")
FILE = """\
version: 1
engine: {name: memory}
workloads: [fillrandom]
workload: {num: 1000}
axes: {workload: {value_bytes: [100, 200, 400]}}
repeats: 2
"""

pytestmark = pytest.mark.usefixtures("fake_driver")


def test_a_grid_is_measured_kept_and_written(lsmtune: Any, home: Path) -> None:
    said = lsmtune(*SWEEP, *AXES, "--repeat", "2", "--dir", "d", "--json")
    assert said.status == 0, said.err
    told = said.json()
    assert (told["runs"], told["runs_wanted"], told["repeats"]) == (8, 8, 2)
    (table,) = told["tables"]
    assert [cell["values"] for cell in table["cells"]] == [
        {"value_bytes": "100", "write_buffer_size": "1MiB"},
        {"value_bytes": "100", "write_buffer_size": "4MiB"},
        {"value_bytes": "200", "write_buffer_size": "1MiB"},
        {"value_bytes": "200", "write_buffer_size": "4MiB"},
    ]
    assert table["cells"][3]["options"] == {"write_buffer_size": 4 << 20}
    assert table["cells"][0]["metrics"]["throughput_ops_s"]["mean"] == pytest.approx(166_666.7)
    assert {Path(file).name for file in told["files"]} == {
        *("sweep.html", "sweep.md", "sweep.csv", "sweep-runs.csv", "sweep.json")
    }
    assert all((home / file).is_file() for file in told["files"])
    assert {run.round for run in read_rounds(home / "d")} == {0, 1}
    assert [path.name for path in home.iterdir()] == ["d"], "nothing is left beside the folder"


def test_the_same_command_goes_on_and_more_rounds_may_be_asked_for(lsmtune: Any) -> None:
    assert lsmtune(*SWEEP, *AXES, "--repeat", "1").status == 0
    again = lsmtune(*SWEEP, *AXES, "--repeat", "2", "--json")
    assert again.status == 0
    assert again.json()["runs"] == 8
    assert "continuing: 4 of 8 runs are stored" in again.err
    assert "round 2, run 5 of 8: fillrandom, " in again.err
    assert "round 1, run" not in again.err


def test_another_plan_in_the_same_folder_is_refused(lsmtune: Any) -> None:
    assert lsmtune(*SWEEP, *AXES, "--repeat", "1").status == 0
    refusal = lsmtune(*SWEEP, *AXES, "--repeat", "1", "-w", "key_bytes=20").refusal
    assert "sweep.lsmtune: holds runs of another plan, which cannot be compared" in refusal
    assert "--dir DIR" in refusal


def test_a_library_that_the_file_names_is_refused_by_its_line(lsmtune: Any, home: Path) -> None:
    """It was a wrong --library, which nobody had given."""
    text = FILE.replace("{name: memory}", "{name: leveldb, library: gone.so}")
    (home / "s.yaml").write_text(text)
    refusal = lsmtune("sweep", "s.yaml").refusal
    assert refusal.startswith("lsmtune: s.yaml:2: engine.library: no such file; found ")
    refusal = lsmtune("sweep", "s.yaml", "--library", "other.so").refusal
    assert refusal.startswith("lsmtune: --library: no such file; found ")


def test_tables_for_people(lsmtune: Any) -> None:
    out = lsmtune(*SWEEP, *AXES, "--repeat", "2").out
    for text in (
        "rocksdb 10.2.1: 4 cells, 2 rounds, 8 of 8 runs",
        "ops/s, sustained",
        "MB/s, sustained",
        "Ratios to the first cell",
        "most operations per second, sustained",
        "never alone",
        "written: sweep.lsmtune/result/sweep.html",
    ):
        assert text in out, out


def test_a_plan_runs_nothing_and_knows_the_time_after_a_round(lsmtune: Any, home: Path) -> None:
    said = lsmtune(*SWEEP, *AXES, "--plan")
    assert said.status == 0
    assert "4 cells, 3 rounds, 12 runs" in said.out
    assert "how long it takes is known after the first round" in said.out
    assert list(home.iterdir()) == []
    assert lsmtune(*SWEEP, *AXES, "--repeat", "1").status == 0
    assert " left" in lsmtune(*SWEEP, *AXES, "--plan").out
    told = lsmtune(*SWEEP, *AXES, "--plan", "--json").json()
    assert (told["runs"], told["runs_stored"], len(told["cells"])) == (12, 4, 4)
    assert told["left_s"] > 0


def test_a_plan_of_fewer_rounds_than_are_stored_has_nothing_left(lsmtune: Any) -> None:
    """It said `5 of 3` runs."""
    assert lsmtune(*SWEEP, *AXES, "--repeat", "3").status == 0
    told = lsmtune(*SWEEP, *AXES, "--repeat", "2", "--plan", "--json").json()
    assert (told["runs"], told["runs_stored"], told["left_s"]) == (8, 8, 0)
    assert lsmtune(*SWEEP, *AXES, "--repeat", "2", "--plan").out.count("2 of 2") == 4


def test_a_file_and_what_flags_change_of_it(lsmtune: Any, home: Path) -> None:
    (home / "sizes.yaml").write_text(FILE)
    told = lsmtune("sweep", "sizes.yaml", "--json").json()
    assert (told["runs"], told["repeats"]) == (6, 2)
    assert (home / "sizes.lsmtune" / "result" / "sweep.md").is_file()
    told = lsmtune(
        *("sweep", "sizes.yaml", "--repeat", "1", "--dir", "x", "--seed", "9", "-w", "num=500"),
        "--json",
    ).json()
    assert (told["runs"], told["seed"]) == (3, 9)
    assert {cell["num"] for table in told["tables"] for cell in table["cells"]} == {500}


def test_rf5_is_built_in(lsmtune: Any) -> None:
    said = lsmtune("sweep", "rf5", "--engine", "memory", "-w", "num=5000", "--plan", "--json")
    assert said.status == 0, said.err
    assert len(said.json()["cells"]) == 36
    assert {cell["num"] for cell in said.json()["cells"]} == {5000}


def test_a_run_that_fails_is_kept_told_and_exit_1(lsmtune: Any) -> None:
    said = lsmtune(*SWEEP, "--axis", "option:fake=crash", "--repeat", "1", "--json")
    assert said.status == 1
    assert said.json()["failures"][0]["outcome"] == "crashed"
    assert said.err.splitlines()[-1] == "lsmtune: sweep: 1 of 1 runs did not end well"


def test_an_option_that_the_engine_refuses_is_said_before_anything_runs(
    lsmtune: Any, home: Path
) -> None:
    refusal = lsmtune(*SWEEP, "-o", "line=1", "--axis", "option:fake=fail").refusal
    assert "unknown option; did you mean write_buffer_size?" in refusal
    assert not (home / "sweep.lsmtune").exists()
    assert list(home.iterdir()) == []


def test_options_are_tried_on_the_disk_that_the_runs_will_have(
    lsmtune: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were tried beside the folder: not possible in a volume below a read-only root."""
    tried: list[Path] = []

    def noting(parent: Path) -> AbstractContextManager[Path]:
        tried.append(parent)
        return run_directory(parent)

    monkeypatch.setattr(sweep_grid, "run_directory", noting)
    (home / "volume").mkdir()
    for folder in ("volume", "new"):
        assert lsmtune(*SWEEP, *AXES, "--repeat", "1", "--dir", folder).status == 0
    assert [path.name for path in tried] == ["volume", "volume", home.name, home.name]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["sweep"], "--engine: is missing"),
        (["sweep", "--engine", "memory"], "--workload: is missing"),
        ([*SWEEP], "--axis: is missing; allowed: NAME=VALUE,VALUE"),
        ([*SWEEP, "--axis", "value_bytes"], "--axis: found 'value_bytes'; allowed: NAME=VALUE"),
        ([*SWEEP, "--axis", "value_bytes=1,,2"], "--axis: found 'value_bytes=1,,2'"),
        ([*SWEEP, "--axis", "value_bytes=0,5"], "--axis: value_bytes: found '0'; allowed"),
        ([*SWEEP, "--axis", "valuebytes=5"], "--axis: valuebytes: unknown workload parameter"),
        ([*SWEEP, "--axis", "option:a=4MiB,0.3B"], "--axis: option:a: found '0.3B'"),
        ([*SWEEP, "--axis", "num=5"], "--axis: num: is an axis and has a fixed value too"),
        ([*SWEEP[:4], "fillseqq", "--axis", "num=5"], "--workload: found 'fillseqq'"),
        ([*SWEEP, "-w", "reads=5", *AXES], "-w/--workload-set: reads: has no effect"),
        (["sweep", "rf6"], "sweep: found 'rf6'; allowed: a sweep file, or rf5; did you mean rf5?"),
        (["sweep", "no.yaml"], "no.yaml: no such file; allowed: a sweep file"),
        (["sweep", "rf5", "--axis", "num=5"], "--axis: has no effect beside rf5"),
        (["sweep", "rf5", "--workload", "fillseq"], "--workload: has no effect beside rf5"),
        ([*SWEEP, *AXES, "--repeat", "0"], "--repeat: found '0'"),
        ([*SWEEP, *AXES, "--deadline", "soon"], "--deadline: found 'soon'"),
    ],
)
def test_bad_input(lsmtune: Any, arguments: list[str], line: str, home: Path) -> None:
    assert line in lsmtune(*arguments).refusal
    assert list(home.iterdir()) == []


def test_a_folder_that_is_not_ours_is_left_alone(lsmtune: Any, home: Path) -> None:
    (home / "mine").mkdir()
    (home / "mine" / "file").write_text("precious")
    assert "this folder is not ours" in lsmtune(*SWEEP, *AXES, "--dir", "mine").refusal
    assert [path.name for path in (home / "mine").iterdir()] == ["file"]


def test_ctrl_c_keeps_what_was_done_and_the_same_command_goes_on(
    lsmtune: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished, done = SweepProgress.run_finished, []

    def interrupt(self: SweepProgress, run: StoredMeasurement) -> None:
        finished(self, run)
        done.append(run)
        if len(done) == 6:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patched:
        patched.setattr(SweepProgress, "run_finished", interrupt)
        said = lsmtune(*SWEEP, *AXES, "--repeat", "3", "--json")
    assert said.status == 130
    assert len(read_rounds(home / "sweep.lsmtune")) == said.json()["runs"] == 6
    assert "interrupted; 6 of 12 runs are kept in sweep.lsmtune" in said.err
    said = lsmtune(*SWEEP, *AXES, "--repeat", "1", "--json")
    assert (said.status, said.json()["runs"]) == (0, 6), "fewer rounds than were begun"
    said = lsmtune(*SWEEP, *AXES, "--repeat", "2", "--json")
    assert (said.status, said.json()["runs"]) == (0, 8)


def test_a_sweep_that_ended_before_its_tables_were_made_begins_again(
    lsmtune: Any, home: Path
) -> None:
    """A kill, or a full disk, left an empty file, which was called damaged for good."""
    assert lsmtune(*SWEEP, *AXES, "--repeat", "1").status == 0
    (home / "sweep.lsmtune" / "measurements.db").write_bytes(b"")
    assert "how long it takes is known after" in lsmtune(*SWEEP, *AXES, "--plan").out
    said = lsmtune(*SWEEP, *AXES, "--repeat", "1", "--json")
    assert (said.status, said.json()["runs"]) == (0, 4), said.err
