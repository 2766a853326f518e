"""What a running study says to other programs, and what they ask of it: two files in its folder.

The tuner keeps `live.json`: the run that is on the machine, with its interval series. A live page,
or any program, leaves `requests.json`: stop, pause, try a configuration, more time or trials.
Neither file is synced to the disk, and the tuner never waits for a reader: a run of the engine does
not notice that somebody looks.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

from lsmtune.driver.messages import IntervalPassed, Message, PhaseStarted
from lsmtune.errors import InputError
from lsmtune.experiment.schedule import Arm, Slot
from lsmtune.experiment.store import StoredMeasurement
from lsmtune.machine.awake import Clock
from lsmtune.machine.host import process_began
from lsmtune.model.codec import decode, encode
from lsmtune.model.config import OptionValue
from lsmtune.model.workload import Workload
from lsmtune.study.observer import TuneObserver, TuneResult
from lsmtune.study.spec import Budget

LIVE_FILE, REQUESTS_FILE = "live.json", "requests.json"
# How often a running interval series is written, and how much of it and of what was said is kept.
_EVERY_S = 1.0
_SERIES_MAX = 240
_NOTES_MAX = 20


class State(StrEnum):
    """What the tuner does."""

    RUNNING = "running"
    PAUSED = "paused"
    ENDED = "ended"


@dataclass(frozen=True)
class LiveRun:
    """The run that is on the machine; `series` has seconds of the phase and operations per second.

    `began_s` is on the tuner's clock, as `now_s` of `Live`.
    """

    role: str
    index: int
    trial: int | None
    pair: int | None
    repeat: int
    workload: str
    options: Mapping[str, OptionValue]
    began_s: float
    phase: str = ""
    kind: str = ""
    series: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Live:
    """What `live.json` holds. `time_s` and `trials` are the budget as it is now.

    `spent_s` seconds of it were gone at `now_s`; None: not known yet. `began` is when the process
    `pid` began, as `process_began` tells: another may have its number later.
    """

    pid: int
    state: State
    now_s: float
    stage: str = "search"
    run: LiveRun | None = None
    notes: tuple[str, ...] = ()
    time_s: float | None = None
    trials: int | None = None
    spent_s: float | None = None
    began: int | None = None


@dataclass(frozen=True)
class Requests:
    """What `requests.json` holds. `add` are configurations to try, by options that are set.

    `time_s` and `trials` replace the budget; None leaves it.
    """

    stop: bool = False
    pause: bool = False
    add: tuple[Mapping[str, OptionValue], ...] = ()
    time_s: float | None = None
    trials: int | None = None


_NOTHING = Requests()


def read_live(folder: Path) -> Live | None:
    """What the tuner of `folder` said last; None where it said nothing."""
    live: Live | None = _read(folder / LIVE_FILE, Live)
    return live


def read_requests(folder: Path) -> Requests:
    """What is asked of the tuner of `folder`. Raises InputError for a file that is none of ours."""
    return _read(folder / REQUESTS_FILE, Requests) or Requests()


def ask(folder: Path, change: Callable[[Requests], Requests]) -> Requests:
    """Change what is asked of the tuner of `folder`; returns what is asked now."""
    changed = change(read_requests(folder))
    _write(folder / REQUESTS_FILE, changed)
    return changed


def _read(path: Path, kind: type[Any]) -> Any:
    try:
        return decode(kind, json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        why = f"cannot be read: {str(error).splitlines()[0]}"
        raise InputError(str(path), why=why, allowed="no such file: remove it") from None


def _write(path: Path, value: object) -> None:
    """Replace `path`, for readers at once and for the disk some time."""
    temporary = path.with_name(f"{path.name}.new")
    temporary.write_text(json.dumps(encode(value)), encoding="utf-8")
    temporary.replace(path)


class Observers(TuneObserver):
    """Tells several observers what it is told, in their order."""

    def __init__(self, *observers: TuneObserver) -> None:
        for name in dir(TuneObserver):
            if not name.startswith("_"):
                vars(self)[name] = partial(_tell, [getattr(each, name) for each in observers])


def _tell(callbacks: list[Callable[..., None]], *args: Any, **more: Any) -> None:
    for callback in callbacks:
        callback(*args, **more)


@dataclass
class LiveFile(TuneObserver):
    """Keeps `live.json` of a folder. What cannot be written is left out: a study goes on.

    `spent_s` tells how much of the time budget is gone; a session sets it.
    """

    folder: Path
    clock: Clock
    stop: threading.Event
    live: Live
    spent_s: Callable[[], float | None] = lambda: None
    _asked: Requests = _NOTHING
    _added: int = 0
    _series: list[tuple[float, float]] = field(default_factory=list)
    _written_s: float = float("-inf")

    def say(self, **changes: Any) -> None:
        """Change what the file says, and write it."""
        self.live = replace(self.live, now_s=self.clock(), spent_s=self.spent_s(), **changes)
        self._written_s = self.live.now_s
        with suppress(OSError):
            _write(self.folder / LIVE_FILE, self.live)
        if self._requests().stop:
            self.stop.set()

    def keep_up(self, **changes: Any) -> None:
        """Says `changes`, and how much time is gone, where it last said something a while ago."""
        if self.clock() >= self._written_s + _EVERY_S:
            self.say(**changes)

    @property
    def pause_asked(self) -> bool:
        """Whether `attend` would wait."""
        return self._requests().pause

    def attend(self, excuse: Callable[[float], None]) -> Requests:
        """What is asked between two trials, of `add` what is new. Waits while a pause is asked for.

        `excuse` is called with the seconds that it waited.
        """
        asked, began_s = self._requests(), self.clock()
        while asked.pause and not asked.stop and not self.stop.is_set():
            if self.live.state is State.RUNNING:
                self.say(state=State.PAUSED)
            self.stop.wait(_EVERY_S)
            asked = self._requests()
        excuse(self.clock() - began_s)
        if asked.stop:
            self.stop.set()
        new = asked.add[self._added :]
        self._added = len(asked.add)
        time_s, trials = asked.time_s or self.live.time_s, asked.trials or self.live.trials
        if (time_s, trials, State.RUNNING) != (self.live.time_s, self.live.trials, self.live.state):
            self.say(state=State.RUNNING, time_s=time_s, trials=trials)
        return replace(asked, add=new, time_s=time_s, trials=trials)

    def _requests(self) -> Requests:
        """What is asked; as long as the file cannot be read, what was asked before."""
        try:
            self._asked = read_requests(self.folder)
        except InputError as error:
            if str(error) not in self.live.notes:
                self.live = replace(self.live, notes=(*self.live.notes, str(error))[-_NOTES_MAX:])
        return self._asked

    def run_started(self, slot: Slot, arm: Arm, workload: Workload) -> None:
        """Another run is on the machine."""
        self._series.clear()
        place = (slot.role.value, slot.index, slot.trial, slot.pair, slot.repeat)
        self.say(run=LiveRun(*place, workload.name, dict(arm.config.options), self.clock()))

    def run_message(self, message: Message) -> None:
        """A phase began, or an interval passed."""
        run = self.live.run
        if run is None:
            return
        if isinstance(message, PhaseStarted):
            self._series.clear()
            self.say(run=replace(run, phase=message.name, kind=message.kind, series=()))
        elif isinstance(message, IntervalPassed):
            self._series.append((round(message.elapsed_s, 3), round(message.throughput_ops_s, 1)))
            if len(self._series) > _SERIES_MAX:
                del self._series[::2]
            self.keep_up(run=replace(run, series=tuple(self._series)))

    def run_finished(self, _run: StoredMeasurement) -> None:
        """No run is on the machine until the next begins."""
        self.say(run=None)

    def proof_started(self, pairs: int) -> None:
        """The search is over."""
        self._note(f"proof: at most {pairs} pairs", stage="proof")

    def search_finished(self, reason: str) -> None:
        """Why the search is over."""
        self._note(f"search finished: {reason}")

    def warning(self, text: str) -> None:
        """Something the user should know."""
        self._note(text)

    def finished(self, _result: TuneResult) -> None:
        """The last callback."""
        self.say(state=State.ENDED, run=None)

    def _note(self, text: str, **changes: Any) -> None:
        self.say(notes=(*self.live.notes, text)[-_NOTES_MAX:], **changes)


def begin_live(folder: Path, clock: Clock, stop: threading.Event, budget: Budget) -> LiveFile:
    """The file of a session that begins; what was asked of an earlier one holds no longer."""
    with suppress(OSError):
        (folder / REQUESTS_FILE).unlink(missing_ok=True)
    pid = os.getpid()
    live = Live(pid, State.RUNNING, clock(), began=process_began(pid))
    file = LiveFile(folder, clock, stop, live)
    file.say(time_s=budget.time_s, trials=budget.trials)
    return file
