"""The verdict in words, the same words in every format."""

from __future__ import annotations

from dataclasses import dataclass

from lsmtune.analysis import StudyAnalysis
from lsmtune.records.objective import Direction
from lsmtune.records.verdict import Verdict, VerdictOutcome
from lsmtune.report import text


@dataclass(frozen=True)
class Headline:
    """`tone` is one of good, bad, neutral, open; `figure` is the big text, `lead` goes with it."""

    tone: str
    label: str
    figure: str
    lead: str
    detail: str


def headline(analysis: StudyAnalysis) -> Headline:
    """What to say first."""
    verdict = analysis.verdict
    if verdict is None:
        return _unfinished(analysis)
    metric = text.metric_label(verdict.metric)
    interval = _interval(verdict)
    if verdict.outcome is VerdictOutcome.BETTER:
        lead = f"the baseline's {metric}"
        return Headline("good", "Proven gain", text.ratio(verdict.ratio), lead, interval)
    if verdict.outcome is VerdictOutcome.WORSE:
        lead = f"the baseline's {metric}: do not deploy the candidate"
        figure = text.ratio(verdict.ratio) if verdict.ratio is not None else "Worse"
        return Headline("bad", "Worse than the baseline", figure, lead, _with_why(verdict))
    if verdict.outcome is VerdictOutcome.EQUIVALENT:
        lead = f"{metric} does not differ enough to matter"
        return Headline("neutral", "Equivalent", text.ratio(verdict.ratio), lead, interval)
    lead = "Keep the baseline, or search longer."
    return Headline("neutral", "Not proven", "No proven gain", lead, _with_why(verdict))


def direction_words(direction: str) -> str:
    """`higher is better` or `lower is better`; empty where nobody said which."""
    if not direction:
        return ""
    return "higher is better" if direction == Direction.MAXIMIZE else "lower is better"


def _interval(verdict: Verdict) -> str:
    pairs = text.count(verdict.pairs, "pair")
    if verdict.ratio is None:
        return f"No ratio could be measured ({pairs})."
    told = f"{text.ratio(verdict.ratio)} over {pairs} of fresh, interleaved runs"
    if verdict.ratio_low is None or verdict.ratio_high is None:
        return f"Measured {told}; no interval yet."
    return (
        f"{text.percent(verdict.confidence)} confidence interval "
        f"{text.ratio(verdict.ratio_low)} to {text.ratio(verdict.ratio_high)}, from {pairs} of "
        f"fresh, interleaved runs; {direction_words(verdict.direction)}."
    )


def _with_why(verdict: Verdict) -> str:
    measured = ""
    if verdict.ratio is not None:
        measured = f"Measured {text.ratio(verdict.ratio)}. {_interval(verdict)}"
    why = f"{verdict.why[:1].upper()}{verdict.why[1:]}." if verdict.why else ""
    return " ".join(part for part in (why, measured) if part)


def _unfinished(analysis: StudyAnalysis) -> Headline:
    best = analysis.history.best_ratio
    trials = text.count(len(analysis.history.trials), "trial")
    if best is None:
        detail = f"{trials} so far, and none gave a value that can be compared."
    else:
        detail = (
            f"After {trials} the best is trial {analysis.history.best_trial}, "
            f"{text.ratio(best)} the baseline by the runs of the search: a promise, not a proof."
        )
    lead = "The proof has not been made yet. Run lsmtune tune on the study again to go on."
    return Headline("open", "Unfinished", "No verdict yet", lead, detail)
