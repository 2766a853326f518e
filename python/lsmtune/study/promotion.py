"""Before the proof of a study that searched a model: its best trials run once on more data.

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

from lsmtune.experiment.measurer import Measurer
from lsmtune.experiment.schedule import Arm, Slot, Stream, derive_seed
from lsmtune.experiment.store import MeasurementStore, Role, StoredMeasurement
from lsmtune.model.config import OptionValue
from lsmtune.model.goal import outcome_of
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.search.unit_space import make_unit_space
from lsmtune.space.space import Space
from lsmtune.study.budget import PATIENCE_FACTOR, PROMOTED_MAX, proof_runs_least
from lsmtune.study.feasible import Feasibility
from lsmtune.study.judging import JudgedTrial, Judgement, Promotion
from lsmtune.study.size import RunSize
from lsmtune.study.spec import Spec
from lsmtune.study.start import is_baseline

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
    *,
    rows: Sequence[StoredMeasurement],
    believed: Mapping[int, NormalDist],
    host: str = "",
    run_s: float,
    deadline_s: float,
) -> Promotion | None:
    """Run the baseline, and then the first of each kind of trial; None when interrupted.

    Nothing runs where there is no time for the baseline and two trials, between which to choose.

    `measurer` performs runs of the size of the proof on `host` of a fleet. Of the study's `rows`
    its last round counts where it is newer than the search and of this host; a round that another
    host began is left, and begun anew. `believed` is that of a Promotion, and stored for the trials
    that run. A run is expected to take `run_s` seconds. `deadline_s` is what search and proof have
    left: of that, the least proof is left alone.
    """
    began_s, searched, latest = measurer.clock(), _searched(rows), latest_round(rows)
    done = [row for row in latest if row.id > searched and row.measurement.host == host]
    number = done[0].repeat if done else 1 + max((row.repeat for row in latest), default=-1)
    others = {t.number: t.config for t in best_first if not is_baseline(spec, t.config)}
    options = {n: config.options for n, config in others.items()}
    chosen = kinds_first(spec.space, options, spec.defaults, PROMOTED_MAX)
    store, known = measurer.folder.measurements, {n: believed[n] for n in chosen if n in believed}
    store.set_fact(_BELIEVED, {str(n): (each.mean, each.stdev) for n, each in known.items()})
    arms: list[tuple[int | None, Arm]] = [(None, baseline)]
    arms += [(n, Arm(baseline.engine, others[n])) for n in chosen]
    if not done and deadline_s < (3 + proof_runs_least(spec)) * run_s:
        return promotion_of(rows, spec, known)
    seed = derive_seed(spec.seed, Stream.PROMOTION, number)
    walls_s: list[float] = []
    runs_s: list[float] = []
    for index, (trial, arm) in enumerate(arms):
        left_s = deadline_s - (measurer.clock() - began_s)
        # This run, and the pairs without which a proof says nothing: on databases that are loaded.
        kept_s = proof_runs_least(spec) * max(runs_s, default=0.0)
        if walls_s and left_s < max(walls_s) + kept_s:
            break
        slot = Slot(Role.PROMOTION, index, trial=trial, repeat=number)
        stored = [row for row in done if row.trial == trial]
        patience_s = _patience_s(measurer, arm, walls_s)
        runs = measurer.measure_workloads(arm, seed, slot, deadline_s=patience_s, stored=stored)
        if runs is None:
            return None
        walls_s.append(sum(run.wall_s for run in runs))
        runs_s.append(sum(run.measurement.elapsed_s for run in runs))
    return promotion_of(store.all(), spec, known)


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


def _searched(rows: Sequence[StoredMeasurement]) -> int:
    """The last row of the search."""
    return max((row.id for row in rows if row.role is Role.TRIAL), default=0)


def latest_round(rows: Sequence[StoredMeasurement]) -> list[StoredMeasurement]:
    """The runs at the size of the proof that the latest round has so far: all are of one host."""
    runs = [row for row in rows if row.role is Role.PROMOTION]
    return [row for row in runs if row.repeat == runs[-1].repeat]


def _patience_s(measurer: Measurer, arm: Arm, walls_s: Sequence[float]) -> float:
    """How long a run of `arm` may take, after those that took `walls_s`, the baseline's first."""
    if not walls_s:
        return measurer.limits.deadline_s
    return PATIENCE_FACTOR * max(*walls_s, measurer.length_of(arm.config) * walls_s[0])


def promotion_of(
    rows: Sequence[StoredMeasurement], spec: Spec, believed: Mapping[int, NormalDist]
) -> Promotion:
    """What the latest round among the `rows` of a study came to; an empty one without any.

    Of one that is older than the search, which trials failed there.
    """
    latest, by_trial = latest_round(rows), dict[int | None, list[StoredMeasurement]]()
    for row in latest:
        by_trial.setdefault(row.trial, []).append(row)
    of_baseline = by_trial.pop(None, [])
    # Guards compare with the baseline at this size, and with no other.
    compared = [replace(row, role=Role.BASELINE) for row in of_baseline]
    feasibility = Feasibility(spec, compared)

    def value(measurements: Sequence[Measurement]) -> float | None:
        whole = len(measurements) == len(spec.workloads)
        return spec.goal.value(measurements) if whole else None

    values: dict[int, float | None] = {}
    for trial, runs in by_trial.items():
        options, measurements = runs[0].config.options, [run.measurement for run in runs]
        number = value(measurements)
        if number is not None:
            broken = feasibility.violations(options, measurements).values()
            holds = feasibility.picks(options, measurements)
            number = None if any(amount > 0 for amount in broken) or not holds else number
        elif len(runs) < len(spec.workloads) and outcome_of(measurements) is Outcome.OK:
            continue  # it was cut off, and goes on
        if trial is not None:
            values[trial] = number
    promotion = Promotion(value([run.measurement for run in of_baseline]), values, believed)
    return promotion if latest and latest[-1].id > _searched(rows) else promotion.outdated()


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
