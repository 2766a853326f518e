"""The sentences of a study's report, the same in every form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lsmtune.model.goal import Direction
from lsmtune.model.metrics import BY_NAME
from lsmtune.model.request import PairMethod
from lsmtune.model.verdict import Verdict, VerdictOutcome
from lsmtune.proof.crash_test import WHAT_IT_IS, CrashOutcome, CrashTest
from lsmtune.report import words as text
from lsmtune.report.analysis import StudyAnalysis
from lsmtune.report.tables import Censored, Importance, PairRow, RungRow, Statistics, TrialRow
from lsmtune.report.trust_tables import (
    AnchorSeries,
    Conditions,
    Ended,
    MachineChange,
    NoiseRow,
    NoiseSource,
    ProofFacts,
)


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


# --- Sentences that the page and the Markdown report share

_QUESTIONS = {
    "ped-anova": "how much each parameter tells the best trials from all trials",
    "fanova": "which share of the variance each parameter explains by itself",
}
_METHODS = {"ped-anova": "PED-ANOVA", "fanova": "fANOVA"}


def method_name(found: Importance) -> str:
    """`PED-ANOVA` or `fANOVA`."""
    return _METHODS.get(found.method, found.method)


def importance_note(found: Importance) -> str:
    """What the table of importance says, and what it does not."""
    head = f"{method_name(found)}: {_QUESTIONS.get(found.method, 'importance')}"
    if found.why:
        return f"{head}. No figures: it {_needs(found.why)}."
    counted = text.count(found.trials, "trial")
    if found.trials_without_value:
        counted += f" and {found.trials_without_value:,} without a value, as worse than those"
    return (
        f"{head}, over {counted}. The interval holds the middle {text.percent(found.interval)} of "
        f"{found.resamples} resamples of the trials. A variable of random numbers came to "
        f"{text.share(found.chance)}: what is not above that in nearly every resample is not "
        "told from chance."
    )


def _needs(why: str) -> str:
    return why if why.startswith("needs") else f"cannot be had, as {why}"


def rank(low: int, high: int) -> str:
    """`1`, or `2 to 5`."""
    return str(low) if low == high else f"{low} to {high}"


def statistics_facts(found: Statistics) -> list[tuple[str, str]]:
    """The counts and the budget, as name and value."""
    facts = [
        ("finished", f"{found.finished:,}"),
        ("complete", f"{found.complete:,}"),
        ("pruned", f"{found.pruned:,}"),
        ("failed", f"{found.failed:,}"),
        ("finished without pruning", f"{found.without_pruning:,}"),
        ("put back", f"{found.put_back:,}"),
    ]
    facts.append(("refused before a run", f"{sum(found.refused.values()):,}"))
    facts += [(f"refused: {reason}", f"{count:,}") for reason, count in found.refused.items()]
    facts += [(f"broke {broken}", f"{count:,}") for broken, count in found.broken.items()]
    facts.append(("time", _of_budget(text.seconds(found.spent_s), found)))
    if found.budget_trials is not None:
        facts.append(("trials of the budget", f"{found.finished:,} of {found.budget_trials:,}"))
    return facts


def _of_budget(spent: str, found: Statistics) -> str:
    if found.budget_s is None:
        return spent
    used = text.share(found.spent_s / found.budget_s) if found.budget_s > 0 else ""
    return f"{spent} of {text.seconds(found.budget_s)} ({used})"


def rung_name(row: RungRow) -> str:
    """`rung 1, after 2s`, `rung 0, at 5,000 keys`, `step 3`."""
    if row.at_s is None and row.at_keys is None:
        return f"step {row.rung:,}"
    return f"rung {row.rung}, {text.reached(Censored(row.rung, row.at_s, row.at_keys))}"


# --- Burst, sustained and drain as tables: grouped by phase, in words


def performance_label(metric: str) -> str:
    """A figure's name where all of them stand side by side."""
    known = BY_NAME.get(metric)
    return (known.short if known else "") or text.metric_label(metric)


# --- Sentences on anchors, noise, the proof and the conditions, which all reports share

_SEARCHED = "from the search; the gain is in the verdict"
_NOT_PROVED = "from the search; only a proof tells the gain"
_TRUST_WORDS_METHODS = {
    PairMethod.WHOLE: "one whole run follows the other",
    PairMethod.SLICES: "both take turns in short slices, while the other one is frozen",
    PairMethod.DUET: "both run at the same time, each on its own half of the cores",
}
_SOURCES = {
    NoiseSource.CALIBRATION: "calibration: the baseline against itself",
    NoiseSource.SEARCH: "search: anchors and repeated trials",
    NoiseSource.PROOF: "proof",
}
_LIMITED = {"cgroup": "by a control group", "watch": "by watching it"}
_PAGE_CACHE = {
    "warm": "warm: whatever earlier phases left in it",
    "cold": "cold: dropped before each measure phase",
    "direct": "direct: the engine reads and writes past it",
}


def searched(verdict: Verdict | None) -> str:
    """What the best value of a search is: not a proof."""
    return _NOT_PROVED if verdict is None else _SEARCHED


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
    told = ", ".join(_change(change) for change in series.changes)
    return f"the machine changed {times}: {told}; {_again(series.changes)}"


def _change(change: MachineChange) -> str:
    if change.first_trial is not None:
        where = f"from trial {change.first_trial} on"
    elif change.last_trial is not None:
        where = f"after trial {change.last_trial}"
    else:
        where = "ahead of the first trial"
    return f"{text.plain_ratio(change.ratio)} of before {where}"


def _again(changes: Sequence[MachineChange]) -> str:
    numbers = [number for change in changes for number in change.run_again]
    left = sum(len(change.left) for change in changes)
    were = "were" if len(numbers) > 1 else "was"
    told = f"{text.count(len(numbers), 'trial') if numbers else 'no trial'} {were} run again"
    if numbers:
        told += f" ({', '.join(map(str, numbers))})"
    return f"{told}, {left:,} not yet" if left else told


def noise_source(row: NoiseRow) -> str:
    """Where a figure of noise comes from, and what it is of."""
    what = "pair" if row.of_pairs else "run"
    of = "" if row.count is None else f", {text.count(row.count, what)}"
    return f"{_SOURCES[row.source]}{of}"


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


def proof_lines(verdict: Verdict | None, proof: ProofFacts | None) -> list[str]:
    """How the proof was made, why it stopped, what it would take, and what to mind."""
    if verdict is None or proof is None:
        return []
    lines = []
    if verdict.method in _TRUST_WORDS_METHODS:
        method = _TRUST_WORDS_METHODS[PairMethod(verdict.method)]
        lines.append(f"{text.count(verdict.pairs, 'pair')} by {verdict.method}: {method}.")
    if proof.ended is not None:
        lines.append(_stopped(verdict, proof))
    if verdict.what_it_takes:
        lines.append(f"What it takes: {verdict.what_it_takes}.")
    return lines + [f"{text.sentence(note)}." for note in verdict.notes]


def _stopped(verdict: Verdict, proof: ProofFacts) -> str:
    limit = f" ({text.deviation(proof.smallest_effect)})" if proof.smallest_effect else ""
    whys = {
        Ended.DECIDED: "as soon as the interval excluded no difference",
        Ended.EQUIVALENT: f"as soon as the interval lay within what is too small to matter{limit}",
        Ended.PAIRS: f"after all {text.count(proof.pairs_max, 'pair')} that were planned",
        Ended.OTHER: f"because {verdict.why}" if verdict.why else "before anything was clear",
    }
    return f"It stopped {whys[proof.ended or Ended.OTHER]}."


def correction_line(verdict: Verdict, proof: ProofFacts | None) -> str:
    """Whether the intervals of the other metrics hold together, and why."""
    confidence = text.percent(verdict.confidence)
    if verdict.confidence_each is None:
        return f"Each interval holds at {confidence} by itself, not all of them together."
    each = text.percent(verdict.confidence_each)
    line = (
        f"All these intervals hold together at {confidence}: each one is at {each} "
        "(Bonferroni), because who looks at several metrics finds one that differs by chance."
    )
    least = None if proof is None else proof.pairs_least_each
    if least is not None and verdict.pairs < least:
        line += f" That needs {least} pairs, so that these {verdict.pairs} give none."
    return line


def pairs_note(pairs: Sequence[PairRow], workloads: int) -> str:
    """How each pair was run."""
    methods = {row.method for row in pairs if row.counts}
    method = next(iter(methods)) if len(methods) == 1 else ""
    alone = "two fresh runs" if workloads == 1 else "a fresh run per workload and configuration,"
    each = "one per configuration, " if workloads == 1 else ""
    if method not in _TRUST_WORDS_METHODS:
        return f"Each pair is {alone} on the same new seed, {each}in alternating order."
    how = _TRUST_WORDS_METHODS[PairMethod(method)]
    left = sum(not row.counts for row in pairs)
    out = f" {text.count(left, 'pair')} by another method does not count." if left else ""
    return f"Each pair is {alone} on the same new seed, {each}the first drawn by lot: {how}.{out}"


def runs_told(row: TrialRow, metric: str) -> str:
    """The runs of a trial as measured, in their order; in brackets those that do not count.

    Empty where its value is just that of its only run.
    """
    if len(row.runs) == 1 and row.runs[0].value == row.value:
        return ""
    told = (
        text.quantity(metric, run.value) if run.counts else f"({text.quantity(metric, run.value)})"
        for run in row.runs
        if run.value is not None
    )
    return " · ".join(told)


def told_words(row: TrialRow, metric: str) -> str:
    """What the sampler was told of a trial: its value and how sure it is, or how it ended."""
    told = row.told
    if told is None:
        return ""
    if told.values is None or len(told.values) != 1:
        return told.state
    value = "" if told.values[0] == row.value else text.quantity(metric, told.values[0])
    noise = "" if told.sd is None else f"± {text.quantity(metric, told.sd)}"
    return f"{value} {noise}".strip() or "the value"


def condition_facts(found: Conditions) -> list[tuple[str, str]]:
    """Page cache, memory and stolen time, as name and value."""
    facts = [("page cache", text_) for text_ in _page_cache(found)]
    if found.cached_share_max is not None:
        told = f"at most {text.share(found.cached_share_max)} of the database"
        facts.append(("still cached at a cold start", told))
    limited = [
        f"{_LIMITED.get(how, how)} ({text.count(runs, 'run')})"
        for how, runs in found.memory_limited_by.items()
    ]
    if limited:
        facts.append(("memory limited", ", ".join(limited)))
    if found.steal_share_median is not None and found.steal_share_max is not None:
        median, most = text.share(found.steal_share_median), text.share(found.steal_share_max)
        told = f"{median} of a run, at most {most}" if found.steal_share_max else "none"
        facts.append(("processor time taken by the host", told))
    return facts


def _page_cache(found: Conditions) -> list[str]:
    kinds = set(found.page_cache.values())
    if len(kinds) == 1:
        return [_PAGE_CACHE.get(kind, kind) for kind in kinds]
    return [f"{label}: {_PAGE_CACHE.get(kind, kind)}" for label, kind in found.page_cache.items()]


def crash_words(found: CrashTest) -> str:
    """How the tuned configuration's database stood a crash."""
    if found.outcome is CrashOutcome.NOT_DONE:
        return f"Crash test not done: {found.why}."
    why = f" {text.sentence(found.why)}." if found.why else ""
    return (
        f"Crash test {found.outcome.value}: a load was killed after {found.acknowledged:,} "
        f"acknowledged writes under durability {found.durability.value}, and "
        f"{found.keys_checked:,} keys were looked up; {found.keys_lost:,} were lost and "
        f"{found.keys_wrong:,} wrong.{why} ({text.sentence(WHAT_IT_IS)}.)"
    )
