"""What `lsmtune verify` says at its end: to people, to programs, and below a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lsmtune.cli.choices import config_document
from lsmtune.cli.gate import History
from lsmtune.engines.differences import differences, known_defaults
from lsmtune.experiment.schedule import Arm
from lsmtune.model.codec import encode
from lsmtune.model.config import Build, EngineIdentity
from lsmtune.model.verdict import Verdict, VerdictOutcome
from lsmtune.proof.standalone import Verification
from lsmtune.proof.survival import Survived
from lsmtune.report.differences import difference_table
from lsmtune.report.document import Block, Document, Notice, Notices, Section, paragraphs
from lsmtune.report.render import to_markdown
from lsmtune.report.verdict import (
    is_too_dear,
    price_blocks,
    size_lines,
    verdict_blocks,
    verdict_line,
)
from lsmtune.report.words import count
from lsmtune.study.observer import verdict_document

OPT_IN = "--allow-unsafe NAME for each such option, and a larger --memory, measure it all the same"
# In a comment, so that the next run finds the one that it may replace.
MARKER = "<!-- lsmtune verify -->"
_TITLES = {
    VerdictOutcome.BETTER: "{} is proved better",
    VerdictOutcome.WORSE: "{} is proved worse",
    VerdictOutcome.EQUIVALENT: "{} is proved equivalent",
    VerdictOutcome.NOT_PROVEN: "of {} nothing is proved",
}


@dataclass(frozen=True)
class VerifyReport:
    """What was asked of `verify`, what it came to, and what must be known of it.

    `refused` says why the candidate was not run, `notes` what was chosen as the user did not say.
    """

    asked: Verification
    result: Survived
    refused: Sequence[str] = ()
    warnings: Sequence[str] = ()
    notes: Sequence[str] = ()
    history: History | None = None


def view(report: VerifyReport) -> list[Block]:
    """The verdict for people, and what was refused or must be known."""
    asked, name = report.asked, report.asked.candidate.label
    if report.refused:
        first = f"{name}: no proven gain: refused as a recommendation, and not run:"
        blocks = paragraphs([first, *(f"  - {reason}" for reason in report.refused), OPT_IN])
    else:
        blocks = verdict_blocks(report.result.verdict, f"{name}: ")
        blocks += paragraphs([*_builds(asked), *report.result.survival.lines()])
    blocks += [] if report.history is None else paragraphs(report.history.lines())
    return [*blocks, Notices([Notice(warning) for warning in report.warnings])]


def document(report: VerifyReport) -> dict[str, object]:
    """The same for programs."""
    return {
        "baseline": _arm_document(report.asked.baseline),
        "candidate": _arm_document(report.asked.candidate),
        "verdict": verdict_document(report.result.verdict),
        **report.result.survival.document(),
        "refused": list(report.refused),
        "warnings": list(report.warnings),
        "history": encode(report.history),
        "notes": list(report.notes),
    }


def markdown(report: VerifyReport) -> str:
    """The same as a comment: the verdict, what differs, the price, how far to trust it."""
    verdict = report.result.verdict
    title = f"lsmtune: {_title(verdict, report.asked.candidate.label)}"
    price = price_blocks(verdict) or paragraphs(["No other metric was compared."])
    sections = [
        Section("differs", "What differs from the baseline", [_differs(report.asked)]),
        Section("price", "What it costs", price),
        Section("trust", "How far it can be trusted", paragraphs(_trust(report), "detail")),
    ]
    page = Document(title, verdict_line(verdict), sections)
    return f"{MARKER}\n{to_markdown(page)}"


def _title(verdict: Verdict, name: str) -> str:
    """What the verdict says of the candidate `name`."""
    if is_too_dear(verdict):
        return f"{name} is not recommended"
    return _TITLES[verdict.outcome].format(name)


def _differs(asked: Verification) -> Block:
    engine = asked.engine
    before, after = asked.baseline.config.options, asked.candidate.config.options
    differing = differences(engine.name, before, after, known_defaults(engine))
    return difference_table(differing, "baseline", "candidate")


def _trust(report: VerifyReport) -> Iterator[str]:
    verdict, asked = report.result.verdict, report.asked
    yield f"{count(verdict.pairs, 'pair')} of fresh, interleaved runs of {asked.workload.name}"
    yield from _builds(asked) or [_build_text(asked.engine)]
    yield from size_lines(verdict)
    yield from report.result.survival.lines()
    yield from (f"refused, not run: {reason}" for reason in report.refused)
    if verdict.what_it_takes:
        yield f"what it takes: {verdict.what_it_takes}"
    yield from () if report.history is None else report.history.lines()
    yield from (f"warning: {warning}" for warning in (*verdict.notes, *report.warnings))


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
