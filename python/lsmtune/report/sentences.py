"""The sentences of a study's report, the same in every form."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lsmtune.model.goal import Direction
from lsmtune.model.metrics import BY_NAME
from lsmtune.model.request import PairMethod
from lsmtune.model.verdict import GuardResult, Verdict, VerdictOutcome
from lsmtune.report import words as text
from lsmtune.report.document import Answer
from lsmtune.report.tables import (
    AnchorSeries,
    Censored,
    Conditions,
    Ended,
    Importance,
    MachineChange,
    NoiseRow,
    NoiseSource,
    PairRow,
    ProofFacts,
    Row,
    TrialRow,
)

if TYPE_CHECKING:  # it brings scipy's statistics, which no other sentence needs
    from lsmtune.report.analysis import StudyAnalysis


def headline(analysis: StudyAnalysis) -> Answer:
    """What to say first."""
    verdict, history = analysis.verdict, analysis.history
    if verdict is None:
        trials, best = text.count(len(history.trials), "trial"), history.best_ratio
        detail = f"{trials} so far, and none {none_best(history.trials)}."
        if history.best_trial is not None:
            told = text.quantity(analysis.metric, history.best_value)
            told = told if best is None else f"{text.ratio(best)} the baseline"
            detail = (
                f"After {trials} the best is trial {history.best_trial}, {told} "
                "by the runs of the search: a promise, not a proof."
            )
        lead = "The proof has not been made yet. Run lsmtune tune on the study again to go on."
        return Answer("open", "Unfinished", "No verdict yet", lead, detail)
    metric = text.metric_label(verdict.metric)
    interval, measured = _interval(verdict), ""
    if verdict.ratio is not None:
        measured = f"Measured {text.ratio(verdict.ratio)}. {interval}"
    why = f"{text.sentence(verdict.why)}." if verdict.why else ""
    with_why = f"{why} {measured}".strip()
    if verdict.outcome is VerdictOutcome.BETTER:
        lead = f"the baseline's {metric}"
        if verdict.share_of_target < 1.0:
            lead = f"{lead}, at {verdict.share_of_target:.2g} of the target's size"
        return Answer("good", "Proven gain", text.ratio(verdict.ratio), lead, interval)
    if verdict.outcome is VerdictOutcome.WORSE:
        lead = f"the baseline's {metric}: do not deploy the candidate"
        figure = text.ratio(verdict.ratio) if verdict.ratio is not None else "Worse"
        return Answer("bad", "Worse than the baseline", figure, lead, with_why)
    if verdict.outcome is VerdictOutcome.EQUIVALENT:
        lead = f"{metric} does not differ enough to matter"
        return Answer("neutral", "Equivalent", text.ratio(verdict.ratio), lead, interval)
    if verdict.breaks_guard and verdict.ratio is not None:
        lead = f"the baseline's {metric}, at a price that a guard forbids: keep the baseline"
        return Answer("bad", "Not recommended", text.ratio(verdict.ratio), lead, with_why)
    lead = "Keep the baseline, or search longer."
    return Answer("neutral", "Not proven", "No proven gain", lead, with_why)


def none_best(trials: Sequence[TrialRow]) -> str:
    """What none of the `trials` of a study without a best one did."""
    if any(row.values is not None for row in trials):
        return "met what the study asks of one"
    return "gave a value that can be compared"


_GUARD = re.compile(r"([\w.]+) <= ([0-9.]+) \* baseline$")


def guard_limit(guard: str) -> tuple[str, float] | None:
    """Metric and limit of a guard such as `metric <= 1.5 * baseline`; None of other forms."""
    match = _GUARD.match(guard)
    return None if match is None else (match[1], float(match[2]))


def price(verdict: Verdict) -> Answer:
    """What the gain costs, in the words of the guards: the dearest of them first."""
    if not verdict.guards:
        lead = "no guard was asked for: what the objective does not see may have any price"
        return Answer("neutral", "The price", "Not guarded", lead)
    broken = [guard for guard in verdict.guards if guard.held is False]
    seen = [guard for guard in verdict.guards if guard.held is not None]
    unseen = len(verdict.guards) - len(seen)
    # The one that is furthest over its limit, or nearest to it.
    dearest = max(broken or seen or verdict.guards, key=_share_of_limit)
    of = f"of {text.count(len(verdict.guards), 'guard')}"
    tone, figure, hold = "good", "Guards hold", f"the dearest {of}, and all hold"
    if broken:
        tone, figure = "bad", "Guard broken"
        hold = f"{len(broken)} {of} {'is' if len(broken) == 1 else 'are'} broken"
    elif not seen:
        tone, figure, hold = "neutral", "Not observed", "not observed"
    elif unseen:
        tone, figure = "neutral", "Not all observed"
        hold = f"the dearest {of}; {unseen} not observed, the others hold"
    limit = guard_limit(dearest.guard)
    if limit is None or dearest.ratio is None:
        return Answer(tone, "The price", figure, f"{dearest.guard}: {hold}")
    allowed = f"the guard allows {text.ratio(limit[1])}"
    lead = f"the baseline's {text.metric_label(limit[0])} ({allowed}): {hold}"
    return Answer(tone, "The price", text.ratio(dearest.ratio), lead)


def _share_of_limit(guard: GuardResult) -> float:
    limit = guard_limit(guard.guard)
    return guard.ratio / limit[1] if limit and limit[1] > 0 and guard.ratio else 0.0


def not_measured(analysis: StudyAnalysis) -> list[str]:
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


# --- Sentences that the page and the Markdown report share

_METHODS = {
    "ped-anova": "PED-ANOVA: how much each parameter tells the best trials from all trials",
    "fanova": "fANOVA: which share of the variance each parameter explains by itself",
}


def importance_note(table: Importance) -> str:
    """What the table of importance says, and what it does not."""
    head = _METHODS[table.method]
    if table.why:
        needs = table.why if table.why.startswith("needs") else f"cannot be had, as {table.why}"
        return f"{head}. No figures: it {needs}."
    counted = text.count(table.trials, "trial")
    if table.trials_without_value:
        counted += f" and {table.trials_without_value:,} without a value, as worse than those"
    return (
        f"{head}, over {counted}. The interval holds the middle {text.percent(table.interval)} of "
        f"{table.resamples} resamples of the trials. A variable of random numbers came to "
        f"{text.share(table.chance)}: what is not above that in nearly every resample is not "
        "told from chance."
    )


def rank(low: int, high: int) -> str:
    """`1`, or `2 to 5`."""
    return str(low) if low == high else f"{low} to {high}"


_COUNTS = {"without_pruning": "finished without pruning", "put_back": "put back"}


def statistics_facts(study: Row) -> list[tuple[str, str]]:
    """The counts and the budget, as name and value."""
    counts = ("finished", "complete", "pruned", "failed", *_COUNTS)
    facts = [(_COUNTS.get(name, name), f"{study[name]:,}") for name in counts]
    facts.append(("refused before a run", f"{sum(study['refused'].values()):,}"))
    facts += [(f"refused: {reason}", f"{count:,}") for reason, count in study["refused"].items()]
    facts += [(f"broke {broken}", f"{count:,}") for broken, count in study["broken"].items()]
    elapsed_s, budget_s = study["elapsed_s"], study["budget_s"]
    spent_s = study["spent_s"] if elapsed_s is None else elapsed_s
    spent = text.seconds(spent_s)
    if budget_s is not None:
        used = text.share(spent_s / budget_s) if budget_s > 0 else ""
        spent = f"{spent} of {text.seconds(budget_s)} ({used})"
    facts.append(("time", spent))
    if elapsed_s is not None:
        facts.append(("time of all hosts together", text.seconds(study["spent_s"])))
    if study["uncounted_s"] >= 1:
        facts.append(("time of runs that do not count", text.seconds(study["uncounted_s"])))
    if study["budget_trials"] is not None:
        of_budget = f"{study['finished']:,} of {study['budget_trials']:,}"
        facts.append(("trials of the budget", of_budget))
    return facts


def rung_name(row: Row) -> str:
    """`rung 1, after 2s`, `rung 0, at 5,000 keys`, `step 3`."""
    rung, at_s, at_keys = row["rung"], row["at_s"], row["at_keys"]
    if at_s is None and at_keys is None:
        return f"step {rung:,}"
    return f"rung {rung}, {text.reached(Censored(rung, at_s, at_keys))}"


def performance_label(metric: str) -> str:
    """A figure's name where all of them stand side by side."""
    known = BY_NAME.get(metric)
    return (known.short if known else "") or text.metric_label(metric)


# --- Sentences on anchors, noise, the proof and the conditions, which all reports share

_SEARCHED = "from the search; the gain is in the verdict"
_NOT_PROVED = "from the search; only a proof tells the gain"
_PAIR_METHODS = {
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
    changes = ", ".join(_change(change) for change in series.changes)
    again = [number for change in series.changes for number in change.run_again]
    left = sum(len(change.left) for change in series.changes)
    told = f"{text.count(len(again), 'trial') if again else 'no trial'} "
    told += f"{'were' if len(again) > 1 else 'was'} run again"
    told += f" ({', '.join(map(str, again))})" if again else ""
    return f"the machine changed {times}: {changes}; {told}{f', {left:,} not yet' if left else ''}"


def _change(change: MachineChange) -> str:
    where = "ahead of the first trial"
    if change.first_trial is not None:
        where = f"from trial {change.first_trial} on"
    elif change.last_trial is not None:
        where = f"after trial {change.last_trial}"
    return f"{text.plain_ratio(change.ratio)} of before {where}"


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


def proof_lines(verdict: Verdict | None, proof: ProofFacts | None) -> list[str]:
    """How the proof was made, why it stopped, what it would take, and what to mind."""
    if verdict is None or proof is None:
        return []
    lines = []
    if verdict.method in _PAIR_METHODS:
        method = _PAIR_METHODS[PairMethod(verdict.method)]
        lines.append(f"{text.count(verdict.pairs, 'pair')} by {verdict.method}: {method}.")
    limit = f" ({text.deviation(proof.smallest_effect)})" if proof.smallest_effect else ""
    whys = {
        Ended.DECIDED: "as soon as the interval excluded no difference",
        Ended.EQUIVALENT: f"as soon as the interval lay within what is too small to matter{limit}",
        Ended.PAIRS: f"after all {text.count(proof.pairs_max, 'pair')} that were planned",
        Ended.OTHER: f"because {verdict.why}" if verdict.why else "before anything was clear",
    }
    if proof.ended is not None:
        lines.append(f"It stopped {whys[proof.ended]}.")
    if verdict.what_it_takes:
        lines.append(f"What it takes: {verdict.what_it_takes}.")
    return lines + [f"{text.sentence(note)}." for note in verdict.notes]


def pairs_note(pairs: Sequence[PairRow], workloads: int) -> str:
    """How each pair was run."""
    alone = "two fresh runs" if workloads == 1 else "a fresh run per workload and configuration,"
    each = "one per configuration, " if workloads == 1 else ""
    methods = {row.method for row in pairs if row.counts}
    how = "".join(f": {told}" for method, told in _PAIR_METHODS.items() if methods == {method})
    left = sum(not row.counts for row in pairs)
    out = f" {text.count(left, 'pair')} by another method does not count." if left else ""
    return f"Each pair is {alone} on the same new seed, {each}the first drawn by lot{how}.{out}"


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


def condition_facts(under: Conditions) -> list[tuple[str, str]]:
    """Page cache, memory and stolen time, as name and value."""
    kinds = {label: _PAGE_CACHE.get(kind, kind) for label, kind in under.page_cache.items()}
    each = [f"{label}: {kind}" for label, kind in kinds.items()]
    alike = list(kinds.values())[:1] if len(set(under.page_cache.values())) == 1 else each
    facts = [("page cache", kind) for kind in alike]
    if under.cached_share_max is not None:
        told = f"at most {text.share(under.cached_share_max)} of the database"
        facts.append(("still cached at a cold start", told))
    limited = [
        f"{_LIMITED.get(how, how)} ({text.count(runs, 'run')})"
        for how, runs in under.memory_limited_by.items()
    ]
    if limited:
        facts.append(("memory limited", ", ".join(limited)))
    if under.steal_share_median is not None and under.steal_share_max is not None:
        median, most = text.share(under.steal_share_median), text.share(under.steal_share_max)
        told = f"{median} of a run, at most {most}" if under.steal_share_max else "none"
        facts.append(("processor time taken by the host", told))
    return facts
