"""What reports of a sweep say in words, and which columns its tables have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lsmtune.report import text
from lsmtune.stats.mean import MeanInterval
from lsmtune.stats.paired import RatioInterval
from lsmtune.sweep.metrics import PHASE_TOTAL_S, RATE_MB, SUSTAINED_MB
from lsmtune.sweep.result import CellSummary, SweepResult, Table

_NOT_KNOWN = "\N{EN DASH}"
# A drain of less than this share of a phase changes no digit that is shown.
_DRAIN_SHOWN = 5e-4
_RUNS_WITH_A_MEDIAN = 3

WHY_BOTH_RATES = (
    "MB/s (10^6 bytes of keys and values per second) stands beside operations per second and never "
    "alone: an operation costs much that does not depend on the size of its record (finding the "
    "key, the log's header, the call itself), so that larger records raise MB/s even where each "
    "operation becomes slower. Between cells whose records differ in size, compare operations per "
    "second to learn what an operation costs, and MB/s to learn what a byte costs."
)
SUSTAINED = (
    "Sustained rates charge the time to flush and to drain compactions; a burst ends with the last "
    "operation."
)


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, and how a cell is told."""

    label: str
    told: Callable[[CellSummary], str]


def headline(result: SweepResult) -> str:
    """What was measured, in one line."""
    engine = result.engine
    version = f" {engine.version}" if engine.version else ""
    cells = text.count(sum(len(table.cells) for table in _first_phases(result)), "cell")
    done = f"{result.runs:,} of {result.runs_wanted:,} runs"
    return f"{engine.name}{version}: {cells}, {text.count(result.repeats, 'round')}, {done}"


def _first_phases(result: SweepResult) -> list[Table]:
    """One table per workload, so that its cells are counted once."""
    return list({table.workload: table for table in reversed(result.tables)}.values())


def how_to_read(result: SweepResult) -> list[str]:
    """A paragraph for each thing that a reader must know."""
    lines = [
        "Each cell ran once per round, on a fresh database (or a fresh copy of one that was loaded "
        "before), in an order of the round's own and on the round's seed.",
        SUSTAINED,
    ]
    if result.varies_size:
        lines.append(WHY_BOTH_RATES)
    if result.repeats > 1:
        level = text.percent(result.confidence)
        lines.append(
            "Rates, latencies and times are geometric means over the rounds. Intervals are at "
            f"{level}: Student's t of the logarithms, for ratios of those of each round's ratio to "
            "the first cell. They hold one by one, for a number of rounds that was decided "
            "beforehand; of many cells some will look different by chance. To decide between two, "
            "use lsmtune verify."
        )
    else:
        lines.append("There is one round, and nothing says how much its figures scatter.")
    if result.runs < result.runs_wanted:
        lines.append("The sweep is unfinished; the same command goes on where it stopped.")
    return lines


def columns_of(table: Table) -> list[Column]:
    """What is shown of each cell, without columns of which nothing is known."""
    wanted = [
        *_rate_columns(table, _rate),
        Column("p99", _mean("latency_us_p99", text.duration_us)),
        Column("time with drain", _mean(PHASE_TOTAL_S, _time)),
        Column("compactions", _mean("compactions", text.number)),
        Column("compacted (read)", _mean("compaction_read_bytes", _size)),
        Column("compacted (written)", _mean("compaction_write_bytes", _size)),
        Column("write amplification", _mean("write_amplification", _factor)),
        Column("database", _mean("database_bytes", _size)),
        Column("runs", _runs),
    ]
    wanted.insert(1, Column("median", _median(table.metric)))
    return _known(wanted, table.cells)


def ratio_columns_of(table: Table) -> list[Column]:
    """Ratios to the first cell of `table`, without columns of which nothing is known."""
    wanted = [
        *_rate_columns(table, _ratio),
        Column("p99", _ratio("latency_us_p99")),
        Column("time with drain", _ratio(PHASE_TOTAL_S)),
    ]
    return _known(wanted, table.cells[1:])


def _rate_columns(table: Table, of: Callable[[str], Callable[[CellSummary], str]]) -> list[Column]:
    """Rates of both kinds; of one where nothing was left to drain, so that both are the same."""
    burst = [Column("ops/s, burst", of("throughput_ops_s")), Column("MB/s, burst", of(RATE_MB))]
    sustained = [
        Column("ops/s, sustained", of("sustained_throughput_ops_s")),
        Column("MB/s, sustained", of(SUSTAINED_MB)),
    ]
    if any(_drains(cell) for cell in table.cells):
        return [*sustained, *burst]
    ops, mb = burst
    return [Column("ops/s", ops.told), Column("MB/s", mb.told)]


def _drains(cell: CellSummary) -> bool:
    drain_s, elapsed_s = cell.value("drain_s"), cell.value("elapsed_s")
    return bool(drain_s and elapsed_s and drain_s > _DRAIN_SHOWN * elapsed_s)


def _known(columns: Sequence[Column], cells: Sequence[CellSummary]) -> list[Column]:
    return [column for column in columns if any(column.told(c) != _NOT_KNOWN for c in cells)]


def interval(found: MeanInterval | None) -> str:
    """A mean with its interval: `81,200 (79,800 to 82,600)`."""
    if found is None:
        return _NOT_KNOWN
    if found.low is None or found.high is None:
        return text.number(_rounded(found.mean))
    low, high = (text.number(_rounded(end)) for end in (found.low, found.high))
    return f"{text.number(_rounded(found.mean))} ({low} to {high})"


def ratio_interval(found: RatioInterval | None) -> str:
    """A ratio with its interval: `0.81 (0.78 to 0.84)`."""
    if found is None:
        return _NOT_KNOWN
    told = text.plain_ratio(found.ratio)
    if found.pairs < 2:
        return told
    return f"{told} ({text.plain_ratio(found.low)} to {text.plain_ratio(found.high)})"


def _rounded(value: float) -> float:
    """Of a large number the fraction says nothing."""
    return float(round(value)) if abs(value) >= 1000 else value


def _rate(metric: str) -> Callable[[CellSummary], str]:
    return lambda cell: interval(cell.metrics.get(metric))


def _ratio(metric: str) -> Callable[[CellSummary], str]:
    return lambda cell: ratio_interval(cell.ratios.get(metric))


def _mean(metric: str, told: Callable[[float], str]) -> Callable[[CellSummary], str]:
    def tell(cell: CellSummary) -> str:
        value = cell.value(metric)
        return _NOT_KNOWN if value is None else told(value)

    return tell


def _median(metric: str) -> Callable[[CellSummary], str]:
    """Of two values it is their mean, and says nothing more."""

    def tell(cell: CellSummary) -> str:
        found = cell.metrics.get(metric)
        few = found is None or found.runs < _RUNS_WITH_A_MEDIAN
        return _NOT_KNOWN if few or found is None else text.number(_rounded(found.median))

    return tell


def _time(seconds: float) -> str:
    return text.seconds(round(seconds)) if seconds >= 60 else f"{seconds:.3g} s"


def _size(value: float) -> str:
    return text.size(round(value))


def _factor(value: float) -> str:
    return f"{value:.2f}"


def _runs(cell: CellSummary) -> str:
    bad = sum(cell.outcomes.values()) - cell.runs_ok
    return f"{cell.runs_ok}, {bad} failed" if bad else str(cell.runs_ok)
