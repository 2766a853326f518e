"""Where the marks of the verdict's bar go: geometry only."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

import lsmtune
from lsmtune.experiment.folder import StudyFolder
from lsmtune.model.verdict import Verdict
from lsmtune.report import figures, pages
from lsmtune.report import sentences as trust_words
from lsmtune.report import words as text
from lsmtune.report.analysis import StudyAnalysis, analyse
from lsmtune.report.figures import Figure
from lsmtune.report.insight_figures import (
    anchor_figure,
    front_figure,
    importance_figure,
    slice_figure,
)
from lsmtune.report.pages import write_text
from lsmtune.report.sentences import (
    direction_words,
    headline,
    importance_note,
    level_tables,
    performance_label,
    performance_tables,
    rank,
    rung_name,
    statistics_facts,
)
from lsmtune.report.source import read_study
from lsmtune.report.tables import Arm, LatencyCurve
from lsmtune.workloads.describe import mixed_phases

_MARGIN = 0.18  # of the span, on either side, so that no mark touches an end


@dataclass(frozen=True)
class IntervalBar:
    """Positions in percent of the bar's width; `one` is where the ratio is 1."""

    one: float
    low: float
    high: float
    ratio: float

    @property
    def width(self) -> float:
        """Width of the interval."""
        return self.high - self.low


def interval_bar(verdict: Verdict | None) -> IntervalBar | None:
    """The bar on a log scale of ratios, or None without a finite interval above zero."""
    if verdict is None:
        return None
    ratios = (1.0, verdict.ratio_low, verdict.ratio_high, verdict.ratio)
    known = [r for r in ratios if r is not None and math.isfinite(r) and r > 0]
    if len(known) < len(ratios):
        return None
    logs = [math.log(r) for r in known]
    span = max(max(logs) - min(logs), 0.02)
    start = min(logs) - _MARGIN * span
    whole = max(logs) - min(logs) + 2 * _MARGIN * span
    one, low, high, ratio = (round(100 * (place - start) / whole, 2) for place in logs)
    return IntervalBar(one, low, high, ratio)


# ----------
# The HTML report: one self-contained file that needs no network, and no script for its text.


def write_report(folder: StudyFolder, output: Path) -> Path:
    """Write the report of `folder` to `output`, whole or not at all; returns `output`.

    With the importance of the parameters by PED-ANOVA.

    Raises InputError when the study cannot be read or `output` cannot be written.
    """
    return write_text(output, render(analyse(read_study(folder))))


def render(analysis: StudyAnalysis) -> str:
    """The whole page."""
    drawn = {name: figure for name, figure in _figures(analysis).items() if figure is not None}
    return (
        _environment()
        .get_template("report.html")
        .render(
            a=analysis,
            head=headline(analysis),
            compared=_compared(analysis),
            bar=interval_bar(analysis.verdict),
            figures=drawn,
            latency_rows=_latency_rows(analysis),
            slice_names=[s.parameter.name for s in analysis.slices],
            direction=direction_words(analysis.direction),
            metric=analysis.metric,
            statistics_facts=statistics_facts(analysis.statistics),
            importance_notes=[importance_note(found) for found in analysis.importances],
            performance=performance_tables(analysis.performance),
            level_tables=level_tables(analysis.levels),
            repeated=any(
                trust_words.runs_told(row, analysis.metric) for row in analysis.history.trials
            ),
            **_trust(analysis),
            version=lsmtune.__version__,
            plotly=pages.plotly() if drawn else None,
            style=pages.asset("report.css"),
            script=pages.asset("report.js"),
        )
    )


def _trust(analysis: StudyAnalysis) -> dict[str, object]:
    """Sentences on whether the figures can be trusted."""
    verdict, proof, crash = analysis.verdict, analysis.proof, analysis.crash_test
    return {
        "searched": trust_words.searched(verdict),
        "drift_lines": [text.sentence(trust_words.drift_line(s)) + "." for s in analysis.anchors],
        "proof_lines": trust_words.proof_lines(verdict, proof),
        "correction_line": None if verdict is None else trust_words.correction_line(verdict, proof),
        "pairs_note": trust_words.pairs_note(analysis.pairs, len(analysis.workloads)),
        "condition_facts": trust_words.condition_facts(analysis.conditions),
        "crash_words": None if crash is None else trust_words.crash_words(crash),
    }


def _figures(analysis: StudyAnalysis) -> dict[str, Figure | None]:
    """Every figure under the id of the element that holds it."""
    found = {
        "history": figures.history_figure(analysis),
        "pairs": figures.pairs_figure(analysis),
        "series": figures.series_figure(analysis),
    }
    for number, (operation, _) in enumerate(_latency_rows(analysis)):
        found[f"latency-{number}"] = figures.latency_figure(analysis, operation)
    for number, plotted in enumerate(analysis.slices):
        found[f"slice-{number}"] = slice_figure(analysis, plotted)
    for number, table in enumerate(analysis.importances):
        found[f"importance-{number}"] = importance_figure(table)
    for number, anchors in enumerate(analysis.anchors):
        found[f"anchors-{number}"] = anchor_figure(anchors)
    found["front"] = front_figure(analysis)
    return found


def _latency_rows(analysis: StudyAnalysis) -> list[tuple[str, dict[Arm, LatencyCurve]]]:
    """The curves by operation type, then by arm."""
    rows: dict[str, dict[Arm, LatencyCurve]] = {}
    for curve in analysis.latencies:
        rows.setdefault(curve.operation, {})[curve.arm] = curve
    return sorted(rows.items())


def _environment() -> jinja2.Environment:
    environment = pages.environment()
    environment.filters.update(
        mixed_phases=mixed_phases,
        breakable=_breakable,
        count=text.count,
        direction_words=direction_words,
        duration_us=text.duration_us,
        metric_label=text.metric_label,
        moment=text.moment,
        noise_figure=trust_words.noise_figure,
        noise_source=trust_words.noise_source,
        number=text.number,
        option=text.option,
        option_told=text.option_told,
        options_line=text.options_line,
        outcome=text.outcome,
        percent=text.percent,
        performance_label=performance_label,
        provable=trust_words.provable,
        rank=rank,
        ratio=text.ratio,
        reached=text.reached,
        rung_name=rung_name,
        runs_told=trust_words.runs_told,
        seconds=text.seconds,
        share=text.share,
        size=text.size,
        sort_key=_sort_key,
        spread=text.spread,
        told_words=trust_words.told_words,
    )
    environment.globals.update(quantity=text.quantity)
    return environment


def _compared(analysis: StudyAnalysis) -> list[tuple[str, str, str]]:
    """Figures of both arms that go with the verdict: the objective, then latencies."""
    metric, medians = analysis.metric, analysis.medians
    found = []
    if len(medians) == len(Arm):
        one, other = (text.quantity(metric, medians[arm]) for arm in Arm)
        found.append((text.metric_label(metric), one, other))
    for operation, curves in _latency_rows(analysis):
        if analysis.arms_from_proof and len(curves) == len(Arm):
            baseline, tuned = (curves[arm] for arm in Arm)
            for name, before_us, after_us in (
                ("median", baseline.latency_us_p50, tuned.latency_us_p50),
                ("p99", baseline.latency_us_p99, tuned.latency_us_p99),
            ):
                label = f"{operation} latency, {name}"
                found.append((label, text.duration_us(before_us), text.duration_us(after_us)))
    return found


def _breakable(name: str) -> Markup:
    """`name`, which a browser may break after `_` and `.` only."""
    parts = re.split(r"(?<=[_.])", name)
    return Markup("<wbr>").join(parts)


def _sort_key(value: float | None) -> Any:
    """What the page sorts a cell by; empty goes last."""
    return value if value is not None and math.isfinite(value) else ""
