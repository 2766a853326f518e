"""A study's report, how far it can be trusted: notices, tests, noise, machine, raw figures."""

from __future__ import annotations

import gzip
import shlex
from functools import partial

from lsmtune.model.workload import Durability
from lsmtune.proof.crash_test import CrashOutcome, crash_line
from lsmtune.proof.power_loss import power_findings, power_line
from lsmtune.report import figures
from lsmtune.report import words as text
from lsmtune.report.analysis import StudyAnalysis
from lsmtune.report.document import (
    NOT_KNOWN,
    Block,
    Cell,
    Column,
    Download,
    Facts,
    Heading,
    Notices,
    Paragraph,
    Section,
    Table,
)
from lsmtune.report.tables import AnchorSeries, MachineChange, NoiseRow, NoiseSource
from lsmtune.report.trust import condition_facts
from lsmtune.units import format_bytes
from lsmtune.workloads.describe import mixed_phases

_DURABILITY = {
    Durability.SYNC: "synced writes",
    Durability.WAL: "write-ahead log",
    Durability.NONE: "no write-ahead log",
}


def trust_section(analysis: StudyAnalysis) -> Section:
    """What to know before trusting or deploying."""
    none = (
        "No warnings: no option known to have another value than was asked for, no best value on "
        "an edge, no failed run."
    )
    known = analysis.notices
    blocks: list[Block] = [Notices(known) if known else Paragraph(none, "quiet")]
    blocks += [*_survival_blocks(analysis), *_noise_blocks(analysis), *_machine_blocks(analysis)]
    return Section("trust", "How far it can be trusted", blocks, "Trust")


def _survival_blocks(analysis: StudyAnalysis) -> list[Block]:
    """How the candidate stood crashes and power losses, and what nobody looked at."""
    crash, power = analysis.crash_test, analysis.power_test
    tests: list[tuple[CrashOutcome, str]] = []
    if crash is not None:
        tests.append((crash.outcome, f"Crash test: {crash_line(crash)}."))
    if power is not None:
        lines = [f"Power loss: {power_line(power)}.", *power_findings(power)]
        tests.append((power.outcome, " ".join(map(text.sentence, lines))))
    blocks: list[Block] = [
        Paragraph(line, "detail fail" if outcome is CrashOutcome.FAILED else "detail")
        for outcome, line in tests
    ]
    missing = _not_measured(analysis)
    blocks += [Paragraph(f"Not measured: {'; '.join(missing)}.", "detail")] if missing else []
    return [Heading("After a crash, and what was not measured"), *blocks] if blocks else []


def _not_measured(analysis: StudyAnalysis) -> list[str]:
    """What a reader may take for checked that was not."""
    missing = []
    if analysis.verdict is not None:
        if analysis.crash_test is None:
            missing.append("a crash of the candidate")
        if analysis.power_test is None:
            missing.append("a power loss of the candidate")
        if analysis.verdict.share_of_target < 1.0:
            missing.append("the whole target, of which this is a model")
        guards = analysis.verdict.guards
        missing += [f"the guard {guard.guard}" for guard in guards if guard.held is None]
    if not analysis.noise:
        missing.append("how much runs scatter")
    return missing


def _noise_blocks(analysis: StudyAnalysis) -> list[Block]:
    """Anchors over the time of the study, and how much runs scatter."""
    note = "The baseline has not been run."
    if analysis.anchors:
        note = (
            "Anchors are runs of the baseline that nothing shared the machine with: before the "
            "search, and between its trials. Each trial is judged relative to the anchors of its "
            "own time."
        )
    blocks: list[Block] = [Heading("Noise and drift"), Paragraph(note, "quiet")]
    for series in analysis.anchors:
        several = len(analysis.anchors) > 1
        blocks += [Heading(text.metric_label(series.objective))] if several else []
        plot = figures.anchor_chart(series)
        columns = (
            Column("run", key="role", number=False),
            Column("at", text.seconds, "at_s"),
            Column("after", partial(text.count, noun="trial"), "trials_before"),
            Column("value", partial(text.quantity, series.metric), "value"),
            Column("segment", lambda n: text.number(None if n is None else n + 1), "segment"),
        )
        line = f"{text.sentence(drift_line(series))}."
        table = Table.of(columns, series.points, "Anchors", fold="Figures" if plot else "")
        blocks += [Paragraph(line, "finding"), *plot, table]
    if not analysis.noise:
        why = "There was no calibration, so that it is not known how much runs scatter."
        return [*blocks, Paragraph(why, "quiet")]
    scatter = (
        "Standard deviations of the logarithm, with intervals at 95 %. Provable is the smallest "
        "difference that so many pairs show with a probability of 80 %."
    )
    table = Table.of(_NOISE, analysis.noise, "Noise")
    return [*blocks, Heading("How much runs scatter"), Paragraph(scatter, "quiet"), table]


def drift_line(series: AnchorSeries) -> str:
    """Whether the machine changed, and what was done about it, in one line."""
    anchors = text.count(len(series.points), "anchor")
    if not series.segments:
        return f"nothing can be judged by {anchors}, as a value is not above zero"
    if not series.changes:
        line = f"no change seen in {anchors}"
        few = len(series.points) < series.anchors_least
        return f"{line} (fewer than {series.anchors_least} cannot show one)" if few else line
    times = "once" if len(series.changes) == 1 else f"{len(series.changes)} times"
    changes = ", ".join(_change(change) for change in series.changes)
    run_again = [number for change in series.changes for number in change.run_again]
    repeats = "no trial was run again"
    if run_again:
        was, numbers = "was" if len(run_again) == 1 else "were", ", ".join(map(str, run_again))
        repeats = f"{text.count(len(run_again), 'trial')} {was} run again ({numbers})"
    left = sum(len(change.left) for change in series.changes)
    waiting = f", {left:,} not yet" if left else ""
    return f"the machine changed {times}: {changes}; {repeats}{waiting}"


def _change(change: MachineChange) -> str:
    where = "ahead of the first trial"
    if change.first_trial is not None:
        where = f"from trial {change.first_trial} on"
    elif change.last_trial is not None:
        where = f"after trial {change.last_trial}"
    return f"{text.plain_ratio(change.ratio)} of before {where}"


_SOURCES = {
    NoiseSource.CALIBRATION: "calibration: the baseline against itself",
    NoiseSource.SEARCH: "search: anchors and repeated trials",
    NoiseSource.PROOF: "proof",
}


def noise_source(row: NoiseRow) -> str:
    """Where a figure of noise comes from, and what it is of."""
    what = "pair" if row.of_pairs else "run"
    of = "" if row.count is None else f", {text.count(row.count, what)}"
    on = f" on {row.host}" if row.host else ""
    return f"{_SOURCES[row.source]}{on}{of}"


def noise_figure(row: NoiseRow) -> str:
    """The scatter with its interval, as in `3.2 % (1.9 % to 9.1 %)`."""
    figure = text.deviation(row.log_sd)
    if row.log_sd_low is None or row.log_sd_high is None:
        return figure
    return f"{figure} ({text.deviation(row.log_sd_low)} to {text.deviation(row.log_sd_high)})"


def provable(row: NoiseRow) -> str:
    """The smallest effect that could be proved; empty where that is no question."""
    if row.pairs is None:
        return ""
    pairs = text.count(row.pairs, "pair")
    if row.smallest_effect is None:
        return f"not known, in {pairs}"
    return f"{text.deviation(row.smallest_effect)} in {pairs}"


_NOISE = (
    Column("from", noise_source, number=False),
    Column("of a", lambda of_pairs: "pair" if of_pairs else "run", "of_pairs", number=False),
    Column("noise", noise_figure),
    Column("autocorrelation", lambda lag: "" if lag is None else f"{lag:+.2f}", "autocorrelation"),
    Column("provable", provable),
)


def _machine_blocks(analysis: StudyAnalysis) -> list[Block]:
    """Under what the figures were measured."""
    facts: list[tuple[str, str]] = []
    for engine in analysis.engines:
        facts.append(("engine", f"{engine.name} {engine.version or '(version not known)'}"))
        facts.append(("build", engine.build.value))
    if not analysis.engines:
        facts.append(("engine", "no run yet"))
    facts += analysis.machine.items() or [("machine", "not recorded")]
    for weighted in analysis.workloads:
        workload = weighted.workload
        sizes = f"{format_bytes(workload.key_bytes)} and {format_bytes(workload.value_bytes)}"
        facts += [
            ("workload", weighted.label),
            ("keys", text.number(workload.num)),
            ("key and value", sizes),
            *(("phase", line) for line in mixed_phases(workload)),
            ("durability", _DURABILITY[workload.durability]),
        ]
    measured = f"{text.count(len(analysis.runs), 'run')}, {text.seconds(analysis.measured_s)}"
    facts += condition_facts(analysis.conditions)
    facts += [("begun", text.moment(analysis.started_unix_s)), ("measured", measured)]
    facts += [("library", e.library or "built into the driver") for e in analysis.engines]
    facts.append(("study folder", str(analysis.path)))
    wide = frozenset({"library", "study folder"})
    return [Heading("Machine and engine"), Facts(facts, wide)]


# --- Failures, and the raw figures


def failures_section(analysis: StudyAnalysis) -> Section:
    """How the runs ended, and what failed ones said."""
    counts = "; ".join(
        f"{text.outcome(row['role'])}: {row['count']} {text.outcome(row['outcome'])}"
        for row in analysis.outcomes
    )
    columns = (
        Column(
            "outcome", lambda end: Cell(text.outcome(end), tone="fail"), "outcome", number=False
        ),
        Column("runs", key="count"),
        Column("what the run said", key="message", number=False, style="clip"),
        Column("trials", lambda t: ", ".join(map(str, t)) or NOT_KNOWN, "trials", number=False),
    )
    table = Table.of(columns, analysis.failures, "Failures", header=False)
    return Section("failures", "Failures", [Paragraph(f"{counts}.", "note"), table])


# More than this is not put into the page, which is to stay below a megabyte.
RAW_BYTES_MAX = 400_000


def raw_section(analysis: StudyAnalysis, runs_csv: str) -> Section:
    """Every run as a file, and the commands that make this report and the verdict again."""
    content, path = gzip.compress(runs_csv.encode(), mtime=0), shlex.quote(str(analysis.path))
    about = f"{text.count(len(analysis.runs), 'run')}, a line each, compressed"
    blocks: list[Block] = [Download("runs.csv.gz", "application/gzip", content, about)]
    if len(content) > RAW_BYTES_MAX:
        large = f"The runs have {format_bytes(len(content))}, more than this page carries:"
        command = f"lsmtune report {path} --format csv"
        blocks = [Paragraph(large, "quiet", command)]
    # By its file, which tune wants; the folder may lie elsewhere.
    tune = f"lsmtune tune {shlex.quote(str(analysis.file))} --dir {path}"
    blocks.append(Paragraph("This report again:", "quiet", f"lsmtune report {path}"))
    blocks.append(Paragraph("Go on with the study:", "quiet", tune))
    return Section("raw", "Raw figures, and how to repeat this", blocks, "Raw figures")
