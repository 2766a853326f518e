"""Where a sweep or a contest is, for displays: fed with the callbacks of its rounds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from lsmtune.cli.output import failure
from lsmtune.cli.tune_progress import RunProgress
from lsmtune.driver.messages import Message
from lsmtune.experiment.files import MEASUREMENTS_DB
from lsmtune.experiment.observer import Observer
from lsmtune.experiment.rounds import read_rounds
from lsmtune.experiment.schedule import Arm, Cell, Slot
from lsmtune.experiment.store import StoredMeasurement, refuse_older
from lsmtune.experiment.sweep_grid import is_rough, left_s
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.workload import Workload
from lsmtune.units import format_duration


class RoundsProgress(Observer):
    """Keeps what a display shows.

    `say` gets a line for each run that ended well, `warn` one for each that did not, and what is
    odd. `before` are the runs of earlier sessions, from which the time left is told too.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        rounds: int,
        before: Sequence[StoredMeasurement],
        say: Callable[[str], None],
        warn: Callable[[str], None],
    ) -> None:
        self.run = RunProgress(cells[0].workload)
        self._names = [cell.name for cell in cells]
        self._rounds = rounds
        self._runs = list(before)
        self._say = say
        self._warn = warn
        self._now = ""
        self._done, self._of = 0, 0

    def rounds_started(self, done: int, of: int) -> None:
        """Counts the runs of earlier sessions."""
        self._done, self._of = done, of
        if done:
            self._say(f"continuing: {done} of {of} runs are stored")

    def run_started(self, slot: Slot, arm: Arm, workload: Workload) -> None:
        """A run begins."""
        self._now = f"round {slot.round + 1} of {self._rounds}: {arm.label}"
        self.run.restart(workload)

    def run_message(self, message: Message) -> None:
        """The driver said something."""
        self.run.message(message)

    def run_finished(self, run: StoredMeasurement) -> None:
        """A run is stored."""
        self._done += 1
        done, of = self._done, self._of
        self._runs.append(run)
        told, left = _told(run.measurement), "" if done == of else self.left
        took = format_duration(round(run.wall_s, 1))
        say = self._say if run.measurement.outcome is Outcome.OK else self._warn
        say(f"round {run.round + 1}, run {done} of {of}: {run.arm}: {told} ({took}){left}")

    def warning(self, text: str) -> None:
        """Something the user should know."""
        self._warn(f"warning: {text}")

    @property
    def title(self) -> str:
        """What runs now, how far it is, and how long it will go on."""
        return f"run {min(self._done + 1, self._of)} of {self._of}{self.left}; {self._now}"

    @property
    def left(self) -> str:
        """`; about 12m left`, empty before a run has ended."""
        about = time_left(self._names, self._rounds, self._runs)
        return f"; {about}" if about else ""


class SweepProgress(RoundsProgress):
    """Stops at an option that the engine refuses: each cell with it would be refused again."""

    def run_finished(self, run: StoredMeasurement) -> None:
        """As in the base class. Raises InputError for a run that the driver refused."""
        if run.measurement.outcome is Outcome.INVALID:
            raise failure(run.measurement, "sweep")
        super().run_finished(run)


def no_line(_text: str) -> None:
    """A line per run has no place beside a live display."""


def _told(measurement: Measurement) -> str:
    """How a run ended: its rates, by phase where there are several."""
    if measurement.outcome is not Outcome.OK:
        why = f": {measurement.error.message}" if measurement.error else ""
        return f"{measurement.outcome.value}{why}"
    rates = [
        (phase.name, phase.sustained_throughput_ops_s or phase.throughput_ops_s)
        for phase in measurement.measured_phases
    ]
    if len(rates) == 1:
        return f"{rates[0][1]:,.0f} ops/s"
    return ", ".join(f"{name} {rate:,.0f} ops/s" for name, rate in rates)


def time_left(names: Sequence[str], rounds: int, runs: Sequence[StoredMeasurement]) -> str:
    """`about 12m left`; empty before that can be told."""
    seconds = left_s(names, rounds, runs)
    about = "very roughly" if is_rough(names, runs) else "about"
    return "" if seconds is None else f"{about} {format_duration(round(seconds))} left"


def stored_runs(folder: Path, names: Collection[str]) -> tuple[StoredMeasurement, ...]:
    """The runs of the arms `names` that `folder` has, if any.

    Whether they are comparable with what is wanted now is only seen when it is performed.
    """
    refuse_older(folder / MEASUREMENTS_DB)
    stored = read_rounds(folder) if (folder / MEASUREMENTS_DB).is_file() else ()
    return tuple(run for run in stored if run.arm in names)
