"""A pair of runs is stored as a whole, and its time is charged once."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from fake_runner import FakeRunner
from proof_parts import BASELINE, CANDIDATE, WORKLOAD, Recorder, arm, measurer_of

from lsmtune.experiment import measurer as measurer_module
from lsmtune.experiment.databases import DatabaseCache
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.measurer import Measurer, Run
from lsmtune.experiment.schedule import Slot, load_seed_of
from lsmtune.experiment.store import Role
from lsmtune.model.measurement import Outcome
from lsmtune.model.request import PairMethod, RunRequest

FIRST: Run = (arm(CANDIDATE), Slot(Role.PROOF_CANDIDATE, 0, pair=0))
SECOND: Run = (arm(BASELINE), Slot(Role.PROOF_BASELINE, 0, pair=0))


@pytest.fixture
def observer() -> Recorder:
    return Recorder()


def fresh(folder: StudyFolder, runner: FakeRunner, observer: Recorder) -> Measurer:
    return measurer_of(folder, runner, observer, runner)


def test_both_runs_are_charged_half_of_what_they_cost(
    folder: StudyFolder, observer: Recorder
) -> None:
    runner = FakeRunner()
    measurer = fresh(folder, runner, observer)
    runner.now_s += 3.0  # before the first run
    both = measurer.measure_pair(FIRST, SECOND, 7, PairMethod.WHOLE)
    assert both is not None
    assert [run.wall_s for run in both] == [2.5, 2.5]
    assert [run.role for run in both] == [Role.PROOF_CANDIDATE, Role.PROOF_BASELINE]
    assert {run.measurement.paired_by for run in both} == {"whole"}
    assert measurer.spent_s() == folder.measurements.spent_s() == 5.0
    assert [run.id for run in folder.measurements.all()] == [run.id for run in both]


def test_the_first_database_is_gone_when_the_second_run_begins(
    folder: StudyFolder, observer: Recorder
) -> None:
    runner = FakeRunner()
    seen: list[int] = []
    runner.fails = lambda _request: seen.append(len(list(folder.runs_path.iterdir())))  # type: ignore[assignment, func-returns-value]
    fresh(folder, runner, observer).measure_pair(FIRST, SECOND, 7, PairMethod.WHOLE)
    assert seen == [1, 1]


def test_a_failed_run_is_stored_with_its_pair(folder: StudyFolder, observer: Recorder) -> None:
    runner = FakeRunner(fails=lambda r: Outcome.CRASHED if r.config.options else None)
    both = fresh(folder, runner, observer).measure_pair(FIRST, SECOND, 7, PairMethod.WHOLE)
    assert both is not None
    assert [run.measurement.outcome for run in both] == [Outcome.CRASHED, Outcome.OK]


@pytest.mark.parametrize("during", [Role.PROOF_CANDIDATE, Role.PROOF_BASELINE])
def test_nothing_is_stored_of_a_pair_that_was_stopped(
    folder: StudyFolder, observer: Recorder, during: Role
) -> None:
    observer.stop_at = ("run_started", during, 0, 0)
    runner = FakeRunner()
    assert fresh(folder, runner, observer).measure_pair(FIRST, SECOND, 7, PairMethod.WHOLE) is None
    assert folder.measurements.all() == []
    assert observer.of("run_finished") == []
    assert list(folder.runs_path.iterdir()) == []


def test_a_pair_that_is_late_is_ended(folder: StudyFolder, observer: Recorder) -> None:
    runner = FakeRunner()
    measurer = fresh(folder, runner, observer)
    pair = measurer.measure_pair(FIRST, SECOND, 7, PairMethod.WHOLE, until_s=1.5)
    assert pair is None
    assert len(runner.requests) == 2
    assert measurer.measure_pair(FIRST, SECOND, 7, PairMethod.WHOLE, until_s=9.0) is not None


def test_what_a_pair_took_that_was_cut_off_in_its_first_run_is_not_lost(
    folder: StudyFolder, observer: Recorder
) -> None:
    """The next run was charged for it; without one, the study did not know that it was gone."""
    runner = FakeRunner()
    measurer = fresh(folder, runner, observer)
    observer.run_message = lambda _message: setattr(runner, "now_s", 5.0)
    assert measurer.measure_pair(FIRST, SECOND, 7, PairMethod.WHOLE, until_s=4.0) is None
    assert len(runner.requests) == 1
    assert folder.measurements.spent_s() == measurer.spent_s() == 6.0
    del observer.run_message
    run = measurer.measure(arm(BASELINE), 3, Slot(Role.BASELINE, 0))
    assert run is not None
    assert run.wall_s == 1.0


def test_after_a_stop_a_round_that_a_failed_run_has_ended_is_over(
    folder: StudyFolder, observer: Recorder
) -> None:
    """A promoted trial that had crashed ran the other workloads, too, once the study went on."""
    runner = FakeRunner(fails=lambda _request: Outcome.CRASHED)
    measurer = measurer_of(folder, runner, observer, runner, (WORKLOAD, WORKLOAD))
    promoted = arm(CANDIDATE), 7, Slot(Role.PROMOTION, 1, trial=3)
    runs = measurer.measure_workloads(*promoted)
    assert runs is not None
    assert len(runs) == 1
    assert measurer.measure_workloads(*promoted, stored=runs) == runs
    assert len(runner.requests) == 1


class Copies:
    """Golden databases, as far as a measurer can tell."""

    def __init__(self) -> None:
        self.cancels: list[threading.Event | None] = []
        self.asked: list[int | None] = []

    def prepare(self, request: RunRequest, cancel: threading.Event | None) -> RunRequest:
        self.cancels.append(cancel)
        self.asked.append(request.load_seed)
        return replace(request, load_seed=42)


def test_every_run_starts_from_a_copy_where_there_are_databases(
    folder: StudyFolder, observer: Recorder
) -> None:
    runner, copies = FakeRunner(), Copies()
    measurer = measurer_of(folder, runner, observer, runner, databases=copies.prepare)
    measurer.measure_pair(FIRST, SECOND, 7, PairMethod.WHOLE)
    measurer.measure(arm(BASELINE), 3, Slot(Role.BASELINE, 0))
    assert [request.load_seed for request in runner.requests] == [42, 42, 42]
    assert [request.seed for request in runner.requests] == [7, 7, 3]
    assert all(cancel is not None for cancel in copies.cancels)


def test_a_tree_serves_several_pairs_only_where_both_sides_share_it(
    folder: StudyFolder, observer: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for one, first, seeds in ((True, 0, 3), (False, 7, 7)):
        monkeypatch.setattr(measurer_module, "same_database", lambda *_, same=one: same)
        runner, copies = FakeRunner(), Copies()
        measurer = measurer_of(folder, runner, observer, runner, databases=copies.prepare)
        for pair in range(first, first + 7):
            arms = (
                (arm(BASELINE), Slot(Role.PROOF_BASELINE, pair, pair=pair)),
                (arm(CANDIDATE), Slot(Role.PROOF_CANDIDATE, pair, pair=pair)),
            )
            measurer.measure_pair(*arms, 7, PairMethod.WHOLE)
        assert copies.asked[::2] == copies.asked[1::2]
        assert len(set(copies.asked)) == seeds
        assert None not in copies.asked


def test_a_trial_that_runs_again_does_so_on_another_tree(
    folder: StudyFolder, observer: Recorder
) -> None:
    """On the tree of its first run it would have the same luck again."""
    runner, copies = FakeRunner(), Copies()
    measurer = measurer_of(folder, runner, observer, runner, databases=copies.prepare)
    for repeat in range(3):
        measurer.measure(arm(CANDIDATE), 3, Slot(Role.TRIAL, 0, trial=0, repeat=repeat))
    first, *again = copies.asked
    assert first is None
    sides = [Slot(Role.PROOF_BASELINE, pair, pair=pair) for pair in range(9)]
    alone, shared = ([load_seed_of(side, 7, shared=one) for side in sides] for one in (False, True))
    assert len({*alone, *shared}) == 12
    assert len({*again, *alone}) == 11


def test_what_is_wrong_with_every_database_of_a_search_is_said_once(tmp_path: Path) -> None:
    recorder = Recorder()
    cache = DatabaseCache(tmp_path, FakeRunner(), 1024, observer=recorder)
    for size in ("1.38MiB", "2.45MiB"):
        cache.warn_once(f"the loaded database was not kept: {size} do not fit into the 1KiB")
    cache.warn_once("")
    cache.warn_once("loading the database ended crashed: by SIGSEGV")
    told = [text for (text,) in recorder.of("warning")]
    assert told == [
        "the loaded database was not kept: 1.38MiB do not fit into the 1KiB",
        "loading the database ended crashed: by SIGSEGV",
    ]
