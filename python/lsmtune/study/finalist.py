"""The end of a study: what its proof takes, in runs that are long enough for the best trial."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lsmtune.driver.native import NativeRunner
from lsmtune.driver.runner import Runner
from lsmtune.experiment.measurer import Measurer
from lsmtune.experiment.run_length import (
    TREND_FACTOR,
    can_last,
    can_warm,
    flushes_missing,
    has_trend,
    longer_by,
    steady_factor,
    warmed_by,
)
from lsmtune.experiment.schedule import Arm
from lsmtune.experiment.store import Role
from lsmtune.model.goal import Goal
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.verdict import Verdict
from lsmtune.model.workload import Workload
from lsmtune.proof.guards import Circumstances, judged_by_guards
from lsmtune.proof.paired import ProofPlan, prove
from lsmtune.proof.pairs import judged_sides, stored_pairs
from lsmtune.proof.survival import SurvivalPlan, Survived, survived
from lsmtune.proof.verdict import PairedRuns, judged_by_length
from lsmtune.space.constraint import ConstraintKind
from lsmtune.stats.sequential import pairs_at_least
from lsmtune.study.budget import (
    PAIRS_KEPT,
    PROMOTED_MAX,
    RESERVE_FACTOR,
    SearchBudget,
    pairs_kept_least,
)
from lsmtune.study.feasible import Feasibility
from lsmtune.study.judging import Judgement
from lsmtune.study.promotion import latest_round
from lsmtune.study.size import DEADLINE_SHARE, RunSize, at_scale, for_their_length, more_s
from lsmtune.study.spec import Spec
from lsmtune.study.start import is_baseline

# Of a short budget, what the finalist has to survive is kept so much.
SURVIVAL_SHARE = 0.1


def nothing_to_prove(spec: Spec, judgement: Judgement) -> str:
    """Why the search has no finalist; empty where it has one."""
    if judgement.best_trial is not None:
        # A better single run of the baseline is no reason: only pairs decide.
        same = is_baseline(spec, judgement.best_trial.config)
        return "the baseline itself was the best of the search" if same else ""
    if not judgement.counts[Outcome.OK.value]:
        return "no trial gave a value"
    broken = ", ".join(text for text, _ in judgement.broken.most_common(3))
    if broken:
        return f"every trial broke a constraint ({broken})"
    if judgement.rejected:
        return "no trial that was run at the size of the proof ended well and held the guards there"
    if spec.pick_where:
        return "no trial met what pick.where asks of it"
    return "no trial has values above 0 of every objective that the pick weighs"


def size_budget(spec: Spec, size: RunSize, other_s: float) -> SearchBudget:
    """The budget of `spec` with runs of `size`; `other_s` is that of a SearchBudget."""
    least = pairs_kept_least(spec)
    pairs = min(spec.proof.pairs, max(PAIRS_KEPT, least))
    if size.grows:
        pairs += math.ceil((1 + PROMOTED_MAX) / 2)
    return SearchBudget(
        spec.budget.trials,
        spec.budget.time_s,
        pairs,
        other_s=other_s,
        proof_factor=size.proof_factor,
        pairs_least=least,
    )


# --- The size of its runs

# The stored fact, by finalist: how many times as long runs measure, their scale, the share of that
# which they do before they measure.
_PROOF_FACT = "proof_lengths"


def for_proof(
    spec: Spec, measurer: Measurer, size: RunSize, trial: int, deadline_s: float
) -> Measurer:
    """`measurer` with runs in which the finalist `trial` is steady, too, where there is time.

    A finalist with larger memtables than the baseline flushes less often, and could prove nothing
    in its runs. So the longest time that the newest runs of both ask for counts, or the least that
    they could do with, if the least proof then fits into `deadline_s` seconds. Where it does not,
    the proof has less data, down to those of the search, and where durations alone end its phases,
    no longer ones. What a moving rate asks for comes before what is measured. All of it is kept as
    a fact of the folder: a proof that goes on has the same runs, also after one of another trial.
    """
    store = measurer.folder.measurements
    proofs = store.fact(_PROOF_FACT) or {}
    if str(trial) not in proofs:
        factor, room, measured = 1.0, 1.0, 1.0
        if not spec.burst and spec.command is None and all(map(can_last, measurer.workloads)):
            growth = size.proof_factor
            searched, _ = at_scale(spec, size.scale)
            lengths = _proof_length(spec, measurer, searched, trial, deadline_s, growth)
            factor, room, measured = lengths
        least, share = size.scale / size.proof_scale, 1.0
        if room < 1.0 and all(map(_lasts, measurer.workloads)):
            # Less data take as long, but memtables that are as much smaller flush as much more.
            factor, share = 1.0, max(least, 1.0 / factor)
        elif room < least:
            factor = 1.0
        elif room < 1.0:
            share = max(least, room / RESERVE_FACTOR)
        measured = min(measured, factor)
        proofs = {**proofs, str(trial): [measured, share * size.proof_scale, factor / measured - 1]}
        store.set_fact(_PROOF_FACT, proofs)
        # What cannot be warmed up is measured for as much longer.
        longer = measured if all(map(can_warm, measurer.workloads)) else factor
        if longer > 1.0:
            for line in for_their_length(spec, longer * max(size.longer, default=1.0)):
                measurer.observer.warning(f"in the proof {line}")
    measured, scale, warmup = proofs[str(trial)]
    measurer = measurer.at(*at_scale(spec, scale), scale)
    workloads = [warmed_by(longer_by(w, measured), warmup) for w in measurer.workloads]
    return replace(measurer, workloads=workloads)


def _lasts(workload: Workload) -> bool:
    """Whether durations alone end what it measures."""
    phases = workload.measured_phases
    return all(phase.duration_s and phase.operations_whole is None for phase in phases)


@dataclass(frozen=True)
class _Side:
    """The newest run of an arm under one workload: what the length of a proof follows from.

    It is `longer` times as long as a run of the baseline, and takes `growth` times as long at the
    size of the proof. `lacking` is what `flushes_missing` says of it.
    """

    run: Measurement
    workload: Workload
    longer: float
    growth: float
    lacking: float | None

    def wanted(self, goal: Goal, *, least: bool) -> float:
        """How many times as long as a run of the baseline a steady run of the arm is."""
        factor = steady_factor(self.run, self.workload, goal, self.lacking, least=least)
        return self.longer * factor

    def proof_s(self, factor: float) -> float:
        """Seconds of a run of the proof that is `factor` times as long as one of the baseline."""
        return self.growth * (self.run.elapsed_s + more_s(self.run, factor / self.longer))


def _proof_length(
    spec: Spec,
    measurer: Measurer,
    searched: Sequence[Workload],
    trial: int,
    deadline_s: float,
    growth: float,
) -> tuple[float, float, float]:
    """Three factors: how long runs are, how much time there is, how long is what runs measure.

    The first and the last are against a run of the baseline, the second against what the least
    proof takes. Where a rate moves, only what flushes want is measured. A run of the search, under
    the `searched` workloads, takes `growth` times as long at the size of the proof.
    """
    rows = measurer.folder.measurements.all()
    arms = (Role.BASELINE, None), (Role.TRIAL, trial)
    runs = [row for row in rows if (row.role, row.trial) in arms]
    runs += latest_round(rows)
    # The newest of each arm under each workload; a finalist that was not promoted has its trial.
    newest = {(r.trial, r.workload): r for r in runs if r.trial in (None, trial)}.values()
    sides = [
        _Side(
            row.measurement,
            (measurer.workloads if row.role is Role.PROMOTION else searched)[row.workload],
            measurer.length_of(row.config),
            growth=1.0 if row.role is Role.PROMOTION else growth,
            lacking=flushes_missing(row.measurement, spec.goal),
        )
        for row in newest
    ]
    measured = max((s.longer * (1.0 + (s.lacking or 0.0)) for s in sides), default=1.0)
    moving = any(has_trend(side.run, side.workload, spec.goal) for side in sides)
    factor, room = 1.0, 1.0
    for least in (False, True):
        factor = max((side.wanted(spec.goal, least=least) for side in sides), default=1.0)
        if moving and not least:  # as much again that is not measured
            factor = max(factor, TREND_FACTOR * measured)
        runs_s = [side.proof_s(factor) for side in sides]
        room = min(
            DEADLINE_SHARE * measurer.limits.deadline_s / max([*runs_s, 1e-9]),
            deadline_s / max(pairs_kept_least(spec) * sum(runs_s), 1e-9),
        )
        if room >= 1.0:
            break
    return factor, room, measured if moving else factor


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
    feasibility: Feasibility,
    *,
    notes: Sequence[str],
    deadline_s: float,
) -> Survived | None:
    """The verdict on `finalist`, and what it survives; None when interrupted.

    The search leaves `deadline_s` seconds for the proof; the pairs without which it would prove
    nothing are run whatever the time, as a search without a proof would be lost.
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
    verdict = prove(baseline, finalist, spec.goal, measurer, study_seed=spec.seed, plan=plan)
    if verdict is None:
        return None
    store, count = measurer.folder.measurements, len(spec.workloads)
    sides = judged_sides(stored_pairs(store, baseline, finalist, count), spec.goal, verdict)
    circumstances = feasibility.circumstances(finalist.config.options)
    verdict = judged_by_price(spec, verdict, measurer, circumstances, sides)
    verdict = replace(verdict, notes=(*verdict.notes, *notes))
    return survived(verdict, finalist, measurer, study_seed=spec.seed, plan=survival_plan(spec))


def judged_by_price(
    spec: Spec,
    verdict: Verdict,
    measurer: Measurer,
    circumstances: Circumstances,
    sides: PairedRuns,
) -> Verdict:
    """`verdict` in the light of the length of its runs, of the constraints, and of the guards.

    The search saw one run, which may have kept a limit by luck: of the fresh ones, what both
    `sides` of each complete pair observed, most decide.
    """
    verdict = judged_by_length(
        verdict,
        spec.goal,
        measurer.workloads,
        sides,
        burst=spec.burst,
        share_of_target=measurer.scale,
    )
    asked = [c for c in spec.constraints if c.kind is ConstraintKind.OUTCOME]
    return judged_by_guards(verdict, [*asked, *spec.guards], circumstances, sides)
