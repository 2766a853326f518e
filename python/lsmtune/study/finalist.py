"""The end of a study: the proof of its best trial, judged by the constraints too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from lsmtune.experiment.measurer import Measurer
from lsmtune.experiment.schedule import Arm
from lsmtune.experiment.store import Role
from lsmtune.model.config import OptionValue
from lsmtune.model.measurement import Outcome
from lsmtune.model.verdict import VerdictOutcome
from lsmtune.proof.crash_test import Survived, survived
from lsmtune.proof.paired import ProofPlan, prove
from lsmtune.proof.pairs import stored_sides
from lsmtune.stats.sequential import pairs_at_least
from lsmtune.study.feasible import Feasibility
from lsmtune.study.observer import Progress, TuneObserver
from lsmtune.study.spec import Spec
from lsmtune.study.start import is_baseline

_NO_PICK = "no trial met what pick.where asks of it"
_NO_PRODUCT = "no trial has values above 0 of every objective that the pick weighs"


def nothing_to_prove(spec: Spec, progress: Progress, defaults: Mapping[str, OptionValue]) -> str:
    """Why the search has no finalist; empty where it has one. `defaults` are the engine's."""
    if progress.best is not None:
        # A better single run of the baseline is no reason: only pairs decide.
        same = is_baseline(spec, progress.best.config, defaults)
        return "the baseline itself was the best of the search" if same else ""
    if not progress.counts[Outcome.OK.value]:
        return "no trial gave a value"
    broken = ", ".join(text for text, _ in progress.broken.most_common(3))
    if broken:
        return f"every trial broke a constraint ({broken})"
    return _NO_PICK if spec.pick_where else _NO_PRODUCT


def prove_finalist(
    spec: Spec,
    baseline: Arm,
    finalist: Arm,
    measurer: Measurer,
    observer: TuneObserver,
    feasibility: Feasibility,
    *,
    deadline_s: float | None,
) -> Survived | None:
    """The verdict on `finalist`, and its crash test; None when interrupted.

    The search leaves `deadline_s` seconds for the proof, None for no end; the pairs without which
    it would prove nothing are run whatever the time, as a search without a proof would be lost.
    """
    plan = ProofPlan(
        pairs=spec.proof.pairs,
        confidence=spec.proof.confidence,
        deadline_s=deadline_s,
        smallest_effect=spec.proof.smallest_effect,
        method=spec.proof.method,
        pairs_least=pairs_at_least(spec.proof.confidence),
    )
    verdict = prove(
        baseline, finalist, spec.goal, measurer, observer, study_seed=spec.seed, plan=plan
    )
    if verdict is None:
        return None
    # The search saw one run, which may have kept a limit by luck: most of the fresh ones decide.
    sides = stored_sides(measurer.folder.measurements, Role.PROOF_CANDIDATE, finalist)
    pairs = [[run.measurement for run in side] for side in sides.values()]
    whole = [runs for runs in pairs if spec.goal.values(runs) is not None]
    broken = Counter(
        text
        for runs in whole
        for text, by in feasibility.violations(finalist.config.options, runs).items()
        if by > 0
    )
    often = [f"{t} in {n} of {len(whole)} pairs" for t, n in broken.items() if 2 * n > len(whole)]
    if often and verdict.outcome is not VerdictOutcome.WORSE:
        why = "; ".join([f"the candidate breaks {', '.join(often)}", *filter(None, [verdict.why])])
        verdict = replace(verdict, outcome=VerdictOutcome.NOT_PROVEN, why=why)
    return survived(verdict, finalist, measurer, observer, study_seed=spec.seed)
