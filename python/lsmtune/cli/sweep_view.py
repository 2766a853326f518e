"""Where a sweep is, for displays: fed with the callbacks of its rounds and of its databases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import RenderableType

from lsmtune.cli.output import failure
from lsmtune.cli.tune_progress import RunProgress
from lsmtune.driver.messages import Message
from lsmtune.experiment.observer import Observer
from lsmtune.experiment.schedule import Arm, Cell, Slot
from lsmtune.experiment.store import StoredMeasurement
from lsmtune.experiment.sweep import Sweep
from lsmtune.experiment.sweep_grid import GridCell, is_rough, left_s, written_bytes
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.workload import PhaseKind, Workload
from lsmtune.report.document import Paragraph, Table, numbers, words
from lsmtune.report.terminal import blocks_view
from lsmtune.units import format_bytes, format_duration


class SweepProgress(Observer):
    """Keeps what a display shows; `say` gets a line for each run that ended, `warn` what is odd.

    `before` are the runs of earlier sessions, from which the time left is told too.
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
        self._now = f"round {slot.round + 1}: {arm.label}"
        self.run.restart(workload)

    def run_message(self, message: Message) -> None:
        """The driver said something."""
        self.run.message(message)

    def run_finished(self, run: StoredMeasurement) -> None:
        """A run is stored. Raises InputError for one that the driver refused, as it would again."""
        self._done += 1
        done, of = self._done, self._of
        self._runs.append(run)
        if run.measurement.outcome is Outcome.INVALID:
            raise failure(run.measurement, "sweep")
        told, left = _told(run.measurement), "" if done == of else self.left
        took = format_duration(round(run.wall_s, 1))
        self._say(f"round {run.round + 1}, run {done} of {of}: {run.arm}: {told} ({took}){left}")

    def warning(self, text: str) -> None:
        """What is out of the ordinary with a loaded database."""
        self._warn(f"warning: {text}")

    @property
    def title(self) -> str:
        """What runs now, how far the sweep is, and how long it will go on."""
        return f"run {min(self._done + 1, self._of)} of {self._of}{self.left}; {self._now}"

    @property
    def left(self) -> str:
        """`; about 12m left`, empty before a run has ended."""
        about = _time_left(self._names, self._rounds, self._runs)
        return f"; {about}" if about else ""


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


# --- The plan of `sweep --plan`


def plan_document(
    sweep: Sweep, cells: Sequence[GridCell], runs: Sequence[StoredMeasurement], folder: Path
) -> dict[str, object]:
    """What `sweep --plan --json` prints; `left_s` is None before a run has ended."""
    names = [cell.cell.name for cell in cells]
    return {
        "name": sweep.name,
        "folder": str(folder),
        "cells": [
            {
                "cell": each.cell.name,
                "workload": each.workload,
                "num": each.cell.workload.num,
                "key_bytes": each.cell.workload.key_bytes,
                "value_bytes": each.cell.workload.value_bytes,
                "options": dict(each.cell.config.options),
            }
            for each in cells
        ],
        "rounds": sweep.repeats,
        "runs": len(cells) * sweep.repeats,
        "runs_stored": len(runs),
        "user_bytes_per_round": written_bytes(cells),
        "left_s": left_s(names, sweep.repeats, runs),
    }


def plan_view(
    sweep: Sweep, cells: Sequence[GridCell], runs: Sequence[StoredMeasurement], folder: Path
) -> RenderableType:
    """The cells, and how long they will take as far as that is known."""
    stored = Counter(run.arm for run in runs)
    rows = [
        (
            *(each.workload, *each.values, f"{each.cell.workload.num:,}"),
            format_bytes(written_bytes([each])),
            f"{stored[each.cell.name]} of {sweep.repeats}",
        )
        for each in cells
    ]
    axes = (axis.name for axis in sweep.axes)
    columns = (*words("workload"), *numbers(*axes, "keys", "user data", "runs"))
    size = f"{len(cells)} cells, {sweep.repeats} rounds, {len(cells) * sweep.repeats} runs"
    data = f"{format_bytes(written_bytes(cells))} of user data per round; kept in {folder}"
    unknown = "how long it takes is known after the first round: ask again with --plan then"
    left = _time_left([each.cell.name for each in cells], sweep.repeats, runs)
    return blocks_view(
        [Table(columns, rows), Paragraph(f"{size}; {data}"), Paragraph(left or unknown)]
    )


def _time_left(names: Sequence[str], rounds: int, runs: Sequence[StoredMeasurement]) -> str:
    """`about 12m left`; empty before that can be told."""
    seconds = left_s(names, rounds, runs)
    about = "very roughly" if is_rough(names, runs) else "about"
    return "" if seconds is None else f"{about} {format_duration(round(seconds))} left"
