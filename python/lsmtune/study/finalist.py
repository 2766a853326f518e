"""The end of a study: which trial is proved, and its proof, in runs that are long enough for it.

A model (`study.size`) has a part of the target's data, and what is best there may not be best on
more. So when the search is over, the baseline and a few of the best trials have a run each at the
size of the proof, of each kind one before others of its kind. The best by that run and the search
is the one that is proved. How many pairs of configurations are in the same order at both sizes says
whether the model was of use.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from statistics import NormalDist

import numpy as np

from lsmtune.driver.native import NativeRunner
from lsmtune.driver.runner import Runner
from lsmtune.experiment.measurer import Measurer
from lsmtune.experiment.run_length import can_last, longer_by, steady_factor
from lsmtune.experiment.schedule import Arm, Slot, Stream, derive_seed
from lsmtune.experiment.store import MeasurementStore, Role, StoredMeasurement
from lsmtune.model.config import OptionValue
from lsmtune.model.goal import outcome_of
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.verdict import Verdict
from lsmtune.model.workload import Workload
from lsmtune.proof.guards import Circumstances, judged_by_guards
from lsmtune.proof.paired import ProofPlan, prove
from lsmtune.proof.pairs import judged_sides, stored_pairs
from lsmtune.proof.survival import SurvivalPlan, Survived, survived
from lsmtune.proof.verdict import Sides, judged_by_length
from lsmtune.search.unit_space import make_unit_space
from lsmtune.space.constraint import ConstraintKind
from lsmtune.space.space import Space
from lsmtune.stats.sequential import pairs_at_least
from lsmtune.study.feasible import Feasibility
from lsmtune.study.judging import JudgedTrial, Judgement, Promotion
from lsmtune.study.live import Requests
from lsmtune.study.observer import Progress
from lsmtune.study.size import DEADLINE_SHARE, RunSize, at_scale, for_their_length, more_s
from lsmtune.study.spec import Spec
from lsmtune.study.start import (
    PAIRS_KEPT,
    PAIRS_KEPT_LEAST,
    PATIENCE_FACTOR,
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
    if progress.rejected:
        return "no trial that was run at the size of the proof ended well and held the guards there"
    return _NO_PICK if spec.pick_where else _NO_PRODUCT


def size_budget(spec: Spec, size: RunSize, other_s: float) -> SearchBudget:
    """The budget of `spec` with runs of `size`; `other_s` is that of a SearchBudget."""
    pairs = min(spec.proof.pairs, PAIRS_KEPT)
    if size.grows:
        pairs += math.ceil((1 + PROMOTED_MAX) / 2)
    return SearchBudget(
        *(spec.budget.trials, spec.budget.time_s, pairs),
        other_s=other_s,
        proof_factor=size.proof_factor,
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


# --- Before it, the best trials of a model: a run each at the size of the proof

# Trials that differ by less than this share of their ranges, on average, are of one kind.
_KIND = 0.08
# By how much the logarithm of what a configuration gains varies when the data doubles: 0.19 on the
# recorded landscape `writing`, also for four times the data; 0.15 and 0 on `reading`
# (docs/benchmarks/README.md, "What a run on more data tells").
_DOUBLED_LOG_SD = 0.15
_BELIEVED = "promotion_believed"


def promote(
    spec: Spec,
    baseline: Arm,
    best_first: Sequence[JudgedTrial],
    measurer: Measurer,
    defaults: Mapping[str, OptionValue],
    *,
    rows: Sequence[StoredMeasurement],
    believed: Mapping[int, NormalDist],
    host: str = "",
    deadline_s: float | None,
) -> Promotion | None:
    """Run the baseline, and then the first of each kind of trial; None when interrupted.

    `measurer` performs runs of the size of the proof on `host` of a fleet. Of the study's `rows`
    its last round counts where it is newer than the search and of this host; a round that another
    host began is left, and begun anew. `believed` is that of a Promotion, and stored for the trials
    that run. `deadline_s` is what search and proof have left in seconds, None for no end: of that,
    the least proof is left alone. `defaults` are the engine's.
    """
    searched = max((row.id for row in rows if row.role is Role.TRIAL), default=0)
    rounds = [row for row in rows if row.role is Role.PROMOTION]
    last = rounds[-1] if rounds else None
    done: list[StoredMeasurement] = []
    if last is not None and last.id > searched and last.measurement.host == host:
        done = [row for row in rounds if row.id > searched and _round_of(row) == _round_of(last)]
    number = done[0].repeat if done else 1 + max((row.repeat for row in rounds), default=-1)
    seed, began_s = derive_seed(spec.seed, Stream.PROMOTION, number), measurer.clock()
    walls_s: list[float] = []
    runs_s: list[float] = []
    arms: list[tuple[int | None, Arm]] = [(None, baseline)]
    ranked = {trial.number: trial.config for trial in best_first}
    others = {n: c for n, c in ranked.items() if not is_baseline(spec, c, defaults)}
    options = {n: config.options for n, config in others.items()}
    chosen = kinds_first(spec.space, options, defaults, PROMOTED_MAX)
    arms += [(n, Arm(baseline.engine, others[n])) for n in chosen]
    store, known = measurer.folder.measurements, {n: believed[n] for n in chosen if n in believed}
    store.set_fact(_BELIEVED, {str(n): (each.mean, each.stdev) for n, each in known.items()})
    for index, (trial, arm) in enumerate(arms):
        left_s = None if deadline_s is None else deadline_s - (measurer.clock() - began_s)
        # This run, and the pairs without which a proof says nothing: on databases that are loaded.
        if left_s is not None and walls_s:
            proof_s = RESERVE_FACTOR * 2 * PAIRS_KEPT_LEAST * max(runs_s)
            if left_s < max(walls_s) + proof_s:
                break
        slot = Slot(Role.PROMOTION, index, trial=trial, repeat=number)
        stored = [row for row in done if row.trial == trial]
        runs = measurer.measure_workloads(
            *(arm, seed, slot),
            deadline_s=_patience_s(measurer, arm, walls_s),
            stored=stored,
        )
        if runs is None:
            return None
        walls_s.append(sum(run.wall_s for run in runs))
        runs_s.append(sum(run.measurement.elapsed_s for run in runs))
    return promotion_of(store.all(), spec, defaults, known)


def believed_there(believed: Mapping[int, NormalDist], size: RunSize) -> dict[int, NormalDist]:
    """What was `believed` of trials by the search, at the size of the proof: less surely."""
    doublings = abs(math.log2(size.proof_scale / size.scale))
    variance = _DOUBLED_LOG_SD**2 * doublings
    return {
        n: NormalDist(each.mean, math.sqrt(each.variance + variance))
        for n, each in believed.items()
    }


def stored_beliefs(store: MeasurementStore) -> dict[int, NormalDist]:
    """`Promotion.believed` of the latest round; empty where there is none."""
    fact = store.fact(_BELIEVED) or {}
    return {int(number): NormalDist(*each) for number, each in fact.items()}


def kinds_first(
    space: Space,
    trials: Mapping[int, Mapping[str, OptionValue]],
    defaults: Mapping[str, OptionValue],
    count: int,
) -> list[int]:
    """At most `count` numbers of `trials`: the best of each kind, and then the best of the others.

    The end of a search tries what is near to its best: four trials whose caches differ by 1 MiB
    tell less on more data than one of them and the best of three other kinds. A trial is of the
    kind of a better one where they differ by less than `_KIND` on average, over all that the trials
    vary. `trials` are options by number, from the best on.
    """
    numbers = list(trials)
    if not numbers:
        return []
    points = (space.point_of(options, defaults) for options in trials.values())
    unit_space = make_unit_space(space)
    rows = [{} if point is None else space.variables_of(point) for point in points]
    features = unit_space.distance_features(unit_space.encode(rows))
    features = features[:, np.ptp(features, axis=0) > 0]
    firsts: list[int] = []
    for place in range(len(numbers)):
        if len(firsts) == count:
            break
        apart = np.abs(features[firsts] - features[place]).sum(axis=1)
        if not (apart < _KIND * features.shape[1]).any():
            firsts.append(place)
    others = [place for place in range(len(numbers)) if place not in firsts]
    return [numbers[place] for place in (*firsts, *others)][:count]


def _round_of(row: StoredMeasurement) -> tuple[int, str]:
    """The round that a run at the size of the proof belongs to: its number and its host."""
    return row.repeat, row.measurement.host


def _patience_s(measurer: Measurer, arm: Arm, walls_s: Sequence[float]) -> float:
    """How long a run of `arm` may take, after those that took `walls_s`, the baseline's first."""
    if not walls_s:
        return measurer.limits.deadline_s
    return PATIENCE_FACTOR * max(*walls_s, measurer.length_of(arm.config) * walls_s[0])


def promotion_of(
    rows: Sequence[StoredMeasurement],
    spec: Spec,
    defaults: Mapping[str, OptionValue] | None,
    believed: Mapping[int, NormalDist],
) -> Promotion:
    """What the latest round among the `rows` of a study came to; an empty one without any."""
    rounds = [row for row in rows if row.role is Role.PROMOTION]
    by_trial: dict[int | None, list[StoredMeasurement]] = {}
    for row in rounds:
        if _round_of(row) == _round_of(rounds[-1]):
            by_trial.setdefault(row.trial, []).append(row)
    of_baseline = by_trial.pop(None, [])
    # Guards compare with the baseline at this size, and with no other.
    compared = [replace(row, role=Role.BASELINE) for row in of_baseline]
    feasibility = Feasibility(spec, defaults, compared)

    def value(measurements: Sequence[Measurement]) -> float | None:
        whole = len(measurements) == len(spec.workloads)
        return spec.goal.value(measurements) if whole else None

    values: dict[int, float | None] = {}
    for trial, runs in by_trial.items():
        options, measurements = runs[0].config.options, [run.measurement for run in runs]
        found = value(measurements)
        if found is not None:
            broken = feasibility.violations(options, measurements).values()
            found = None if any(amount > 0 for amount in broken) else found
        elif len(runs) < len(spec.workloads) and outcome_of(measurements) is Outcome.OK:
            continue  # it was cut off, and goes on
        if trial is not None:
            values[trial] = found
    return Promotion(value([run.measurement for run in of_baseline]), values, believed)


def notes_on_sizes(
    size: RunSize,
    judgement: Judgement,
    promotion: Promotion | None,
    baseline: float | None,
    *,
    proved_scale: float,
) -> list[str]:
    """What the verdict on the best trial says of a search that ran on a model; empty for none.

    `baseline` is its goal's number in the search; the proof ran at `proved_scale`.
    """
    if promotion is None or judgement.best is None:
        return []
    values = {number: trial.value for number, trial in judgement.trials.items()}
    best, larger = judgement.best, promotion.values
    notes = []
    for scale, value, base, where in (
        (size.scale, values[best], baseline, "where it was found"),
        (size.proof_scale, larger.get(best), promotion.baseline, "before the proof"),
    ):
        if value and base and min(value, base) > 0:
            ratio = f"{value / base:.3g}x the baseline"
            notes.append(f"at {scale:.2g} of the target, {where}, it seemed {ratio}")
    other = judgement.best_of_promotion
    if other not in (None, best):
        notes.append(
            f"before the proof trial {other} seemed better than trial {best}, by one run: that and "
            "the search both count"
        )
    if proved_scale < size.proof_scale:
        notes.append(
            f"proved at {proved_scale:.2g} of the target: there was no time for runs at "
            f"{size.proof_scale:.2g} that are long enough for its memtables"
        )
    both = [(baseline, promotion.baseline), *((values[n], value) for n, value in larger.items())]
    known = [(one, other) for one, other in both if one is not None and other is not None]
    same, pairs = in_same_order(known)
    if pairs:
        line = (
            f"{len(known)} configurations ran at both sizes: {same} of their {pairs} "
            "pairs are in the same order"
        )
        if 2 * same <= pairs and len(known) > 2:
            line += "; the search ran on too little data: begin anew with a larger budget"
        notes.append(line)
    return notes


def in_same_order(known: Sequence[tuple[float, float]]) -> tuple[int, int]:
    """How many pairs are in the same order by both numbers of each, and how many are in any.

    The one over the other is (tau + 1) / 2 of M. G. Kendall, "A new measure of rank correlation",
    Biometrika 30, 1938.
    """
    same = [
        (one[0] > other[0]) == (one[1] > other[1])
        for one, other in combinations(known, 2)
        if one[0] != other[0] and one[1] != other[1]
    ]
    return sum(same), len(same)


# --- The size of its runs

_PROOF_FACT = "proof_lengths"  # by finalist


def for_proof(
    spec: Spec, measurer: Measurer, size: RunSize, trial: int, deadline_s: float | None
) -> Measurer:
    """`measurer` with runs in which the finalist `trial` is steady, too, where there is time.

    A finalist with larger memtables than the baseline flushes less often, and could prove nothing
    in its runs. So the longest time that the newest runs of both ask for counts, or the least that
    they could do with, if the least proof then fits into `deadline_s` seconds (None: no end). Where
    it does not, the proof has less data, down to those of the search, and where durations alone end
    its phases, no longer ones. It is kept as a fact of the folder: a proof that goes on has the
    same runs, also after one of another trial.
    """
    store = measurer.folder.measurements
    proofs = store.fact(_PROOF_FACT) or {}
    if str(trial) not in proofs:
        factor, room = 1.0, 1.0
        if not spec.burst and spec.command is None and all(map(can_last, measurer.workloads)):
            growth = size.proof_factor
            factor, room = _proof_length(spec, measurer, trial, deadline_s, growth)
        least, share = size.scale / size.proof_scale, 1.0
        if room < 1.0 and all(map(_lasts, measurer.workloads)):
            # Less data take as long, but memtables that are as much smaller flush as much more.
            factor, share = 1.0, max(least, 1.0 / factor)
        elif room < least:
            factor = 1.0
        elif room < 1.0:
            share = max(least, room / RESERVE_FACTOR)
        proofs = {**proofs, str(trial): [factor, share * size.proof_scale]}
        store.set_fact(_PROOF_FACT, proofs)
        if factor > 1.0:
            for line in for_their_length(spec, factor * max(size.longer, default=1.0)):
                measurer.observer.warning(f"in the proof {line}")
    factor, scale = proofs[str(trial)]
    measurer = measurer.at(*at_scale(spec, scale), scale)
    if factor == 1.0:
        return measurer
    longer = [longer_by(workload, factor) for workload in measurer.workloads]
    return replace(measurer, workloads=longer)


def _lasts(workload: Workload) -> bool:
    """Whether durations alone end what it measures."""
    phases = workload.measured_phases
    return all(phase.duration_s and phase.operations_whole is None for phase in phases)


def _proof_length(
    spec: Spec, measurer: Measurer, trial: int, deadline_s: float | None, growth: float
) -> tuple[float, float]:
    """How many times as long a proof's runs are; how many times the least proof the time holds.

    A run of the search takes `growth` times as long there.
    """
    rows = measurer.folder.measurements.all()
    last = max((row.repeat for row in rows if row.role is Role.PROMOTION), default=None)
    of = {Role.BASELINE: None, Role.TRIAL: trial}
    runs = [row for row in rows if row.role in of and row.trial == of[row.role]]
    runs += [row for row in rows if row.role is Role.PROMOTION and row.repeat == last]
    # The newest of each arm under each workload; a finalist that was not promoted has its trial.
    newest = {(r.trial, r.workload): r for r in runs if r.trial in (None, trial)}.values()
    # Each with how long it was, against a run of the baseline, and how much longer it takes now.
    sides = [
        (
            *(row.measurement, measurer.workloads[row.workload], measurer.length_of(row.config)),
            1.0 if row.role is Role.PROMOTION else growth,
        )
        for row in newest
    ]
    factor, room = 1.0, 1.0
    for least in (False, True):
        factor = max(
            (x * steady_factor(m, w, spec.goal, least=least) for m, w, x, _ in sides),
            default=1.0,
        )
        runs_s = [g * (m.elapsed_s + more_s(m, factor / x)) for m, _, x, g in sides]
        pair_s = sum(runs_s)
        room = DEADLINE_SHARE * measurer.limits.deadline_s / max([*runs_s, 1e-9])
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
    verdict = prove(baseline, finalist, spec.goal, measurer, study_seed=spec.seed, plan=plan)
    if verdict is None:
        return None
    store, count = measurer.folder.measurements, len(spec.workloads)
    sides = judged_sides(stored_pairs(store, baseline, finalist, count), spec.goal, verdict)
    circumstances = feasibility.circumstances(finalist.config.options)
    verdict = judged_by_price(spec, verdict, measurer, circumstances, sides)
    return survived(
        *(replace(verdict, notes=(*verdict.notes, *notes)), finalist, measurer),
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
