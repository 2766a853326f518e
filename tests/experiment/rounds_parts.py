"""Cells, an observer that remembers, and `perform` with a fake runner."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from fake_runner import ENGINE, MIB, FakeRunner

from lsmtune.driver.runner import Runner
from lsmtune.experiment.measurer import Databases
from lsmtune.experiment.observer import Observer
from lsmtune.experiment.rounds import perform
from lsmtune.experiment.schedule import Arm, Cell, Slot
from lsmtune.experiment.store import StoredMeasurement
from lsmtune.model.config import Config
from lsmtune.model.request import LIMITS_DEFAULT
from lsmtune.model.workload import Phase, PhaseKind, Workload

PHASE = Phase("fillrandom", PhaseKind.MEASURE, "fillrandom", operations_per_thread=1000)
WORKLOAD = Workload("fillrandom", (PHASE,), num=1000)


def cell(name: str, size_mib: int = 2) -> Cell:
    config = Config({"write_buffer_size": size_mib * MIB}, name)
    return Cell(ENGINE, config, name, workload=WORKLOAD)


CELLS = [cell("a", 2), cell("b", 4), cell("c", 8), cell("d", 16)]


class Recorder(Observer):
    """Remembers what it was told, and can stop once so many runs have begun."""

    def __init__(self, stop_at_run: int | None = None) -> None:
        self.cancel = threading.Event()
        self.begun: list[tuple[int, str]] = []
        self.finished: list[tuple[str, int, int]] = []
        self.started: tuple[int, int] | None = None
        self.messages: list[object] = []
        self._stop_at_run = stop_at_run

    def rounds_started(self, done: int, of: int) -> None:
        self.started = (done, of)

    def run_started(self, slot: Slot, arm: Arm, _workload: Workload) -> None:
        self.begun.append((slot.round, arm.label))
        if len(self.begun) == self._stop_at_run:
            self.cancel.set()

    def run_message(self, message: object) -> None:
        self.messages.append(message)

    def run_finished(self, run: StoredMeasurement) -> None:
        done, of = self.started or (0, 0)
        self.finished.append((run.arm, done + len(self.finished) + 1, of))


def run_rounds(
    folder: Path,
    rounds: int,
    *,
    cells: Sequence[Cell] = CELLS,
    runner: Runner | None = None,
    seed: int = 1,
    observer: Recorder | None = None,
    databases: Databases | None = None,
) -> tuple[StoredMeasurement, ...]:
    observer = observer or Recorder()
    return perform(
        cells,
        rounds,
        folder,
        runner or FakeRunner(),
        LIMITS_DEFAULT,
        seed,
        observer,
        observer.cancel,
        databases=databases,
    )
