"""What a study found, and its form in `result.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lsmtune.proof.crash_test import CrashTest
from lsmtune.records.config import Config
from lsmtune.records.verdict import Verdict
from lsmtune.storage.codec import encode

FORMAT_VERSION = 1
CORRECTION = "bonferroni"  # of the intervals of a verdict's other metrics


@dataclass(frozen=True)
class TuneResult:
    """How a call of `tune` ended.

    `best` is the configuration of the trial with the best value, whatever the verdict says of it.
    `best_values` and `baseline_values` have each objective's value by its label. `counts` holds the
    number of trials by outcome, `refused` that of configurations that constraints spared a run, by
    reason, both over all sessions. An interrupted study has no verdict yet, and goes on when it is
    tuned again. `crash_test` is None where the best was not proved better.
    """

    baseline: Config
    baseline_value: float | None = None
    best: Config | None = None
    best_trial: int | None = None
    best_value: float | None = None
    best_values: Mapping[str, float] = field(default_factory=dict)
    baseline_values: Mapping[str, float] = field(default_factory=dict)
    verdict: Verdict | None = None
    crash_test: CrashTest | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    refused: Mapping[str, int] = field(default_factory=dict)
    interrupted: bool = False
    spent_s: float = 0.0

    @property
    def trials(self) -> int:
        """How many trials were run, however they ended."""
        return sum(self.counts.values())


def result_document(result: TuneResult) -> dict[str, object]:
    """`result` with stable keys and JSON values only."""
    return {
        "format_version": FORMAT_VERSION,
        "verdict": None if result.verdict is None else verdict_document(result.verdict),
        "crash_test": encode(result.crash_test),
        "best": None
        if result.best is None
        else {
            "trial": result.best_trial,
            "value": result.best_value,
            "values": dict(result.best_values),
            "label": result.best.label,
            "options": dict(result.best.options),
        },
        "baseline": {
            "value": result.baseline_value,
            "values": dict(result.baseline_values),
            "label": result.baseline.label,
            "options": dict(result.baseline.options),
        },
        "trials": result.trials,
        "outcomes": dict(sorted(result.counts.items())),
        "refused": dict(result.refused),
        "spent_s": result.spent_s,
        "interrupted": result.interrupted,
    }


def verdict_document(verdict: Verdict) -> dict[str, object]:
    """`verdict` with stable keys and JSON values only.

    The intervals of `others` are at `confidence_each`, so that all of them hold at `confidence`.
    """
    return {
        "outcome": verdict.outcome.value,
        "metric": verdict.metric,
        "direction": verdict.direction,
        "ratio": verdict.ratio,
        "ratio_low": verdict.ratio_low,
        "ratio_high": verdict.ratio_high,
        "confidence": verdict.confidence,
        "pairs": verdict.pairs,
        "pairs_failed": verdict.pairs_failed,
        "pairs_wanted": verdict.pairs_wanted,
        "method": verdict.method,
        "baseline_values": list(verdict.baseline_values),
        "candidate_values": list(verdict.candidate_values),
        "why": verdict.why,
        "what_it_takes": verdict.what_it_takes,
        "notes": list(verdict.notes),
        "confidence_each": verdict.confidence_each,
        "correction": None if verdict.confidence_each is None else CORRECTION,
        "others": [
            {
                "metric": other.metric,
                "direction": other.direction,
                "ratio": other.ratio,
                "ratio_low": other.ratio_low,
                "ratio_high": other.ratio_high,
            }
            for other in verdict.others
        ],
    }
