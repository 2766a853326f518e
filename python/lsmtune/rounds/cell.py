"""A Cell, one thing that is measured beside others, and what one run of it observed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lsmtune.records.config import Config
from lsmtune.records.engine import EngineIdentity
from lsmtune.records.measurement import Measurement
from lsmtune.records.workload import Workload


@dataclass(frozen=True)
class Cell:
    """One configuration under one workload; `name` is its own among the cells of a plan."""

    name: str
    engine: EngineIdentity
    config: Config
    workload: Workload


@dataclass(frozen=True)
class CellRun:
    """What a run of the cell named `cell` observed in `round`, from 0.

    `seed` is that of all runs of the round; `wall_s` all the time that the run cost, the making and
    removing of its database included.
    """

    cell: str
    round: int
    seed: int
    measurement: Measurement
    wall_s: float = 0.0


def check_names(cells: Sequence[Cell]) -> None:
    """Raises ValueError when there are no cells, or two of one name."""
    names = [cell.name for cell in cells]
    if not names:
        raise ValueError("there are no cells to measure")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"two cells are named {twice[0]}")


def of_cell(runs: Iterable[CellRun], name: str) -> list[CellRun]:
    """The runs of one cell, by round."""
    return sorted((run for run in runs if run.cell == name), key=lambda run: run.round)
