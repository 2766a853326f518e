"""What `bench --runner all` says at its end: the runners side by side, and their ratios to ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import RenderableType

from lsmtune.cli.output import failure_line
from lsmtune.model.codec import encode
from lsmtune.model.config import Build, EngineIdentity
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.metrics import BURST, BY_NAME, shown_in
from lsmtune.programs.output import NATIVE
from lsmtune.programs.runner import RunnerChoice
from lsmtune.report.document import (
    NOT_KNOWN,
    Block,
    Notice,
    Notices,
    Paragraph,
    Table,
    numbers,
    words,
)
from lsmtune.report.history import ratio
from lsmtune.report.proof import middle
from lsmtune.report.terminal import blocks_view
from lsmtune.report.words import quantity
from lsmtune.units import format_ratio

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


def figures(measured: ByRunner, settled: Settled) -> list[Figure]:
    """Each metric for each measure phase and runner; runs that did not end well count not.

    The bytes of the `settled` database are with the last phase.
    """
    rows = []
    names = _phase_names(measured)
    for phase in names:
        last = [SETTLED] if settled and phase == names[-1] else []
        for metric in [*shown_in("runners"), *last]:
            values = {
                name: settled.get(name, ()) if metric == SETTLED else _values(runs, phase, metric)
                for name, runs in measured.items()
            }
            own = middle(values.get(NATIVE, ()))
            for name, of_runner in values.items():
                value = middle(of_runner)
                figure = phase, name, metric, len(of_runner), value, ratio(value, own)
                rows.append(Figure(*figure))
    return rows


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
                "engine": encode(_engine(arm, measured)),
                "note": arm.note,
                "measurements": encode(measured[arm.name]),
                SETTLED: list(settled.get(arm.name, ())),
            }
            for arm in arms
            if arm.name in measured
        ],
        "comparison": encode(figures(measured, settled)),
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
    blocks: list[Block] = []
    for arm in shown:
        said = f"; {arm.note}" if arm.note else ""
        blocks.append(Paragraph(f"{arm.name}: {_named(_engine(arm, measured))}{said}"))
    names, lines = _phase_names(measured), list(warnings)
    for phase in names:
        last = settled if phase == names[-1] else {}
        table = _table(phase, shown, measured, last)
        blocks += [Paragraph(""), Paragraph(phase, "title"), table]
    runs = max(map(len, measured.values()), default=0)
    if runs > 1:
        blocks.append(Paragraph(f"medians of {runs} runs each, taken in turns", "quiet"))
    for name, of_runner in measured.items():
        for run in of_runner:
            lines += run.warnings
            lines += [] if run.outcome is Outcome.OK else [f"{name}: {failure_line(run)}"]
    blocks.append(Notices([Notice(line) for line in dict.fromkeys(lines)]))
    blocks += [Paragraph(f"not here: {name}: {why}", "quiet") for name, why in missing.items()]
    return blocks_view(blocks)


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


def _engine(arm: RunnerChoice, measured: ByRunner) -> EngineIdentity:
    runs = measured[arm.name]
    return runs[-1].engine if runs else arm.engine


def _phase_names(measured: ByRunner) -> list[str]:
    """In the order of our driver, which performs all of them."""
    phases = (phase for runs in measured.values() for run in runs for phase in run.measured_phases)
    return list(dict.fromkeys(phase.name for phase in phases))


def _values(runs: Sequence[Measurement], phase: str, metric: str) -> list[float]:
    good = (each for run in runs if run.outcome is Outcome.OK for each in run.phases)
    values = (getattr(each, metric) for each in good if each.name == phase)
    return [float(value) for value in values if value is not None]


def _table(phase: str, arms: Sequence[RunnerChoice], measured: ByRunner, settled: Settled) -> Table:
    rows: list[tuple[str, ...]] = []
    for metric in map(BY_NAME.__getitem__, shown_in("bench")):
        medians = [middle(_values(measured[arm.name], phase, metric.name)) for arm in arms]
        if any(value is not None for value in medians):
            rows.append((metric.bench, *(quantity(metric.name, value) for value in medians)))
        if settled and metric.name == "database_bytes":
            sizes = (middle(settled.get(arm.name, ())) for arm in arms)
            settled_sizes = (quantity(metric.name, size) for size in sizes)
            rows.append((f"{metric.bench}, settled", *settled_sizes))
    bursts = {name: middle(_values(runs, phase, BURST)) for name, runs in measured.items()}
    ratios = (ratio(bursts[arm.name], bursts.get(NATIVE)) for arm in arms)
    told = (NOT_KNOWN if each is None else f"{format_ratio(each)}x" for each in ratios)
    rows.append(("burst by native's", *told))
    return Table((*words(""), *numbers(*(arm.name for arm in arms))), rows)
