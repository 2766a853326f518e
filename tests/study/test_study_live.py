"""What a running study says to other programs, and what they may ask of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from fake_runner import MIB, FakeRunner
from fleet_parts import LocalFleet, LocalHost, fleet_of, local_host, tuned_on
from study_parts import Recorder, make_spec, stored, tuned

from lsmtune.driver.messages import Message
from lsmtune.errors import InputError
from lsmtune.experiment.schedule import Arm, Slot
from lsmtune.experiment.store import Role
from lsmtune.fleet.host import Answer, Work
from lsmtune.model.measurement import Measurement
from lsmtune.model.request import RunRequest
from lsmtune.model.workload import Workload
from lsmtune.study.build import parse_spec
from lsmtune.study.live import (
    REQUESTS_FILE,
    LiveRun,
    Requests,
    State,
    ask,
    begin_live,
    read_live,
)
from lsmtune.study.spec import Budget
from lsmtune.study.trials import TrialEnd
from patience import wait_until

HOUR = "{trials: 8, time: 1h}"


@contextmanager
def going_on(folder: Path, meanwhile: Callable[[], None]) -> Iterator[None]:
    """Once the study is paused, does `meanwhile`, and lets it go on."""

    def is_paused() -> bool:
        live = read_live(folder)
        return live is not None and live.state is State.PAUSED

    def go_on() -> None:
        wait_until(is_paused)
        meanwhile()
        ask(folder, lambda requests: replace(requests, pause=False))

    waiting = threading.Thread(target=go_on, daemon=True)
    waiting.start()
    yield
    waiting.join()


class Asking(Recorder):
    """Asks for something when trial `at` ended."""

    def __init__(self, folder: Path, at: int, requests: Requests) -> None:
        super().__init__()
        self._folder, self._at, self._requests = folder, at, requests

    def trial_finished(self, number: int, end: TrialEnd, *, best: bool) -> None:
        super().trial_finished(number, end, best=best)
        if number == self._at:
            ask(self._folder, lambda _: self._requests)


def configurations(folder: Path) -> list[dict[str, object]]:
    return [dict(row.config.options) for row in stored(folder) if row.role is Role.TRIAL]


def test_a_configuration_by_hand_is_the_next_trial(tmp_path: Path) -> None:
    folder, size = tmp_path / "s", {"write_buffer_size": 13 * MIB}
    observer = Asking(folder, 2, Requests(add=(size,)))
    result = tuned(make_spec(tmp_path), folder, FakeRunner(), observer)
    ran = configurations(folder)
    assert len(ran) == result.trials == 8
    # What is not set is as in the baseline.
    assert ran[3] == {**size, "level0_file_num_compaction_trigger": 4}
    assert ran.count(ran[3]) == 1


def test_what_lies_outside_the_space_is_told_and_not_tried(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    observer = Asking(folder, 2, Requests(add=({"write_buffer_size": MIB},)))
    tuned(make_spec(tmp_path), folder, FakeRunner(), observer)
    told = "write_buffer_size=1048576 is outside the space and is not tried"
    assert ("warning", told) in observer.told
    live = read_live(folder)
    assert live is not None
    assert live.notes.count(told) == 1


def test_what_is_no_parameter_of_the_space_is_told_and_not_left_out_of_a_trial(
    tmp_path: Path,
) -> None:
    """The rest was tried in its place, or the baseline once more, without a word."""
    folder = tmp_path / "s"
    asked = {"write_buffer_size": 13 * MIB, "max_open_files": 500}
    observer = Asking(folder, 2, Requests(add=(asked,)))
    tuned(make_spec(tmp_path), folder, FakeRunner(), observer)
    told = "is outside the space, which has no active parameter max_open_files, and is not tried"
    assert [line for line in observer.warnings if line.endswith(told)] == [
        f"write_buffer_size=13631488, max_open_files=500 {told}"
    ]
    plain = tmp_path / "plain"
    tuned(make_spec(tmp_path), plain, FakeRunner())
    assert configurations(folder) == configurations(plain)


def test_more_trials_than_the_study_file_says(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    result = tuned(
        make_spec(tmp_path), folder, FakeRunner(), Asking(folder, 2, Requests(trials=11))
    )
    assert result.trials == 11


def test_less_time_that_was_asked_for_is_not_the_time_of_the_study_file(tmp_path: Path) -> None:
    """The next session had its hour, and said that it was used up after half a minute."""
    folder, hour = tmp_path / "s", make_spec(tmp_path, budget="{trials: 40, time: 1h}")
    short = tuned(hour, folder, FakeRunner(), Asking(folder, 2, Requests(time_s=30.0)))
    assert 3 <= short.trials < 40
    ended = Recorder()
    tuned(replace(hour, budget=replace(hour.budget, time_s=30.0)), folder, FakeRunner(), ended)
    used_up = "the time of the search was used up in an earlier session"
    assert ("search_finished", used_up) in ended.told
    assert tuned(hour, folder, FakeRunner()).trials == 40


def test_stopping_from_outside_is_stopping_in_order(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    observer = Asking(folder, 2, Requests(stop=True))
    assert tuned(make_spec(tmp_path), folder, FakeRunner(), observer).interrupted
    assert len(configurations(folder)) == 3
    live = read_live(folder)
    assert live is not None
    assert (live.state, live.run) == (State.ENDED, None)
    # What was asked of an earlier session holds no longer.
    assert not tuned(make_spec(tmp_path), folder, FakeRunner()).interrupted


def test_a_paused_study_waits_until_it_may_go_on_and_is_not_charged_for_it(tmp_path: Path) -> None:
    """A pause of an hour was the next run's time, and ended a search of an hour."""
    folder, runner = tmp_path / "s", FakeRunner()

    def an_hour_passes() -> None:
        runner.now_s += 3600.0

    spec, observer = make_spec(tmp_path, budget=HOUR), Asking(folder, 2, Requests(pause=True))
    with going_on(folder, an_hour_passes):
        result = tuned(spec, folder, runner, observer)
    assert result.trials == 8
    assert max(row.wall_s for row in stored(folder)) < 60.0
    assert result.spent_s < 60.0
    live = read_live(folder)
    assert live is not None
    assert live.spent_s == pytest.approx(result.spent_s)


def test_a_fleet_is_not_charged_for_a_pause_either(tmp_path: Path) -> None:
    """Its time is that of the wall, whatever its hosts do."""
    folder, slept_s = tmp_path / "s", [0.0]

    def an_hour_passes() -> None:
        slept_s[0] += 3600.0

    def clock() -> float:
        return time.monotonic() + slept_s[0]

    spec, observer = make_spec(tmp_path, budget=HOUR), Asking(folder, 2, Requests(pause=True))
    with going_on(folder, an_hour_passes):
        result, _ = tuned_on(spec, folder, fleet_of(tmp_path, 1), observer, clock=clock)
    assert slept_s == [3600.0]
    assert result.trials == 8
    live = read_live(folder)
    assert live is not None
    assert live.spent_s is not None
    assert live.spent_s < 3600.0


class Counting(LocalHost):
    """Knows what it was asked to do."""

    def __init__(self, host: LocalHost) -> None:
        super().__init__(host.name, host._worker)
        self.asked: list[Future[Answer]] = []

    def submit(self, token: int, work: Work) -> Future[Answer]:
        self.asked.append(super().submit(token, work))
        return self.asked[-1]


def test_a_pause_of_a_fleet_begins_when_no_host_measures(tmp_path: Path) -> None:
    """The runs under way were charged for it, and cut off where it was longer than the search."""
    folder, under_way = tmp_path / "s", list[bool]()
    slow = Counting(local_host(tmp_path, "b", run_s=0.2))
    fleet = LocalFleet([local_host(tmp_path, "a", run_s=0.02), slow])

    def look() -> None:
        under_way.append(any(not future.done() for future in slow.asked))

    spec, observer = make_spec(tmp_path), Asking(folder, 2, Requests(pause=True))
    with going_on(folder, look):
        result, _ = tuned_on(spec, folder, fleet, observer)
    assert under_way == [False]
    assert result.trials == 8


def test_what_is_spent_and_what_runs_is_told_while_the_study_runs(tmp_path: Path) -> None:
    """The page added up the rows that it had read, which lack loads and lost runs, and are old."""
    folder, told, roles = tmp_path / "s", [], []

    class Looking(Recorder):
        def run_started(self, place: Slot, arm: Arm, workload: Workload) -> None:
            live = read_live(folder)
            told.append(None if live is None else live.spent_s)
            roles.append(None if live is None or live.run is None else live.run.role)
            super().run_started(place, arm, workload)

    tuned(make_spec(tmp_path), folder, FakeRunner(), Looking())
    walls_s = [row.wall_s for row in stored(folder)]
    assert told[1:7] == pytest.approx([sum(walls_s[:runs]) for runs in range(1, 7)])
    # The file is written after the observer of the user was told.
    assert roles[0] is None
    live = read_live(folder)
    assert live is not None
    assert live.stage == "proof"
    assert live.trials == 8


def test_requests_that_cannot_be_read_are_told_once(tmp_path: Path) -> None:
    folder = tmp_path / "s"

    class Damaging(Recorder):
        def trial_finished(self, number: int, end: TrialEnd, *, best: bool) -> None:
            (folder / REQUESTS_FILE).write_text('{"stop": "perhaps"}')
            super().trial_finished(number, end, best=best)

    result = tuned(make_spec(tmp_path), folder, FakeRunner(), Damaging())
    assert result.trials == 8
    live = read_live(folder)
    assert live is not None
    assert sum("requests.json: cannot be read" in note for note in live.notes) == 1
    with pytest.raises(InputError, match=r"requests\.json: cannot be read"):
        ask(folder, lambda requests: requests)


def test_what_was_asked_holds_while_the_file_cannot_be_read(tmp_path: Path) -> None:
    """A pause ended, and what had been tried was tried again once the file was whole."""
    live = begin_live(tmp_path, time.monotonic, threading.Event(), Budget(trials=5))

    def new() -> list[dict[str, object]]:
        return [dict(options) for options in live.attend(lambda _: None).add]

    size = {"write_buffer_size": 13 * MIB}
    ask(tmp_path, lambda _: Requests(add=(size,), trials=7))
    assert new() == [size]
    whole = (tmp_path / REQUESTS_FILE).read_text()
    (tmp_path / REQUESTS_FILE).write_text(whole[:-5])
    assert new() == []
    (tmp_path / REQUESTS_FILE).write_text(whole)
    assert new() == []
    live.stop.set()  # so that the pause ends
    ask(tmp_path, lambda asked: replace(asked, pause=True))
    assert live.attend(lambda _: None).pause
    (tmp_path / REQUESTS_FILE).write_text(whole[:-5])
    assert live.attend(lambda _: None).pause


class OutOfTime(FakeRunner):
    """A run of `role` under the second workload takes an hour, and somebody gives the study a day.

    It is the first one, but of a trial's first round.
    """

    def __init__(self, folder: Path, role: Role) -> None:
        super().__init__(noise=0.08)
        self._folder, self._role = folder, role
        self.cut: LiveRun | None = None

    def run(
        self,
        request: RunRequest,
        on_message: Callable[[Message], None] | None = None,
        cancel: threading.Event | None = None,
    ) -> Measurement:
        live = read_live(self._folder)
        now = None if live is None else live.run
        if now is not None and (now.role, now.workload) == (self._role, "readrandom"):
            again = now.trial is None or now.repeat > 0
            if again and self.cut is None:
                self.cut, self.now_s = now, self.now_s + 3600.0
                ask(self._folder, lambda asked: replace(asked, time_s=86_400.0))
        return super().run(request, on_message, cancel)


@pytest.mark.parametrize("role", [Role.TRIAL, Role.ANCHOR])
def test_a_round_that_the_time_cuts_off_begins_anew_when_there_is_more(
    tmp_path: Path, role: Role
) -> None:
    """Its run under the first workload was made again, and could not be stored a second time."""
    noise = "{calibration: 0, anchors: 5, repeats: 3}"
    text = make_spec(tmp_path, budget="{trials: 25, time: 1h}", noise=noise).text
    two = "workloads: [{name: fillrandom, num: 1000}, {name: readrandom, num: 1000}]\n"
    text = text.replace("workload:\n  name: fillrandom\n  num: 1000\n", two)
    spec = parse_spec(text, tmp_path / "small.yaml")
    runner = OutOfTime(tmp_path / "cut", role)
    result = tuned(spec, tmp_path / "cut", runner)
    cut, rows = runner.cut, [row for row in stored(tmp_path / "cut") if row.role is role]
    assert cut is not None
    assert result.counts == {"ok": 25}
    for repeat, workloads in ((cut.repeat, [0]), (cut.repeat + 1, [0, 1])):
        place = cut.trial, repeat
        assert [row.workload for row in rows if (row.trial, row.repeat) == place] == workloads
