"""The best trials of a model, run once more at the size of the proof before one of them is proved.

A model (`study.size`) has a part of the target's data, and what is best there may not be best on
more. So when the search is over, the baseline and a few of the best trials have a run each at the
size of the proof, of each kind one before others of its kind. The best of these runs is the one
that is proved. How many pairs of configurations are in the same order at both sizes says whether
the model was of use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from lsmtune.experiment.measurer import Measurer
from lsmtune.experiment.schedule import Arm, Slot, Stream, derive_seed
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.model.config import OptionValue
from lsmtune.search.unit_space import make_unit_space
from lsmtune.space.space import Space
from lsmtune.study.feasible import Feasibility
from lsmtune.study.judging import Judgement
from lsmtune.study.size import RunSize
from lsmtune.study.spec import Spec
from lsmtune.study.start import PAIRS_KEPT_LEAST, PATIENCE_FACTOR, PROMOTED_MAX, is_baseline

# Trials that differ by less than this share of their ranges, on average, are of one kind.
_KIND = 0.08


@dataclass(frozen=True)
class Promotion:
    """A round at the size of the proof: the goal's number of the baseline, and of each trial.

    Of the trials those that ended well and hold the constraints there.
    """

    baseline: float | None
    values: Mapping[int, float]


def promote(
    spec: Spec,
    baseline: Arm,
    judgement: Judgement,
    measurer: Measurer,
    defaults: Mapping[str, OptionValue],
    *,
    rows: Sequence[StoredMeasurement],
    host: str = "",
    deadline_s: float | None,
) -> Promotion | None:
    """Run the baseline, and then the trials that are best by the search; None when interrupted.

    `measurer` performs runs of the size of the proof on `host` of a fleet. Of the study's `rows`
    its last round counts where it is newer than the search and of this host; a round that another
    host began is left, and begun anew. `deadline_s` is what search and proof have left in seconds,
    None for no end: of that, the least proof is left alone. `defaults` are the engine's.
    """
    searched = max((row.id for row in rows if row.role is Role.TRIAL), default=0)
    rounds = [row for row in rows if row.role is Role.PROMOTION]
    last = rounds[-1] if rounds else None
    done: list[StoredMeasurement] = []
    if last is not None and last.id > searched and last.measurement.host == host:
        done = [row for row in rounds if row.id > searched and _round(row) == _round(last)]
    number = done[0].repeat if done else 1 + max((row.repeat for row in rounds), default=-1)
    seed, began_s = derive_seed(spec.seed, Stream.PROMOTION, number), measurer.now_s()
    walls_s: list[float] = []
    arms: list[tuple[int | None, Arm]] = [(None, baseline)]
    ranked = {n: judgement.trials[n].config for n in judgement.ranked()}
    others = {n: c for n, c in ranked.items() if not is_baseline(spec, c, defaults)}
    options = {n: config.options for n, config in others.items()}
    chosen = kinds_first(spec.space, options, defaults, PROMOTED_MAX)
    arms += [(n, Arm(baseline.engine, others[n])) for n in chosen]
    for index, (trial, arm) in enumerate(arms):
        left_s = None if deadline_s is None else deadline_s - (measurer.now_s() - began_s)
        # This run, and the pairs without which a proof says nothing.
        if left_s is not None and walls_s and left_s < (1 + 2 * PAIRS_KEPT_LEAST) * max(walls_s):
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
    return promotion_of(measurer.folder.measurements.all(), spec, defaults)


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


def _round(row: StoredMeasurement) -> tuple[int, str]:
    """The round that a run at the size of the proof belongs to: its number and its host."""
    return row.repeat, row.measurement.host


def _patience_s(measurer: Measurer, arm: Arm, walls_s: Sequence[float]) -> float:
    """How long a run of `arm` may take, after those that took `walls_s`, the baseline's first."""
    if not walls_s:
        return measurer.limits.deadline_s
    return PATIENCE_FACTOR * max(*walls_s, measurer.length_of(arm.config) * walls_s[0])


def promotion_of(
    rows: Sequence[StoredMeasurement], spec: Spec, defaults: Mapping[str, OptionValue] | None
) -> Promotion:
    """What the latest round among the `rows` of a study came to; an empty one without any."""
    rounds = [row for row in rows if row.role is Role.PROMOTION]
    by_trial: dict[int | None, list[StoredMeasurement]] = {}
    for row in rounds:
        if _round(row) == _round(rounds[-1]):
            by_trial.setdefault(row.trial, []).append(row)
    of_baseline = by_trial.pop(None, [])
    # Guards compare with the baseline at this size, and with no other.
    compared = [replace(row, role=Role.BASELINE) for row in of_baseline]
    feasibility = Feasibility(spec, defaults, compared)

    def value(runs: Sequence[StoredMeasurement]) -> float | None:
        whole = len(runs) == len(spec.workloads)
        return spec.goal.value([run.measurement for run in runs]) if whole else None

    values = {}
    for trial, runs in by_trial.items():
        options, measurements = runs[0].config.options, [run.measurement for run in runs]
        found = value(runs)
        if trial is not None and found is not None:
            broken = feasibility.violations(options, measurements).values()
            if all(amount <= 0 for amount in broken):
                values[trial] = found
    return Promotion(value(of_baseline), values)


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
