"""Sentences that the page and the Markdown report share."""

from __future__ import annotations

from lsmtune.analysis.insight_tables import Importance, RungRow, Statistics
from lsmtune.analysis.tables import Censored
from lsmtune.report import text

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
