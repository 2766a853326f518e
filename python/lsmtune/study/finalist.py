"""The end of a study: the proof of its best trial, judged by the constraints too."""

from __future__ import annotations

from collections.abc import Mapping

from lsmtune.experiment.measurer import Measurer
from lsmtune.experiment.schedule import Arm
from lsmtune.model.config import OptionValue
from lsmtune.model.measurement import Outcome
from lsmtune.proof.crash_test import Survived, survived
from lsmtune.proof.guards import judged_by_guards
from lsmtune.proof.paired import ProofPlan, prove
from lsmtune.proof.pairs import complete_pairs, measurements, stored_pairs
from lsmtune.space.constraint import ConstraintKind
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
) -> Survived | None:
    """The verdict on `finalist`, and its crash test; None when interrupted.

    The search leaves time for the proof; the pairs without which it would prove nothing are run
    whatever the time, as a search without a proof would be lost.
    """
    deadline_s = None
    if spec.budget.time_s is not None:
        deadline_s = spec.budget.time_s - measurer.spent_s()
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
    pairs = [
        (measurements(pair.baseline), measurements(pair.candidate))
        for pair in complete_pairs(
            stored_pairs(measurer.folder.measurements, baseline, finalist, len(spec.workloads)),
            spec.goal,
        )
    ]
    asked = [c for c in spec.constraints if c.kind is ConstraintKind.OUTCOME]
    circumstances = feasibility.circumstances(finalist.config.options)
    verdict = judged_by_guards(verdict, [*asked, *spec.guards], circumstances, pairs)
    return survived(verdict, finalist, measurer, observer, study_seed=spec.seed)
