"""`bench --runner all`: the runners side by side, their ratios to ours, and settled databases.

The bytes that a program leaves behind cannot be compared: obsolete files, logs, and a tree that was
still being compacted. So lsmtune's driver opens each database that a comparison has made, its own
too, with the same options, writes memtables out, and waits for compactions.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from lsmtune.cli.bench import Arms, Missing, RunnerChoice
from lsmtune.cli.bench_result import metric_text
from lsmtune.cli.output import NOT_KNOWN, failure_line
from lsmtune.driver.runner import DATABASE, Runner
from lsmtune.model.codec import encode
from lsmtune.model.config import Build, EngineIdentity
from lsmtune.model.measurement import Measurement, Outcome, PhaseMeasurement
from lsmtune.model.metrics import BURST, BY_NAME, shown_in
from lsmtune.model.request import Prepared, RunRequest
from lsmtune.model.workload import PageCache, Phase, PhaseKind, Workload
from lsmtune.programs.output import NATIVE
from lsmtune.report.document import Table, numbers, words
from lsmtune.report.terminal import terminal_table
from lsmtune.units import format_bytes

_SETTLE = Phase("settle", PhaseKind.SETTLE)
# The driver waits until nothing is due; what a first flush makes due, the second waits for.
_TWICE = (_SETTLE, replace(_SETTLE, name="settle-again"))


def settled_bytes(
    driver: Runner, engine: EngineIdentity, request: RunRequest
) -> tuple[int | None, str]:
    """Bytes of the database that the run of `request` left, settled by `driver` on `engine`.

    None, and why in one line, where the driver cannot: another version of the engine, a library
    without a compression. The database is no longer in the folder of `request` then. Raises
    InputError where the driver cannot be used.
    """
    if request.workload.databases != 1:
        return None, "several databases"
    nothing = Workload(
        "settle",
        (_SETTLE,),
        num=1,
        durability=request.workload.durability,
        page_cache=PageCache.WARM,
        column_families=request.workload.column_families,
    )
    asked = replace(request, engine=engine, workload=nothing, verify_keys=0, load_seed=None)
    # The driver opens only what an earlier run prepared: one on an empty database notes that there
    # is nothing to expect, and that is given for this one.
    ledger = request.directory / "settled-ledger"
    first = _run(driver, replace(asked, save_ledger=ledger), "settled-nothing")
    if first.outcome is not Outcome.OK:
        return None, _why(first)
    again = replace(asked, workload=replace(nothing, phases=_TWICE), prepared=Prepared(ledger, 1))
    found = _run(driver, again, "settled", request.directory / DATABASE)
    if found.outcome is not Outcome.OK:
        return None, _why(found)
    return found.database_bytes, ""


def _run(
    driver: Runner, request: RunRequest, name: str, database: Path | None = None
) -> Measurement:
    """`request` in a folder of its own below that of the run, with `database` moved into it."""
    folder = request.directory / name
    folder.mkdir()
    if database is not None:
        database.rename(folder / DATABASE)
    return driver.run(replace(request, directory=folder))


def _why(measurement: Measurement) -> str:
    error = measurement.error
    return measurement.outcome.value if error is None else error.message


# --- What `bench --runner all` says at its end: the runners side by side, and their ratios to ours

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
    arms: Arms,
    measured: ByRunner,
    settled: Settled,
    warnings: Sequence[str],
    missing: Sequence[Missing],
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
            for arm in arms.arms
            if arm.name in measured
        ],
        "comparison": [encode(figure) for figure in figures(measured, settled)],
        "missing": [encode(each) for each in missing],
        "warnings": list(warnings),
    }


def compare_view(
    arms: Arms,
    measured: ByRunner,
    settled: Settled,
    warnings: Sequence[str],
    missing: Sequence[Missing],
) -> RenderableType:
    """The same for people: a table for each measure phase, one column for each runner."""
    shown = [arm for arm in arms.arms if arm.name in measured]
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
    parts += [Text(f"not here: {each.runner}: {each.why}", style="dim") for each in missing]
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
