"""Where a sweep is, for displays: fed with the callbacks of its rounds and of its databases."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lsmtune.cli.output import failure
from lsmtune.cli.run_progress import RunProgress
from lsmtune.databases import CacheObserver, Preparation
from lsmtune.records.measurement import Measurement, Outcome
from lsmtune.records.workload import PhaseKind
from lsmtune.rounds import Cell, CellRun, RoundsObserver
from lsmtune.runners.messages import Message
from lsmtune.sweep.estimate import is_rough, left_s
from lsmtune.units import format_duration


class SweepProgress(RoundsObserver):
    """Keeps what a display shows; `say` gets a line for each run that ended.

    `before` are the runs of earlier sessions, from which the time left is told too.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        rounds: int,
        before: Sequence[CellRun],
        say: Callable[[str], None],
    ) -> None:
        self.run = RunProgress(cells[0].workload)
        self._names = [cell.name for cell in cells]
        self._rounds = rounds
        self._runs = list(before)
        self._say = say
        self._now = ""
        self._done, self._of = 0, 0

    def rounds_started(self, done: int, of: int) -> None:
        """Counts the runs of earlier sessions."""
        self._done, self._of = done, of
        if done:
            self._say(f"continuing: {done} of {of} runs are stored")

    def run_started(self, cell: Cell, number: int) -> None:
        """A run begins."""
        self._now = f"round {number + 1}: {cell.name}"
        self.run.restart(cell.workload)

    def run_message(self, message: Message) -> None:
        """The driver said something."""
        self.run.message(message)

    def run_finished(self, run: CellRun, done: int, of: int) -> None:
        """A run is stored. Raises InputError for one that the driver refused, as it would again."""
        self._done, self._of = done, of
        self._runs.append(run)
        if run.measurement.outcome is Outcome.INVALID:
            raise failure(run.measurement, "sweep")
        told = _told(run.measurement)
        took = format_duration(round(run.wall_s, 1))
        self._say(
            f"round {run.round + 1}, run {done} of {of}: {run.cell}: {told} ({took})"
            + ("" if done == of else self.left)
        )

    @property
    def title(self) -> str:
        """What runs now, how far the sweep is, and how long it will go on."""
        return f"run {min(self._done + 1, self._of)} of {self._of}{self.left}; {self._now}"

    @property
    def left(self) -> str:
        """`; about 12m left`, empty before a run has ended."""
        seconds = left_s(self._names, self._rounds, self._runs)
        if seconds is None:
            return ""
        about = "very roughly" if is_rough(self._names, self._runs) else "about"
        return f"; {about} {format_duration(round(seconds))} left"


class LoadTelling(CacheObserver):
    """Shows a load as the first phases of the run that waits for it; says once what is odd."""

    def __init__(self, progress: SweepProgress, say: Callable[[str], None]) -> None:
        self._progress = progress
        self._say = say
        self._said: set[str] = set()

    def load_message(self, message: Message) -> None:
        """Passed on."""
        self._progress.run_message(message)

    def run_prepared(self, preparation: Preparation) -> None:
        """Said the first time."""
        what = preparation.note.partition(":")[0]
        if what and what not in self._said:
            self._said.add(what)
            self._say(f"warning: {preparation.note}")


def _told(measurement: Measurement) -> str:
    """How a run ended: its rates, by phase where there are several."""
    if measurement.outcome is not Outcome.OK:
        why = f": {measurement.error.message}" if measurement.error else ""
        return f"{measurement.outcome.value}{why}"
    measured = [p for p in measurement.phases if p.kind == PhaseKind.MEASURE.value]
    rates = [(p.name, p.sustained_throughput_ops_s or p.throughput_ops_s) for p in measured]
    if len(rates) == 1:
        return f"{rates[0][1]:,.0f} ops/s"
    return ", ".join(f"{name} {rate:,.0f} ops/s" for name, rate in rates)
