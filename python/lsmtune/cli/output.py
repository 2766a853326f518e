"""What commands print: measurements, verdicts, warnings. Pure text; nothing here is printed."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lsmtune.errors import InputError, LsmtuneError
from lsmtune.records.engine import Build
from lsmtune.records.measurement import Measurement, Outcome, PhaseMeasurement, RunError
from lsmtune.records.verdict import MetricRatio, Verdict, VerdictOutcome
from lsmtune.stats.sequential import pairs_at_least
from lsmtune.storage.codec import encode
from lsmtune.units import format_bytes, format_duration

NOT_KNOWN = "-"


@dataclass(frozen=True)
class Row:
    """A line of the result table: a number of a phase, and how it is written."""

    label: str
    value: Callable[[PhaseMeasurement], float | None]
    shown: Callable[[float], str]


def count(value: float) -> str:
    """`1,234,567`."""
    return f"{value:,.0f}"


def rate(value: float) -> str:
    """Operations per second."""
    return f"{value:,.0f} ops/s"


def micros(value: float) -> str:
    """Microseconds in the unit that keeps the number short."""
    for limit, unit in ((1e3, "us"), (1e6, "ms")):
        if value < limit:
            return f"{value * 1e3 / limit:.3g} {unit}"
    return f"{value / 1e6:.3g} s"


def _bytes(value: float) -> str:
    return format_bytes(round(value))


def _factor(value: float) -> str:
    return f"{value:.2f}"


ROWS = (
    Row("operations", lambda p: p.operations, count),
    Row("elapsed", lambda p: p.elapsed_s, format_duration),
    Row("drain", lambda p: p.drain_s, format_duration),
    Row("throughput", lambda p: p.throughput_ops_s, rate),
    Row("sustained", lambda p: p.sustained_throughput_ops_s, rate),
    Row("latency p50", lambda p: p.latency_us_p50, micros),
    Row("latency p95", lambda p: p.latency_us_p95, micros),
    Row("latency p99", lambda p: p.latency_us_p99, micros),
    Row("latency p99.9", lambda p: p.latency_us_p999, micros),
    Row("latency max", lambda p: p.latency_us_max, micros),
    Row("write amplification", lambda p: p.write_amplification, _factor),
    Row("read amplification", lambda p: p.read_amplification, _factor),
    Row("space amplification", lambda p: p.space_amplification, _factor),
    Row("flushes", lambda p: p.flushes, count),
    Row("flush bytes", lambda p: p.flush_bytes, _bytes),
    Row("compactions", lambda p: p.compactions, count),
    Row("compaction read", lambda p: p.compaction_read_bytes, _bytes),
    Row("compaction write", lambda p: p.compaction_write_bytes, _bytes),
    Row("stall", lambda p: p.stall_s, format_duration),
    Row("CPU per operation", lambda p: p.cpu_us_per_operation, micros),
    Row("peak memory", lambda p: p.rss_bytes_max, _bytes),
    Row("database", lambda p: p.database_bytes, _bytes),
    Row("keys found", lambda p: p.keys_found, count),
    Row("keys missing", lambda p: p.keys_missing, count),
)


def bench_document(measurements: Sequence[Measurement]) -> dict[str, object]:
    """What `bench --json` prints: the fields of the records, whole."""
    return {"measurements": [encode(measurement) for measurement in measurements]}


def bench_view(measurements: Sequence[Measurement], warnings: Sequence[str]) -> RenderableType:
    """The result of `bench` for people: one column per phase, medians where runs were repeated."""
    good = [m for m in measurements if m.outcome is Outcome.OK]
    shown = good or list(measurements)
    parts: list[RenderableType] = [Text(_title(shown[0]), style="bold")]
    phases = phases_of(shown)
    if phases:
        parts.append(_phase_table(phases))
    if len(good) > 1:
        parts.append(Text(f"median of {len(good)} runs ± half their range", style="dim"))
    parts += [Text(line) for line in _facts(shown)]
    lines = [*warnings, *_warnings(measurements)]
    parts += [Text(f"warning: {line}", style="yellow") for line in dict.fromkeys(lines)]
    return Group(*parts)


def phases_of(measurements: Sequence[Measurement]) -> list[list[PhaseMeasurement]]:
    """For each phase with operations, that phase in every measurement that finished it."""
    names = dict.fromkeys(p.name for m in measurements for p in m.phases if p.operation is not None)
    return [[p for m in measurements for p in m.phases if p.name == name] for name in names]


def _title(measurement: Measurement) -> str:
    engine = measurement.engine
    build = "" if engine.build is Build.UNKNOWN else f", {engine.build.value}"
    version = f" {engine.version}" if engine.version else ""
    return f"{engine.name}{version}{build}: {measurement.workload}, seed {measurement.seed}"


def _phase_table(phases: Sequence[Sequence[PhaseMeasurement]]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for runs in phases:
        threads = f", {runs[0].threads} threads" if runs[0].threads > 1 else ""
        table.add_column(f"{runs[0].name}{threads}", justify="right", overflow="fold")
    for row in ROWS:
        cells = [_cell(row, runs) for runs in phases]
        if any(cell != NOT_KNOWN for cell in cells):
            table.add_row(row.label, *cells)
    return table


def _cell(row: Row, runs: Sequence[PhaseMeasurement]) -> str:
    values = [value for run in runs if (value := row.value(run)) is not None]
    if not values:
        return NOT_KNOWN
    middle = statistics.median(values)
    if len(values) == 1 or middle == 0:
        return row.shown(middle)
    spread = (max(values) - min(values)) / 2 / middle
    return f"{row.shown(middle)} ±{100 * spread:.0f} %"


def _facts(measurements: Sequence[Measurement]) -> list[str]:
    """Verification, and options that did not take: the same in every repeat, or said."""
    checks = [m.verification for m in measurements if m.verification is not None]
    lines = []
    if checks:
        checked = sum(check.keys_checked for check in checks)
        bad = sum(check.keys_lost + check.keys_wrong for check in checks)
        verdict = "all right" if bad == 0 else f"{bad} LOST OR WRONG"
        lines.append(f"verified: {count(checked)} keys read back after reopening, {verdict}")
    return lines


def _warnings(measurements: Sequence[Measurement]) -> list[str]:
    lines = []
    for measurement in measurements:
        for option in measurement.options_not_taken:
            if option.effective is None:
                effect = "the engine does not say whether it took it"
            else:
                effect = f"the engine uses {option.effective}"
            lines.append(f"option {option.name}={option.requested}: {effect}")
        lines += measurement.warnings
        if measurement.outcome is not Outcome.OK:
            lines.append(failure_line(measurement))
    return lines


def failure_line(measurement: Measurement) -> str:
    """How a run failed, in one line."""
    why = f": {measurement.error.message}" if measurement.error else ""
    return f"run with seed {measurement.seed} ended {measurement.outcome.value}{why}"


def failure(measurement: Measurement, source: str) -> LsmtuneError:
    """The error for a run that did not end `ok`: the user's where the outcome is `invalid`."""
    error = measurement.error
    if measurement.outcome is Outcome.INVALID and error is not None:
        return invalid(error, source)
    return LsmtuneError(f"{source}: {failure_line(measurement)}")


def invalid(error: RunError, source: str) -> InputError:
    """What the driver refused, in the words of the command line."""
    field = error.field or ""
    if field.startswith("options."):
        field = f"-o {field.removeprefix('options.')}"
    elif field == "engine.library":
        field = "--library"
    return error.input_error(source, field)


def verdict_line(verdict: Verdict) -> str:
    """The verdict in one line, as in `1.42x the baseline (metric), 95 % CI 1.37 to 1.47, 5 pairs`.

    Only what is proved better begins with its ratio; anything else says first what it is.
    """
    lead = {
        VerdictOutcome.BETTER: "",
        VerdictOutcome.WORSE: "worse",
        VerdictOutcome.EQUIVALENT: "equivalent",
        VerdictOutcome.NOT_PROVEN: "no proven gain",
    }[verdict.outcome]
    parts = [part for part in (lead, _ratio(verdict)) if part]
    line = ": ".join(parts)
    return f"{line}; {verdict.why}" if verdict.why else line


def verdict_lines(verdict: Verdict) -> list[str]:
    """The verdict, what it would take where it is none, the other metrics, and what to mind."""
    lines = [verdict_line(verdict)]
    if verdict.what_it_takes:
        lines.append(f"  what it takes: {verdict.what_it_takes}")
    if verdict.others:
        together = f"{100 * verdict.confidence:.4g} % CI for all of them together"
        each = verdict.confidence_each
        if each is not None and verdict.pairs < pairs_at_least(each):
            together = f"{together} needs {pairs_at_least(each)} pairs"
        lines.append(f"  other metrics ({together}):")
        lines += [f"    {other_line(other)}" for other in verdict.others]
    return lines + [f"  warning: {note}" for note in verdict.notes]


def running_line(verdict: Verdict) -> str:
    """What the pairs say so far, as in `after 7 pairs: 1.42x, 95 % CI 1.30 to 1.55`."""
    pairs = f"after {verdict.pairs} pair{'' if verdict.pairs == 1 else 's'}"
    if verdict.ratio is None:
        return f"{pairs}: no ratio yet"
    return f"{pairs}: {_digits(verdict.ratio)}x, {_interval(verdict)}"


def _ratio(verdict: Verdict) -> str:
    if verdict.ratio is None:
        return ""
    better = ", lower is better" if verdict.direction == "minimize" else ""
    pairs = f"{verdict.pairs} pair{'' if verdict.pairs == 1 else 's'}"
    ratio = _digits(verdict.ratio)
    return f"{ratio}x the baseline ({verdict.metric}{better}), {_interval(verdict)}, {pairs}"


def _interval(verdict: Verdict) -> str:
    if verdict.ratio_low is None or verdict.ratio_high is None:
        return "no interval"
    low, high = (_digits(value) for value in (verdict.ratio_low, verdict.ratio_high))
    return f"{100 * verdict.confidence:.4g} % CI {low} to {high}"


def other_line(other: MetricRatio) -> str:
    """One metric of several in one line, as in `latency_us_p99: 0.93x (0.91 to 0.95)`."""
    if other.ratio is None:
        return f"{other.metric}: no ratio"
    interval = "no interval"
    if other.ratio_low is not None and other.ratio_high is not None:
        interval = f"{_digits(other.ratio_low)} to {_digits(other.ratio_high)}"
    better = ", lower is better" if other.direction == "minimize" else ""
    return f"{other.metric}: {_digits(other.ratio)}x ({interval}{better})"


def _digits(ratio: float) -> str:
    """Two decimals; three close to 1, where the second does not tell better from equal."""
    return f"{ratio:.3f}" if 0.95 < ratio < 1.05 else f"{ratio:.2f}"
