"""What a study says while it runs, and the result that it comes to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lsmtune.experiment.observer import Observer
from lsmtune.experiment.store import StoredMeasurement
from lsmtune.model.codec import encode
from lsmtune.model.config import Config
from lsmtune.model.goal import Goal
from lsmtune.model.verdict import Verdict
from lsmtune.proof.survival import UNTESTED, Survival
from lsmtune.study.judging import Judgement
from lsmtune.study.spec import Spec
from lsmtune.study.trials import TrialEnd


class TuneObserver(Observer):
    """Callbacks of `tune`, all in the thread that called it. Does nothing; override what is wanted.

    What one raises ends the study.
    """

    def study_started(self, spec: Spec, resumed: int) -> None:
        """The folder is ready; it holds `resumed` trials of earlier sessions."""

    def baseline_known(self, runs: Sequence[StoredMeasurement]) -> None:
        """The baseline was measured in an earlier session: one run per workload."""

    def trial_finished(self, number: int, end: TrialEnd, *, best: bool) -> None:
        """A trial ended, all its runs together; `best`: it is the best so far."""

    def best_changed(self, trial: int, value: float, ratio_to_baseline: float | None) -> None:
        """A trial is the best so far, or the best one was run once more and has another value.

        After a resume, the best of the sessions before.
        """

    def search_finished(self, reason: str) -> None:
        """The search is over, in one line why."""

    def finished(self, result: TuneResult) -> None:
        """The last callback, also after an interruption."""


# --- What a study found, and its form in `result.json`.

FORMAT_VERSION = 1
CORRECTION = "bonferroni"  # of the intervals of a verdict's other metrics


@dataclass(frozen=True)
class TuneResult:
    """How a call of `tune` ended.

    `best` is the configuration of the trial with the best value, whatever the verdict says of it.
    `best_values` and `baseline_values` have each objective's value by its label. `counts` holds the
    number of trials by outcome, `refused` that of configurations that constraints spared a run, by
    reason, both over all sessions. An interrupted study has no verdict yet, and goes on when it is
    tuned again. `survival` is empty where the best was not proved better, `search_ended` where the
    search goes on: else it says why it ended.
    """

    baseline: Config
    baseline_value: float | None = None
    best: Config | None = None
    best_trial: int | None = None
    best_value: float | None = None
    best_values: Mapping[str, float] = field(default_factory=dict)
    baseline_values: Mapping[str, float] = field(default_factory=dict)
    verdict: Verdict | None = None
    survival: Survival = UNTESTED
    counts: Mapping[str, int] = field(default_factory=dict)
    refused: Mapping[str, int] = field(default_factory=dict)
    interrupted: bool = False
    spent_s: float = 0.0
    search_ended: str = ""

    @property
    def trials(self) -> int:
        """How many trials were run, however they ended."""
        return sum(self.counts.values())


def result_document(result: TuneResult) -> dict[str, object]:
    """`result` with stable keys and JSON values only."""
    return {
        "format_version": FORMAT_VERSION,
        "verdict": None if result.verdict is None else verdict_document(result.verdict),
        **result.survival.document(),
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
        "search_ended": result.search_ended or None,
        "interrupted": result.interrupted,
    }


def verdict_document(verdict: Verdict) -> dict[str, object]:
    """`verdict` with stable keys and JSON values only.

    The intervals of `others` are at `confidence_each`, so that all of them hold at `confidence`.
    """
    return {
        **encode(verdict),
        "correction": None if verdict.confidence_each is None else CORRECTION,
        "guards": [{**encode(guard), "held": guard.held} for guard in verdict.guards],
    }


def new_changes(judgement: Judgement, goal: Goal, known: set[tuple[int, int]]) -> list[str]:
    """A line for each change of the machine that is not `known` to the user; now they all are."""
    changes, lines = judgement.drift.changes(), []
    for change in changes:
        if (change.before, change.after) in known:
            continue
        label = goal.objectives[change.objective].label
        before, meanwhile, after = judgement.around(change)
        count = sum(trial.unplaced for trial in meanwhile)
        runs = "1 trial is" if count == 1 else f"{count} trials are"
        rest = f"; {runs} run again" if count else ""
        start = f"trial {before[-1].number}" if before else "the baseline"
        where = f"between {start} and trial {after[0].number}" if after else f"after {start}"
        lines.append(
            f"{change.host or 'the machine'} changed {where}: {label} of the baseline is "
            f"{change.ratio:.2f} of what it was before{rest}"
        )
    known |= {(change.before, change.after) for change in changes}
    return lines
