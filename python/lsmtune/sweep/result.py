"""What a sweep found: frozen tables, which reports render."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lsmtune.records.config import OptionValue
from lsmtune.records.engine import EngineIdentity
from lsmtune.stats.mean import MeanInterval
from lsmtune.stats.paired import RatioInterval

# What decides which cell is the best one, and what the plots show: the first of these that the
# cells have. Programs of others' do not tell what is sustained.
RATES = ("sustained_throughput_ops_s", "throughput_ops_s")


@dataclass(frozen=True)
class AxisRow:
    """An axis as reports show it."""

    kind: str
    name: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class CellSummary:
    """One cell in one table.

    `metrics` has mean, median and interval over the runs that ended `ok`, by name, without those
    that no such run observed. `ratios` compares with the table's first cell, paired by round;
    without those that cannot be had. `outcomes` counts how the runs ended.
    """

    cell: str
    point: tuple[int, ...]
    values: tuple[str, ...]
    options: Mapping[str, OptionValue]
    key_bytes: int
    value_bytes: int
    num: int
    outcomes: Mapping[str, int]
    metrics: Mapping[str, MeanInterval]
    ratios: Mapping[str, RatioInterval]

    @property
    def runs_ok(self) -> int:
        """How many runs ended well."""
        return self.outcomes.get("ok", 0)

    def value(self, metric: str) -> float | None:
        """The mean of `metric`, None where no run observed it."""
        found = self.metrics.get(metric)
        return None if found is None else found.mean


@dataclass(frozen=True)
class Table:
    """The cells of one measure phase of one workload, in the order of the grid.

    `metric` is the one of RATES that is compared, `best` the index of the cell with the highest;
    `notes` say what else there is to see.
    """

    workload: str
    phase: str
    metric: str
    cells: tuple[CellSummary, ...]
    best: int | None
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The workload, with its phase where that has another name."""
        same = self.phase == self.workload
        return self.workload if same else f"{self.workload}: {self.phase}"


@dataclass(frozen=True)
class Failure:
    """A run that did not end `ok`."""

    cell: str
    round: int
    outcome: str
    why: str


@dataclass(frozen=True)
class RunRow:
    """What one run observed in one measure phase; for those who want to compute themselves."""

    workload: str
    phase: str
    cell: str
    values: tuple[str, ...]
    round: int
    seed: int
    outcome: str
    wall_s: float
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class SweepResult:
    """Everything that a sweep found so far; `runs_wanted` is more than `runs` while it goes on."""

    name: str
    engine: EngineIdentity
    axes: tuple[AxisRow, ...]
    repeats: int
    seed: int
    runs: int
    runs_wanted: int
    runs_s: float
    confidence: float
    tables: tuple[Table, ...]
    failures: tuple[Failure, ...] = ()
    warnings: tuple[str, ...] = ()
    rows: tuple[RunRow, ...] = field(default=(), repr=False)

    @property
    def varies_size(self) -> bool:
        """Whether records are of more than one size, so that MB/s and ops/s tell two tales."""
        cells = [cell for table in self.tables for cell in table.cells]
        return len({(cell.key_bytes, cell.value_bytes) for cell in cells}) > 1
