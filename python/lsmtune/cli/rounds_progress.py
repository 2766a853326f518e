"""How far a bench, a sweep or a contest is: for displays while it runs, and a sweep's plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

from lsmtune.cli.live import live_console
from lsmtune.cli.output import failure
from lsmtune.cli.tune_progress import RunProgress
from lsmtune.experiment.files import MEASUREMENTS_DB
from lsmtune.experiment.rounds import read_rounds
from lsmtune.experiment.schedule import Arm, Cell, Slot
from lsmtune.experiment.store import StoredMeasurement, is_empty
from lsmtune.experiment.sweep import Sweep
from lsmtune.experiment.sweep_grid import GridCell, is_rough, left_s, written_bytes
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.workload import Workload
from lsmtune.programs.output import NATIVE
from lsmtune.report.document import Block, Paragraph, Table, numbers, words
from lsmtune.units import format_bytes, format_duration


class BenchProgress(RunProgress):
    """Titles each run, as in `rocksdb fillrandom by ycsb-cpp, run 2 of 5`.

    The runner is named where there are `several`, and where it is not lsmtune's driver.
    """

    def __init__(self, workload: Workload, repeats: int, *, several: bool) -> None:
        super().__init__(workload)
        self._repeats = repeats
        self._several = several

    def run_started(self, slot: Slot, arm: Arm, workload: Workload) -> None:
        """A run begins."""
        super().run_started(slot, arm, workload)
        by = f" by {arm.label}" if arm.label != NATIVE or self._several else ""
        number = f"run {slot.repeat + 1} of {self._repeats}"
        self.title = f"{arm.engine.name} {workload.name}{by}, {number}"


class RoundsProgress(RunProgress):
    """Keeps what a display shows, and prints a line for each run that did not end well.

    Where there is no terminal, also for each run that did, unless it is `quiet`. `before` are the
    runs of earlier sessions, by which the time left is estimated, too.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        rounds: int,
        before: Sequence[StoredMeasurement],
        *,
        quiet: bool,
    ) -> None:
        super().__init__(cells[0].workload)
        self._names = [cell.name for cell in cells]
        self._rounds = rounds
        self._runs = list(before)
        self._says_runs = not quiet and live_console() is None
        self._done, self._of = 0, 0

    def rounds_started(self, done: int, of: int) -> None:
        """Counts the runs of earlier sessions."""
        self._done, self._of = done, of
        if done and self._says_runs:
            self.say(f"continuing: {done} of {of} runs are stored")

    def run_started(self, slot: Slot, arm: Arm, workload: Workload) -> None:
        """A run begins."""
        super().run_started(slot, arm, workload)
        number = f"run {self._done + 1} of {self._of}{self._left()}"
        self.title = f"{number}; round {slot.round + 1} of {self._rounds}: {arm.label}"

    def run_finished(self, run: StoredMeasurement) -> None:
        """A run is stored."""
        self._done += 1
        done, of = self._done, self._of
        self._runs.append(run)
        ended, took = _ended(run.measurement), format_duration(round(run.wall_s, 1))
        left = "" if done == of else self._left()
        if self._says_runs or run.measurement.outcome is not Outcome.OK:
            number = f"round {run.round + 1}, run {done} of {of}"
            self.say(f"{number}: {run.arm}: {ended} ({took}){left}")

    def warning(self, text: str) -> None:
        """Something the user should know."""
        self.say(f"warning: {text}")

    def _left(self) -> str:
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


def _ended(measurement: Measurement) -> str:
    """How a run ended: its rates, by phase where there are several."""
    if measurement.outcome is not Outcome.OK:
        return measurement.ended
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
    # It is empty where the first command ended before the tables were there: this one makes them.
    stored = () if is_empty(folder / MEASUREMENTS_DB) else read_rounds(folder)
    return tuple(run for run in stored if run.arm in names)


# --- What `sweep --plan` says


def plan_document(
    sweep: Sweep, cells: Sequence[GridCell], runs: Sequence[StoredMeasurement], folder: Path
) -> dict[str, object]:
    """What `sweep --plan --json` prints; `left_s` is None before a run has ended."""
    names = [cell.name for cell in cells]
    return {
        "name": sweep.name,
        "folder": str(folder),
        "cells": [
            {
                "cell": each.name,
                "workload": each.workload_title,
                "num": each.workload.num,
                "key_bytes": each.workload.key_bytes,
                "value_bytes": each.workload.value_bytes,
                "options": dict(each.config.options),
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
) -> list[Block]:
    """The cells, and how long they will take as far as that is known."""
    stored = Counter(run.arm for run in runs)
    rows = [
        (
            *(each.workload_title, *each.values, f"{each.workload.num:,}"),
            format_bytes(written_bytes([each])),
            f"{stored[each.name]} of {sweep.repeats}",
        )
        for each in cells
    ]
    axes = (axis.name for axis in sweep.axes)
    columns = (*words("workload"), *numbers(*axes, "keys", "user data", "runs"))
    size = f"{len(cells)} cells, {sweep.repeats} rounds, {len(cells) * sweep.repeats} runs"
    data = f"{format_bytes(written_bytes(cells))} of user data per round; kept in {folder}"
    unknown = "how long it takes is known after the first round: ask again with --plan then"
    left = time_left([each.name for each in cells], sweep.repeats, runs)
    return [Table(columns, rows), Paragraph(f"{size}; {data}"), Paragraph(left or unknown)]
