"""The end of a study: the proof of its best trial, in runs that are long enough for it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lsmtune.driver.native import NativeRunner
from lsmtune.driver.runner import Runner
from lsmtune.experiment.measurer import Measurer
from lsmtune.experiment.run_length import can_last, steady_factor
from lsmtune.experiment.schedule import Arm
from lsmtune.experiment.store import Role
from lsmtune.model.config import OptionValue
from lsmtune.model.measurement import Outcome
from lsmtune.model.verdict import Verdict
from lsmtune.proof.guards import Circumstances, judged_by_guards
from lsmtune.proof.paired import ProofPlan, prove
from lsmtune.proof.pairs import complete_sides, stored_pairs
from lsmtune.proof.steady import Sides, judged_by_length
from lsmtune.proof.survival import SurvivalPlan, Survived, survived
from lsmtune.space.constraint import ConstraintKind
from lsmtune.stats.sequential import pairs_at_least
from lsmtune.study.feasible import Feasibility
from lsmtune.study.live import Requests
from lsmtune.study.observer import Progress, TuneObserver
from lsmtune.study.size import RunSize, at_scale, longer_by, more_s
from lsmtune.study.spec import Spec
from lsmtune.study.start import (
    PAIRS_KEPT,
    PAIRS_KEPT_LEAST,
    PROMOTED_MAX,
    RESERVE_FACTOR,
    SearchBudget,
    is_baseline,
)

# Of a short budget, what the finalist has to survive is kept so much.
SURVIVAL_SHARE = 0.1

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


def size_budget(spec: Spec, size: RunSize, other_s: float) -> SearchBudget:
    """The budget of `spec` with runs of `size`; `other_s` is that of a SearchBudget."""
    pairs = min(spec.proof.pairs, PAIRS_KEPT)
    if size.grows:
        pairs += math.ceil((1 + PROMOTED_MAX) / 2)
    factor = size.proof_scale / size.scale
    return SearchBudget(
        *(spec.budget.trials, spec.budget.time_s, pairs), other_s=other_s, proof_factor=factor
    )


def budget_now(
    budget: SearchBudget,
    asked: Requests,
    spec: Spec,
    progress: Progress,
    defaults: Mapping[str, OptionValue],
    measurer: Measurer,
) -> SearchBudget:
    """`budget` as it is `asked` for, with the time that the proof of the best trial takes."""
    best, to_prove = progress.best, not nothing_to_prove(spec, progress, defaults)
    longer_s = 0.0
    if best is not None and to_prove:
        longer_s = (1.0 - 1.0 / measurer.length_of(best.config)) * best.run_s
    time_s, trials = asked.time_s, asked.trials
    return replace(budget, time_s=time_s, trials=trials, to_prove=to_prove, longer_s=longer_s)


# --- The size of its runs

_PROOF_FACT = "proof_lengths"  # by finalist


def for_proof(
    spec: Spec, measurer: Measurer, size: RunSize, trial: int, deadline_s: float | None
) -> Measurer:
    """`measurer` with runs in which the finalist `trial` is steady, too, where there is time.

    A finalist with larger memtables than the baseline flushes less often, and could prove nothing
    in its runs. So the longest time that the newest runs of both ask for counts, or the least that
    they could do with, if the least proof then fits into `deadline_s` seconds (None: no end). Where
    it does not, the proof has less data, down to those of the search. It is kept as a fact of the
    folder: a proof that goes on has the same runs, also after one of another trial.
    """
    store = measurer.folder.measurements
    proofs = store.fact(_PROOF_FACT) or {}
    if str(trial) not in proofs:
        factor, room = 1.0, 1.0
        if not spec.burst and spec.command is None and all(map(can_last, measurer.workloads)):
            factor, room = _proof_length(spec, measurer, trial, deadline_s)
        least = size.scale / size.proof_scale
        if room < least:
            factor, room = 1.0, 1.0
        share = 1.0 if room >= 1.0 else max(least, room / RESERVE_FACTOR)
        proofs = {**proofs, str(trial): [factor, share * size.proof_scale]}
        store.set_fact(_PROOF_FACT, proofs)
    factor, scale = proofs[str(trial)]
    measurer = measurer.at(*at_scale(spec, scale), scale)
    if factor == 1.0:
        return measurer
    longer = [longer_by(workload, factor) for workload in measurer.workloads]
    return replace(measurer, workloads=longer)


def _proof_length(
    spec: Spec, measurer: Measurer, trial: int, deadline_s: float | None
) -> tuple[float, float]:
    """How many times as long a proof's runs are; how many times the least proof the time holds."""
    rows = measurer.folder.measurements.all()
    last = max((row.repeat for row in rows if row.role is Role.PROMOTION), default=None)
    if last is None:
        of = {Role.BASELINE: None, Role.TRIAL: trial}
        runs = [row for row in rows if row.role in of and row.trial == of[row.role]]
    else:
        runs = [row for row in rows if row.role is Role.PROMOTION and row.repeat == last]
        runs = [row for row in runs if row.trial in (None, trial)]
    # The newest of each arm under each workload.
    newest = {(row.trial, row.workload): row for row in runs}.values()
    # Each with how long it was, against a run of the baseline.
    pairs = [
        (row, measurer.workloads[row.workload], measurer.length_of(row.config)) for row in newest
    ]
    factor, room = 1.0, 1.0
    for least in (False, True):
        factor = max(
            (x * steady_factor(r.measurement, w, spec.goal, least=least) for r, w, x in pairs),
            default=1.0,
        )
        longer = [(r, more_s(r.measurement, factor / x)) for r, _, x in pairs]
        pair_s = sum(r.wall_s + more for r, more in longer)
        longest_s = max((r.measurement.elapsed_s + more for r, more in longer), default=0.0)
        room = measurer.limits.deadline_s / max(longest_s, 1e-9)
        if deadline_s is not None:
            room = min(room, deadline_s / max(PAIRS_KEPT_LEAST * pair_s, 1e-9))
        if room >= 1.0:
            break
    return factor, room


# --- The proof


def survival_plan(spec: Spec) -> SurvivalPlan:
    """What the finalist has to survive."""
    states = spec.proof.power_states
    return SurvivalPlan(no_power_test="" if states else "power_states is 0", power_states=states)


def survival_s(spec: Spec, runner: Runner) -> float:
    """Seconds of the time budget to keep for that; none where nothing can be killed or recorded."""
    if spec.budget.time_s is None or not isinstance(runner, NativeRunner):
        return 0.0
    return min(survival_plan(spec).expected_s, SURVIVAL_SHARE * spec.budget.time_s)


def prove_finalist(
    spec: Spec,
    baseline: Arm,
    finalist: Arm,
    measurer: Measurer,
    observer: TuneObserver,
    feasibility: Feasibility,
    *,
    notes: Sequence[str],
    deadline_s: float | None,
) -> Survived | None:
    """The verdict on `finalist`, and what it survives; None when interrupted.

    The search leaves `deadline_s` seconds for the proof, None for no end; the pairs without which
    it would prove nothing are run whatever the time, as a search without a proof would be lost.
    `measurer` performs runs of the size of the proof. The verdict says the `notes`, too.
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
    store, count = measurer.folder.measurements, len(spec.workloads)
    sides = complete_sides(stored_pairs(store, baseline, finalist, count), spec.goal)
    circumstances = feasibility.circumstances(finalist.config.options)
    verdict = judged_by_price(spec, verdict, measurer, circumstances, sides)
    return survived(
        *(replace(verdict, notes=(*verdict.notes, *notes)), finalist, measurer, observer),
        study_seed=spec.seed,
        plan=survival_plan(spec),
    )


def judged_by_price(
    spec: Spec,
    verdict: Verdict,
    measurer: Measurer,
    circumstances: Circumstances,
    sides: Sides,
) -> Verdict:
    """`verdict` in the light of the length of its runs, of the constraints, and of the guards.

    The search saw one run, which may have kept a limit by luck: of the fresh ones, what both
    `sides` of each complete pair observed, most decide.
    """
    verdict = judged_by_length(
        *(verdict, spec.goal, measurer.workloads, sides),
        burst=spec.burst,
        share_of_target=measurer.scale,
    )
    asked = [c for c in spec.constraints if c.kind is ConstraintKind.OUTCOME]
    return judged_by_guards(verdict, [*asked, *spec.guards], circumstances, sides)
