"""Performing rounds: interleaved, stored at once, resumed, refused where they do not belong."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_runner import ENGINE, FakeRunner, Refusing
from rounds_parts import CELLS, WORKLOAD, Recorder, cell, run_rounds

from lsmtune.errors import InputError, LsmtuneError
from lsmtune.experiment.files import MARKER, claim
from lsmtune.experiment.rounds import measure_repeats, read_rounds, settled_bytes
from lsmtune.experiment.schedule import Arm, shuffled
from lsmtune.model.config import Config
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import LIMITS_DEFAULT, RunRequest

pytestmark = pytest.mark.usefixtures("in_memory")


def test_each_round_has_every_cell_once_on_one_seed_in_an_order_of_its_own(tmp_path: Path) -> None:
    runner, observer = FakeRunner(), Recorder()
    runs = run_rounds(tmp_path / "r", 5, runner=runner, seed=10, observer=observer)
    assert len(runs) == 20
    wanted = [(n, c.name) for n in range(5) for c in shuffled(CELLS, 10, n)]
    assert observer.begun == wanted
    assert len({tuple(name for n, name in wanted if n == number) for number in range(5)}) > 1
    for number in range(5):
        of_round = [run for run in runs if run.round == number]
        assert {run.seed for run in of_round} == {10 + number}
        assert {run.measurement.seed for run in of_round} == {10 + number}
    assert [run.round for run in runs if run.arm == "c"] == [0, 1, 2, 3, 4]
    by_name = {c.name: c.config.engine_options() for c in CELLS}
    assert all(dict(run.measurement.options) == by_name[run.arm] for run in runs)
    assert observer.finished == [(name, n, 20) for n, (_, name) in enumerate(wanted, 1)]
    assert len(observer.messages) == 20


def test_every_run_has_an_empty_directory_that_is_gone_afterwards(tmp_path: Path) -> None:
    runner = FakeRunner()
    run_rounds(tmp_path / "r", 2, runner=runner)
    directories = [request.directory for request in runner.requests]
    assert len(set(directories)) == 8
    assert not any(directory.exists() for directory in directories)
    assert list((tmp_path / "r" / "runs").iterdir()) == []


def test_what_was_stopped_goes_on_where_it_was_as_if_it_had_not_been(tmp_path: Path) -> None:
    observer = Recorder(stop_at_run=6)
    first = run_rounds(tmp_path / "r", 3, observer=observer)
    assert len(first) == 5, "the run that was cut off is not stored"
    again = Recorder()
    runs = run_rounds(tmp_path / "r", 3, observer=again)
    assert again.started == (5, 12)
    assert again.begun[0] == observer.begun[-1]
    whole = run_rounds(tmp_path / "whole", 3)
    assert [replace(run, wall_s=0.0) for run in sorted(runs, key=_place)] == [
        replace(run, wall_s=0.0) for run in sorted(whole, key=_place)
    ]


def test_rounds_may_be_raised_and_asking_for_fewer_loses_none(tmp_path: Path) -> None:
    run_rounds(tmp_path / "r", 2)
    observer = Recorder()
    assert len(run_rounds(tmp_path / "r", 4, observer=observer)) == 16
    assert {number for number, _ in observer.begun} == {2, 3}
    assert len(run_rounds(tmp_path / "r", 1)) == 16


def test_reading_gives_what_was_stored_also_while_another_measures(tmp_path: Path) -> None:
    class Reader(Recorder):
        seen = 0

        def run_started(self, *where: Any) -> None:
            if where[0].round == 1:
                self.seen = len(read_rounds(tmp_path / "r"))

    reader = Reader()
    runs = run_rounds(tmp_path / "r", 2, observer=reader)
    assert reader.seen == 7
    assert read_rounds(tmp_path / "r") == runs


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (
            {"cells": [*CELLS[:3], replace(CELLS[3], config=CELLS[0].config)]},
            "since: cells, options;",
        ),
        # Two that change places have the same options as before, and are other cells.
        ({"cells": [cell("a", 4), cell("b", 2), *CELLS[2:]]}, "since: cells;"),
        # The engine and the workload of one more cell are those of the others.
        ({"cells": [*CELLS, cell("e", 32)]}, "since: cells, options;"),
        ({"cells": [*CELLS, cell("e")]}, "since: cells;"),
        ({"seed": 2}, "seed"),
    ],
)
def test_a_folder_of_another_plan_is_refused_and_left_as_it_is(
    tmp_path: Path, change: dict[str, object], named: str
) -> None:
    run_rounds(tmp_path / "r", 1)
    before = read_rounds(tmp_path / "r")
    with pytest.raises(InputError) as error:
        run_rounds(tmp_path / "r", 1, **change)  # type: ignore[arg-type]
    assert str(error.value).startswith(f"{tmp_path / 'r'}: holds runs of another plan")
    assert named in str(error.value)
    assert read_rounds(tmp_path / "r") == before


def test_a_plan_of_which_nothing_ended_well_may_be_mended(tmp_path: Path) -> None:
    runs = run_rounds(tmp_path / "r", 1, runner=Refusing("write_buffer_size"))
    assert {run.measurement.outcome for run in runs} == {Outcome.INVALID}
    assert len(run_rounds(tmp_path / "r", 1, cells=[cell("z")])) == 1


def test_the_order_in_which_cells_are_given_is_no_part_of_the_plan(tmp_path: Path) -> None:
    runs = run_rounds(tmp_path / "r", 1)
    assert run_rounds(tmp_path / "r", 1, cells=CELLS[::-1]) == runs


def test_runs_that_fail_are_kept_and_the_others_go_on(tmp_path: Path) -> None:
    def fails(request: RunRequest) -> Outcome | None:
        return Outcome.TIMEOUT if request.config.label == "b" else None

    runs = run_rounds(tmp_path / "r", 2, runner=FakeRunner(fails=fails))
    ended = {run.arm: run.measurement.outcome for run in runs}
    assert ended == {"a": "ok", "b": "timeout", "c": "ok", "d": "ok"}
    observer = Recorder()
    run_rounds(tmp_path / "r", 2, observer=observer)
    assert observer.begun == [], "a run that failed is an observation, and not repeated"


def test_what_a_killed_run_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    run_rounds(tmp_path / "r", 1)
    left, users = tmp_path / "r" / "runs" / "run-killed", tmp_path / "r" / "runs" / "mine"
    claim(left, "run", tmp_path / "r")
    (left / "db").mkdir()
    users.mkdir()
    (users / "file").write_text("precious")
    run_rounds(tmp_path / "r", 2)
    assert not left.exists()
    assert (users / "file").read_text() == "precious"


def test_a_folder_with_other_content_is_refused_untouched(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    with pytest.raises(InputError, match="not ours"):
        run_rounds(tmp_path, 1)
    study = tmp_path / "study"
    claim(study, "study")
    (study / "measurements.db").write_text("a study's")
    with pytest.raises(InputError, match="holds something else: study"):
        run_rounds(study, 1)
    assert {path.name for path in study.iterdir()} <= {MARKER, ".lock", "measurements.db"}


def test_one_process_at_a_time(tmp_path: Path) -> None:
    class Second(Recorder):
        refused = ""

        def run_started(self, *_: object) -> None:
            if not self.refused:
                with pytest.raises(InputError) as error:
                    run_rounds(tmp_path / "r", 1)
                self.refused = str(error.value)

    second = Second()
    run_rounds(tmp_path / "r", 1, observer=second)
    assert "in use by another" in second.refused


def test_another_version_of_the_engine_is_refused(tmp_path: Path) -> None:
    run_rounds(tmp_path / "r", 1)
    newer = FakeRunner(engine=replace(ENGINE, version="2.0"))
    with pytest.raises(InputError, match="two versions"):
        run_rounds(tmp_path / "r", 2, runner=newer)
    assert len(read_rounds(tmp_path / "r")) == 4


def test_rounds_do_not_go_on_with_a_library_at_another_place(tmp_path: Path) -> None:
    """One of the same version that was installed meanwhile; half of the table was of either."""

    def rounds(place: str, count: int) -> None:
        path = tmp_path / place
        path.write_text(place)
        engine = replace(ENGINE, library=str(path))
        cells = [replace(each, engine=engine) for each in CELLS]
        run_rounds(tmp_path / "r", count, cells=cells, runner=FakeRunner(engine=engine))

    rounds("one.so", 1)
    with pytest.raises(InputError, match=r"one.so, with which this study began"):
        rounds("other.so", 2)
    rounds("one.so", 2)
    assert len(read_rounds(tmp_path / "r")) == 8


def test_runs_start_from_the_loaded_databases_of_their_round(tmp_path: Path) -> None:
    class Loaded:
        seeds: list[int | None]

        def __init__(self) -> None:
            self.seeds = []

        def prepare(self, request: RunRequest, *_: object) -> RunRequest:
            self.seeds.append(request.load_seed)
            return replace(request, verify_keys=7)

    runner, loaded = FakeRunner(), Loaded()
    run_rounds(tmp_path / "r", 4, runner=runner, databases=loaded.prepare, seed=5)
    assert loaded.seeds == [5 + number for number in range(4) for _ in CELLS]
    assert {request.verify_keys for request in runner.requests} == {7}
    assert [request.load_seed for request in runner.requests] == loaded.seeds


def test_what_ends_all_runs_ends_the_settling_of_a_database(tmp_path: Path) -> None:
    """`bench --runner all` heard Ctrl-C when the driver had waited for all compactions."""
    stop, sizes = threading.Event(), list[int | None]()
    driver = FakeRunner(hangs=lambda _request: bool(stop.set()))  # interrupted, and does not hang

    def settle(stop: threading.Event, _arm: Arm, request: RunRequest, _: Measurement) -> None:
        sizes.append(settled_bytes(driver, ENGINE, request, stop)[0])

    arms = [(FakeRunner(), Arm(ENGINE, Config(), name)) for name in ("native", "db_bench")]
    measured = measure_repeats(
        *(arms, WORKLOAD, LIMITS_DEFAULT, (1, 2), tmp_path, Recorder(), stop), after=settle
    )
    assert [len(runs) for runs in measured.values()] == [1, 0]
    assert (sizes, len(driver.requests)) == ([None], 1)


def test_reading_where_nothing_is_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such study folder"):
        read_rounds(tmp_path / "absent")
    (tmp_path / "file").write_text("")
    with pytest.raises(LsmtuneError, match="not ours"):
        read_rounds(tmp_path)


def _place(run: object) -> tuple[int, str]:
    return (run.round, run.arm)  # type: ignore[attr-defined]
