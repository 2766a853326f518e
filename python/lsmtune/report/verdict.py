"""A verdict and its price: a page's answer, lines and tables; the same wherever they are told."""

from __future__ import annotations

from lsmtune.model.verdict import GuardResult, MetricRatio, Verdict, VerdictOutcome
from lsmtune.report import words as text
from lsmtune.report.document import (
    Answer,
    Block,
    Cell,
    Column,
    Notice,
    Notices,
    Paragraph,
    Table,
    paragraphs,
)
from lsmtune.space.constraint import guard_limit
from lsmtune.stats.sequential import pairs_at_least


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
    if is_too_dear(verdict):
        lead = "not recommended"
    ratio = ""
    if verdict.ratio is not None:
        better = ", lower is better" if verdict.direction == "minimize" else ""
        ratio = f"{text.plain_ratio(verdict.ratio)}x the baseline ({verdict.metric}{better})"
        ratio = f"{ratio}, {_interval(verdict)}, {text.count(verdict.pairs, 'pair')}"
        if verdict.share_of_target < 1.0:
            ratio = f"{ratio}, at {verdict.share_of_target:.2g} of the target's size"
    line = ": ".join(filter(None, (lead, ratio)))
    return f"{line}; {verdict.why}" if verdict.why else line


def is_too_dear(verdict: Verdict) -> bool:
    """Whether there is a gain that is not recommended for what it costs."""
    refused = verdict.outcome is VerdictOutcome.NOT_PROVEN and verdict.breaks_guard
    return refused and changed(verdict) == "better"


def running_line(verdict: Verdict) -> str:
    """What the pairs say so far, as in `after 7 pairs: 1.42x, 95 % CI 1.30 to 1.55`."""
    pairs = f"after {text.count(verdict.pairs, 'pair')}"
    if verdict.ratio is None:
        return f"{pairs}: no ratio yet"
    return f"{pairs}: {text.plain_ratio(verdict.ratio)}x, {_interval(verdict)}"


def _interval(verdict: Verdict) -> str:
    ends = text.interval(verdict)
    return f"{text.percent(verdict.confidence)} CI {ends}" if ends else "no interval"


def verdict_blocks(verdict: Verdict, of: str = "") -> list[Block]:
    """The verdict after what it is `of`: what it takes, its sizes, its price, what to mind."""
    takes = [f"what it takes: {verdict.what_it_takes}"] if verdict.what_it_takes else []
    sizes = [f"proved at {line}" for line in size_lines(verdict)]
    return [
        Paragraph(f"{of}{verdict_line(verdict)}"),
        *paragraphs(f"  {line}" for line in (*takes, *sizes)),
        *price_blocks(verdict),
        Notices([Notice(note) for note in verdict.notes]),
    ]


def size_lines(verdict: Verdict) -> list[str]:
    """The size and the length of the runs, a line for each workload."""
    lines = []
    for at in verdict.proved_at:
        counts = (
            ("flushes", at.baseline_flushes, at.candidate_flushes),
            ("compactions", at.baseline_compactions, at.candidate_compactions),
        )
        both = [f"{b:,} and {c:,} {n}" for n, b, c in counts if b is not None and c is not None]
        work = f"; baseline and candidate: {', '.join(both)}" if both else ""
        model = f" ({at.share_of_target:.2g} of the target)" if at.share_of_target < 1.0 else ""
        size = f"{text.count(at.records, 'record')}{model}"
        warmup = f" after {at.warmup_operations:,} to warm up" if at.warmup_operations else ""
        work = f"{text.count(at.operations, 'operation')}{warmup}{work}"
        lines.append(f"{at.workload}: {size}, {work}")
    return lines


# --- What a page says first: of the verdict, and of its price

KEEP = "keep the baseline, or search longer with a larger budget"


def verdict_answer(verdict: Verdict) -> Answer:
    """What was proved, and below it the line that commands say of it."""
    metric, ratio = text.metric_label(verdict.metric), text.ratio(verdict.ratio)
    lead, line = f"the baseline's {metric}", f"{text.sentence(verdict_line(verdict))}."
    if verdict.outcome is VerdictOutcome.BETTER:
        if verdict.share_of_target < 1.0:
            lead = f"{lead}, at {verdict.share_of_target:.2g} of the target's size"
        return Answer("good", "Proven gain", ratio, lead, line)
    if verdict.outcome is VerdictOutcome.WORSE:
        figure = "Worse" if verdict.ratio is None else ratio
        lead = f"{lead}: do not deploy the candidate"
        return Answer("bad", "Worse than the baseline", figure, lead, line)
    if verdict.outcome is VerdictOutcome.EQUIVALENT:
        lead = f"{metric} does not differ enough to matter"
        return Answer("neutral", "Equivalent", ratio, lead, line)
    if is_too_dear(verdict):
        lead = f"{lead}, at a price that a guard forbids: keep the baseline"
        return Answer("bad", "Not recommended", ratio, lead, line)
    return Answer("neutral", "Not proven", "No proven gain", f"{text.sentence(KEEP)}.", line)


def price_answer(verdict: Verdict) -> Answer:
    """What the gain costs, in the words of the guards: the dearest of them first."""
    if not (verdict.pairs or verdict.pairs_failed or verdict.guards):
        return Answer("neutral", "The price", "Not compared", "no pair was run")
    if not verdict.guards:
        lead = "no guard was asked for: what the objective does not see may have any price"
        return Answer("neutral", "The price", "Not guarded", lead)
    broken = [guard for guard in verdict.guards if guard.held is False]
    observed = [guard for guard in verdict.guards if guard.held is not None]
    unobserved = len(verdict.guards) - len(observed)
    # The one that is furthest over its limit, or nearest to it.
    dearest = max(broken or observed or verdict.guards, key=_share_of_limit)
    of = f"of {text.count(len(verdict.guards), 'guard')}"
    tone, figure, hold = "good", "Guards hold", f"the dearest {of}, and all hold"
    if broken:
        tone, figure = "bad", "Guard broken"
        hold = f"{len(broken)} {of} {'is' if len(broken) == 1 else 'are'} broken"
    elif not observed:
        tone, figure, hold = "neutral", "Not observed", "not observed"
    elif unobserved:
        tone, figure = "neutral", "Not all observed"
        hold = f"the dearest {of}; {unobserved} not observed, the others hold"
    limit = guard_limit(dearest.guard)
    if limit is None or dearest.ratio is None:
        return Answer(tone, "The price", figure, f"{dearest.guard}: {hold}")
    allowed = f"the guard allows {text.ratio(limit[1])}"
    lead = f"the baseline's {text.metric_label(limit[0])} ({allowed}): {hold}"
    return Answer(tone, "The price", text.ratio(dearest.ratio), lead)


def _share_of_limit(guard: GuardResult) -> float:
    limit = guard_limit(guard.guard)
    return guard.ratio / limit[1] if limit and guard.ratio else 0.0


# --- The price in tables and lines


def price_blocks(verdict: Verdict) -> list[Block]:
    """The guards; the other metrics, and how surely their intervals hold. Empty without either."""
    blocks: list[Block] = []
    if verdict.guards:
        fold = f"Figures of {text.count(len(verdict.guards), 'guard')}"
        blocks.append(Table.of(_GUARDS, verdict.guards, "Guards", fold=fold))
    if verdict.others:
        fold = f"Figures of {text.count(len(verdict.others), 'other metric')}"
        blocks.append(Table.of(_OTHERS, verdict.others, "Each metric by itself", fold=fold))
        blocks.append(Paragraph(_together(verdict), "quiet"))
    return blocks


def price_lines(verdict: Verdict) -> list[str]:
    """A line for each guard, the broken ones first, and for each metric that is worse."""
    guards = sorted(verdict.guards, key=lambda guard: guard.held is not False)
    worse = [other for other in verdict.others if changed(other) == "worse"]
    return [
        *(f"{guard.guard}: {_ended(guard).line}{_ratio(guard)}" for guard in guards),
        *(f"{text.metric_label(other.metric)}: worse{_ratio(other)}" for other in worse),
    ]


def _ratio(measured: MetricRatio | GuardResult) -> str:
    ends = text.interval(measured)
    ratio = "" if measured.ratio is None else f", {text.ratio(measured.ratio)}"
    return f"{ratio} ({ends})" if ends else ratio


def _ended(guard: GuardResult) -> Cell:
    if guard.held is None:
        return Cell("no pair observed it", tone="sys")
    broken = f"broken in {guard.broken} of {text.count(guard.pairs, 'pair')}"
    where = (f"in {guard.where}",) if guard.where else ()
    if not guard.held:
        return Cell(broken, tone="fail", below=where)
    return Cell("held", below=(broken, *where) if guard.broken else where)


def changed(measured: Verdict | MetricRatio) -> str:
    """`better`, `worse` or `different` where the whole interval says so, else `not told apart`."""
    low, high = measured.ratio_low, measured.ratio_high
    if low is None or high is None or low <= 1.0 <= high:
        return "not told apart"
    if not measured.direction:
        return "different"
    return "better" if (low > 1.0) == (measured.direction == "maximize") else "worse"


def _together(verdict: Verdict) -> str:
    """Whether the intervals of the other metrics hold together, and why."""
    confidence, each = text.percent(verdict.confidence), verdict.confidence_each
    if each is None:
        return f"Each interval holds at {confidence} by itself, not all of them together."
    line = (
        f"All these intervals hold together at {confidence}: each one is at {text.percent(each)} "
        "(Bonferroni), because who looks at several metrics finds one that differs by chance."
    )
    least = pairs_at_least(each)
    if verdict.pairs < least:
        line += f" That needs {least} pairs, so that these {verdict.pairs} give none."
    return line


_RATIO = (Column("ratio", text.ratio, "ratio"), Column("interval", text.interval))
_GUARDS = (
    Column("guard", key="guard", number=False),
    *_RATIO,
    Column("the candidate", _ended, number=False),
)
_BETTER = {"maximize": "higher", "minimize": "lower"}
_OTHERS = (
    Column("metric", text.metric_label, "metric", number=False),
    Column("better is", lambda direction: _BETTER.get(direction, ""), "direction", number=False),
    *_RATIO,
    Column("the candidate is", changed, number=False),
)
