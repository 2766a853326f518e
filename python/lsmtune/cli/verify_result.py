"""What `lsmtune verify` says at its end: to people, to programs, and below a pull request."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lsmtune.cli.config_text import config_document, differences, value_text
from lsmtune.cli.gate import History
from lsmtune.cli.output import (
    guard_line,
    interval,
    others_hold,
    proved_at_line,
    verdict_line,
    verdict_lines,
)
from lsmtune.experiment.schedule import Arm
from lsmtune.model.codec import encode
from lsmtune.model.config import Build, EngineIdentity
from lsmtune.model.verdict import MetricRatio, Verdict, VerdictOutcome
from lsmtune.proof.standalone import Verification
from lsmtune.proof.survival import Survived
from lsmtune.report.document import Block, Document, Paragraph, Section, Table, words
from lsmtune.report.render import to_markdown
from lsmtune.study.observer import verdict_document
from lsmtune.units import format_ratio

OPT_IN = "--allow-unsafe NAME for each such option, and a larger --memory, measure it all the same"
# In a comment, so that the next run finds the one that it may replace.
MARKER = "<!-- lsmtune verify -->"
_TITLES = {
    VerdictOutcome.BETTER: "proved better",
    VerdictOutcome.WORSE: "proved worse",
    VerdictOutcome.EQUIVALENT: "proved equivalent",
    VerdictOutcome.NOT_PROVEN: "nothing is proved",
}


@dataclass(frozen=True)
class Told:
    """The result; `refused` says why the candidate was not run."""

    asked: Verification
    result: Survived
    refused: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    history: History | None = None


def text(told: Told) -> str:
    """The verdict for people: one line, then what was refused or must be known."""
    asked, name = told.asked, told.asked.candidate.label
    if told.refused:
        lines = [f"{name}: no proven gain: refused as a recommendation, and not run:"]
        lines += [*(f"  - {reason}" for reason in told.refused), OPT_IN]
    else:
        first, *rest = verdict_lines(told.result.verdict)
        lines = [f"{name}: {first}", *rest, *_builds(asked), *told.result.survival.lines()]
    lines += [] if told.history is None else told.history.lines()
    return "\n".join([*lines, *(f"warning: {warning}" for warning in told.warnings)])


def document(told: Told) -> dict[str, object]:
    """The same for programs."""
    return {
        "baseline": _arm_document(told.asked.baseline),
        "candidate": _arm_document(told.asked.candidate),
        "verdict": verdict_document(told.result.verdict),
        **told.result.survival.document(),
        "refused": list(told.refused),
        "warnings": list(told.warnings),
        "history": None if told.history is None else told.history.document(),
    }


def markdown(told: Told) -> str:
    """The same as a comment: the verdict, what differs, the price, how far to trust it."""
    verdict = told.result.verdict
    title = f"lsmtune: {told.asked.candidate.label} is {_TITLES[verdict.outcome]}"
    if verdict.outcome is VerdictOutcome.NOT_PROVEN:
        title = f"lsmtune: of {told.asked.candidate.label} nothing is proved"
    sections = [
        Section("differs", "What differs from the baseline", [_differs(told.asked)]),
        Section("metrics", "What it costs", list(_price(verdict))),
        Section(
            "trust", "How far it can be trusted", [Paragraph(t, "detail") for t in _trust(told)]
        ),
    ]
    page = Document(title, verdict_line(verdict), sections)
    return f"{MARKER}\n{to_markdown(page)}"


def _differs(asked: Verification) -> Block:
    engine, baseline = asked.engine, asked.baseline.config
    here = differences(asked.candidate.config, baseline, engine)
    there = differences(baseline, asked.candidate.config, engine)
    rows = [
        (name, value_text(engine.name, name, there.get(name)), value_text(engine.name, name, value))
        for name, value in here.items()
    ]
    if not rows:
        return Paragraph("No option differs.")
    return Table(words("option", "baseline", "candidate"), rows)


def _price(verdict: Verdict) -> Iterator[Block]:
    """Every other metric with its interval, and the guards."""
    rows = [(each.metric, *_ratio(each), _word(each)) for each in verdict.others]
    if rows:
        yield Table(words("metric", "ratio", "interval", "the candidate is"), rows)
        yield Paragraph(f"Intervals: {others_hold(verdict)}.")
    yield from (Paragraph(guard_line(guard), "detail") for guard in verdict.guards)
    if not rows and not verdict.guards:
        yield Paragraph("No other metric was compared.")


def _ratio(of: MetricRatio) -> tuple[str, str]:
    return "" if of.ratio is None else f"{format_ratio(of.ratio)}x", interval(of) or "none"


def _word(of: MetricRatio) -> str:
    """Better or worse where the whole interval says so."""
    if of.ratio_low is None or of.ratio_high is None or of.ratio_low <= 1.0 <= of.ratio_high:
        return "not told apart"
    if not of.direction:
        return "different"
    return "better" if (of.ratio_low > 1.0) == (of.direction == "maximize") else "worse"


def _trust(told: Told) -> Iterator[str]:
    verdict, asked = told.result.verdict, told.asked
    yield f"{verdict.pairs} pairs of fresh, interleaved runs of {asked.workload.name}"
    yield from _builds(asked) or [_build_text(asked.engine)]
    yield from map(proved_at_line, verdict.proved_at)
    yield from told.result.survival.lines()
    yield from (f"refused, not run: {reason}" for reason in told.refused)
    if verdict.what_it_takes:
        yield f"what it takes: {verdict.what_it_takes}"
    yield from () if told.history is None else told.history.lines()
    yield from (f"warning: {warning}" for warning in (*verdict.notes, *told.warnings))


def _builds(asked: Verification) -> list[str]:
    """Which build each side ran on, where they differ."""
    if len(asked.builds) < 2:
        return []
    sides = (("baseline", asked.baseline), ("candidate", asked.candidate))
    return [f"{side}: {arm.label} on {_build_text(arm.engine)}" for side, arm in sides]


def _arm_document(arm: Arm) -> dict[str, object]:
    return config_document(arm.config) | {"engine": encode(arm.engine)}


def _build_text(engine: EngineIdentity) -> str:
    """A build of an engine in words: `rocksdb 7.8.3, /usr/lib/librocksdb.so.7.8 (assertions)`."""
    version = engine.version or "of unknown version"
    build = "" if engine.build is Build.UNKNOWN else f" ({engine.build.value})"
    library = f", {engine.library}" if engine.library else ""
    return f"{engine.name} {version}{library}{build}"
