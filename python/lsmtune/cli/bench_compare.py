"""What `bench --runner all` says at its end: the runners side by side, and their ratios to ours."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.text import Text

from lsmtune.cli.bench_result import metric_text
from lsmtune.cli.output import NOT_KNOWN, failure_line
from lsmtune.model.codec import encode
from lsmtune.model.config import Build, EngineIdentity
from lsmtune.model.measurement import Measurement, Outcome, PhaseMeasurement
from lsmtune.model.metrics import BURST, BY_NAME, shown_in
from lsmtune.model.workload import PhaseKind
from lsmtune.programs.output import NATIVE
from lsmtune.programs.runner import RunnerChoice
from lsmtune.report.document import Table, numbers, words
from lsmtune.report.terminal import terminal_table
from lsmtune.units import format_bytes

SETTLED = "settled_database_bytes"
ByRunner = Mapping[str, Sequence[Measurement]]
# Bytes of the database that each run of a runner left, once lsmtune's driver has settled it.
Settled = Mapping[str, Sequence[int]]


@dataclass(frozen=True)
class Figure:
    """The median of one metric of one measure phase over a runner's runs.

    `ratio_to_native` is that median divided by our driver's; both None where not told.
    """

    phase: str
    runner: str
    metric: str
    runs: int
    median: float | None
    ratio_to_native: float | None


def figures(measured: ByRunner, settled: Settled) -> tuple[Figure, ...]:
    """Each metric for each measure phase and runner; runs that did not end well count not.

    The bytes of the `settled` database are with the last phase.
    """
    found: list[Figure] = []
    names = _phase_names(measured)
    for phase in names:
        for metric in shown_in("runners"):
            values = {name: _values(runs, phase, metric) for name, runs in measured.items()}
            found += _figures(phase, metric, values)
    if names and settled:
        found += _figures(names[-1], SETTLED, {name: settled.get(name, ()) for name in measured})
    return tuple(found)


def _figures(phase: str, metric: str, values: Mapping[str, Sequence[float]]) -> Iterator[Figure]:
    medians = {name: statistics.median(each) if each else None for name, each in values.items()}
    own = medians.get(NATIVE)
    for name, value in medians.items():
        ratio = value / own if value is not None and own else None
        yield Figure(phase, name, metric, len(values[name]), value, ratio)


def compare_document(
    arms: Sequence[RunnerChoice],
    measured: ByRunner,
    settled: Settled,
    warnings: Sequence[str],
    missing: Mapping[str, str],
) -> dict[str, object]:
    """What `bench --runner all --json` prints."""
    return {
        "runners": [
            {
                "runner": arm.name,
                "engine": encode(_engine(arm, measured.get(arm.name, ()))),
                "note": arm.note,
                "measurements": [encode(run) for run in measured.get(arm.name, ())],
                SETTLED: list(settled.get(arm.name, ())),
            }
            for arm in arms
            if arm.name in measured
        ],
        "comparison": [encode(figure) for figure in figures(measured, settled)],
        "missing": [{"runner": name, "why": why} for name, why in missing.items()],
        "warnings": list(warnings),
    }


def compare_view(
    arms: Sequence[RunnerChoice],
    measured: ByRunner,
    settled: Settled,
    warnings: Sequence[str],
    missing: Mapping[str, str],
) -> RenderableType:
    """The same for people: a table for each measure phase, one column for each runner."""
    shown = [arm for arm in arms if arm.name in measured]
    parts: list[RenderableType] = []
    for arm in shown:
        engine = _engine(arm, measured[arm.name])
        said = f"; {arm.note}" if arm.note else ""
        parts.append(Text(f"{arm.name}: {_named(engine)}{said}"))
    names = _phase_names(measured)
    for phase in names:
        last = settled if phase == names[-1] else {}
        parts += [Text(""), Text(phase, style="bold"), _table(phase, shown, measured, last)]
    runs = max((len(found) for found in measured.values()), default=0)
    if runs > 1:
        parts.append(Text(f"medians of {runs} runs each, taken in turns", style="dim"))
    for line in dict.fromkeys((*warnings, *_warnings(measured))):
        parts.append(Text(f"warning: {line}", style="yellow"))
    parts += [Text(f"not here: {name}: {why}", style="dim") for name, why in missing.items()]
    return Group(*parts)


def build_warnings(arms: Sequence[RunnerChoice]) -> list[str]:
    """Says so where the runners carry different builds of the engine."""
    builds = {(arm.engine.version, arm.engine.build) for arm in arms}
    if len(builds) < 2:
        return []
    said = ", ".join(f"{arm.name} {_named(arm.engine)}" for arm in arms)
    return [f"ratios are also those of different engine builds: {said}"]


def _named(engine: EngineIdentity) -> str:
    version = engine.version or "of unknown version"
    build = "" if engine.build is Build.UNKNOWN else f", {engine.build.value}"
    return f"{engine.name} {version}{build}"


def _engine(arm: RunnerChoice, runs: Sequence[Measurement]) -> EngineIdentity:
    return runs[-1].engine if runs else arm.engine


def _phase_names(measured: ByRunner) -> list[str]:
    """In the order of our driver, which performs all of them."""
    return list(
        dict.fromkeys(
            phase.name
            for runs in measured.values()
            for run in runs
            for phase in run.phases
            if phase.kind == PhaseKind.MEASURE
        )
    )


def _phases(runs: Sequence[Measurement], name: str) -> list[PhaseMeasurement]:
    good = [run for run in runs if run.outcome is Outcome.OK]
    return [phase for run in good for phase in run.phases if phase.name == name]


def _values(runs: Sequence[Measurement], phase: str, metric: str) -> list[float]:
    values = (getattr(each, metric) for each in _phases(runs, phase))
    return [float(value) for value in values if value is not None]


def _median(runs: Sequence[Measurement], phase: str, metric: str) -> float | None:
    values = _values(runs, phase, metric)
    return statistics.median(values) if values else None


def _table(
    phase: str, arms: Sequence[RunnerChoice], measured: ByRunner, settled: Settled
) -> RenderableType:
    rows: list[tuple[str, ...]] = []
    for metric in map(BY_NAME.__getitem__, shown_in("bench")):
        medians = [_median(measured[arm.name], phase, metric.name) for arm in arms]
        if any(value is not None for value in medians):
            cells = [
                NOT_KNOWN if value is None else metric_text(metric, value) for value in medians
            ]
            rows.append((metric.bench, *cells))
        if settled and metric.name == "database_bytes":
            rows.append((f"{metric.bench}, settled", *_settled_cells(arms, settled)))
    rows.append(("burst by native's", *_ratios(phase, arms, measured)))
    return terminal_table(Table((*words(""), *numbers(*(arm.name for arm in arms))), rows))


def _settled_cells(arms: Sequence[RunnerChoice], settled: Settled) -> Iterator[str]:
    for arm in arms:
        values = settled.get(arm.name, ())
        yield format_bytes(round(statistics.median(values))) if values else NOT_KNOWN


def _ratios(phase: str, arms: Sequence[RunnerChoice], measured: ByRunner) -> Iterator[str]:
    own = _median(measured.get(NATIVE, ()), phase, BURST)
    for arm in arms:
        value = _median(measured[arm.name], phase, BURST)
        yield f"{value / own:.2f}x" if value is not None and own else NOT_KNOWN


def _warnings(measured: ByRunner) -> list[str]:
    lines: list[str] = []
    for name, runs in measured.items():
        for run in runs:
            lines += run.warnings
            if run.outcome is not Outcome.OK:
                lines.append(f"{name}: {failure_line(run)}")
    return list(dict.fromkeys(lines))
