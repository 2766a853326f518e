"""The proof of a finalist on all hosts: pairs on each, and the verdict over hosts like these.

Each host has as many pairs, a number that is fixed before the first of them, so that the effect
that is seen on it is not the one at which somebody liked to stop. The interval is one of random
effects (`stats.intervals`): it is about a further host of this kind, too. A configuration whose
effect differs from host to host beyond chance is unstable, and not recommended.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lsmtune.experiment.measurer import Measurer
from lsmtune.experiment.schedule import Arm, Stream, derive_seed
from lsmtune.experiment.store import StoredMeasurement
from lsmtune.fleet.head import rows_by_host
from lsmtune.model.verdict import Verdict, VerdictOutcome
from lsmtune.proof.guards import Circumstances
from lsmtune.proof.pairs import (
    Pair,
    complete_sides,
    notes_on,
    pair_values,
    pairs_among,
    proof_series,
    seconds_each,
)
from lsmtune.proof.verdict import judge, secondary_ratios
from lsmtune.stats.intervals import RandomEffects, RatioInterval, exp_or_inf, random_effects
from lsmtune.study.finalist import judged_by_price
from lsmtune.study.spec import Spec

NOT_TESTED = (
    "no crash and no power loss was tried: a fleet does not do that; lsmtune verify does, "
    "on any one machine"
)
# With two values a variance is hardly known; with four, its square root is to a factor of 1.7.
PAIRS_LEAST = 4
# What makes a configuration unstable: effects that differ by more than chance does once in twenty
# times, by a standard deviation that matters (where the user has not said what does).
UNSTABLE_P = 0.05
EFFECT_DEFAULT = 0.05


def pairs_each(spec: Spec, hosts: int) -> int:
    """How many pairs each of so many hosts has: together as many as on one machine, or more."""
    return max(PAIRS_LEAST, math.ceil(spec.proof.pairs / max(1, hosts)))


def host_pairs(
    spec: Spec,
    measurer: Measurer,
    baseline: Arm,
    finalist: Arm,
    index: int,
    pairs: int,
    until_s: float,
) -> None:
    """Run what is missing of `pairs` complete pairs on the host number `index`.

    Fewer where a candidate fails, where the clock of the measurer shows `until_s` and `PAIRS_LEAST`
    of them are there, and when its stop event is set. The seeds are the host's own.
    """
    seed = derive_seed(spec.seed, Stream.HOST, index)
    series = proof_series(measurer, baseline, finalist, seed, spec.proof.method)
    while True:
        choice = series.choice()
        known = series.by(choice.method)
        values = pair_values(known, spec.goal)
        done = len(values.baseline)
        late = measurer.clock() + seconds_each(known or series.stored) >= until_s
        if done >= pairs or values.disqualified or (late and done >= PAIRS_LEAST):
            return
        if not series.run_next(choice.method, math.inf if done < PAIRS_LEAST else until_s):
            return


def pairs_by_host(
    rows: Sequence[StoredMeasurement], baseline: Arm, finalist: Arm, workloads: int
) -> dict[str, list[Pair]]:
    """The pairs of these two arms on each host, by the method that it ended with."""
    by_host = {}
    for host, own in rows_by_host(rows).items():
        pairs = pairs_among(own, baseline, finalist, workloads)
        if pairs:
            last = pairs[-1].runs[0].measurement.paired_by
            by_host[host] = [p for p in pairs if p.runs[0].measurement.paired_by == last]
    return by_host


def is_unstable(effects: RandomEffects, smallest_effect: float | None) -> bool:
    """Whether an effect differs from host to host beyond chance, and by as much as matters."""
    matters = math.log1p(smallest_effect or EFFECT_DEFAULT)
    return effects.p_same < UNSTABLE_P and effects.between_sd > matters


def fleet_verdict(
    spec: Spec,
    pairs: Mapping[str, Sequence[Pair]],
    measurer: Measurer,
    circumstances: Circumstances,
) -> Verdict:
    """What `pairs` on each host come to.

    The ratio leaves a host with fewer than two complete ones out, but a failure on it decides.
    """
    goal, proof = spec.goal, spec.proof
    # A host on which a candidate failed at once has no effect, and decides all the same.
    every = [pair for known in pairs.values() for pair in known]
    by_host = {host: pair_values(known, goal) for host, known in pairs.items()}
    failed = [f"{v.disqualified} on {host}" for host, v in by_host.items() if v.disqualified]
    counted = {host: v for host, v in by_host.items() if len(v.baseline) > 1}
    values = replace(
        pair_values(every, goal),
        baseline=[value for v in counted.values() for value in v.baseline],
        candidate=[value for v in counted.values() for value in v.candidate],
        disqualified=failed[0] if failed else "",
    )
    if any(value <= 0.0 for value in (*values.baseline, *values.candidate)):
        counted = {}  # no ratio: `judge` says so
    # Logarithms of the ratios of complete pairs.
    effects = {
        host: [math.log(other / one) for one, other in zip(v.baseline, v.candidate, strict=True)]
        for host, v in counted.items()
    }
    notes, why, interval = [], "", None
    if len(effects) > 1:
        model = random_effects(list(effects.values()), proof.confidence)
        bounds = (exp_or_inf(model.mean), exp_or_inf(model.low), exp_or_inf(model.high))
        interval = RatioInterval(*bounds, pairs=sum(map(len, effects.values())))
        means = {host: math.exp(math.fsum(v) / len(v)) for host, v in effects.items()}
        notes.append(_hosts_text(means))
        if is_unstable(model, proof.smallest_effect):
            why = (
                f"unstable: its effect differs from host to host beyond chance (p = "
                f"{model.p_same:.2g}, standard deviation {100 * math.expm1(model.between_sd):.2g} "
                "%); prove it on each kind of host by itself"
            )
    elif effects:
        notes.append("measured on one host: nothing is known of others")
    verdict = judge(
        values, goal, proof.confidence, smallest_effect=proof.smallest_effect, interval=interval
    )
    if why and verdict.outcome in (VerdictOutcome.BETTER, VerdictOutcome.EQUIVALENT):
        verdict = verdict.but(VerdictOutcome.NOT_PROVEN, why)
    sides = complete_sides(every, goal)
    secondary = secondary_ratios(goal, sides, proof.confidence)
    methods = {pair.runs[0].measurement.paired_by for pair in every}
    verdict = replace(
        verdict,
        method=methods.pop() if len(methods) == 1 else "",
        others=secondary.ratios,
        confidence_each=secondary.each,
        notes=(*notes, *notes_on(every)),
    )
    return judged_by_price(spec, verdict, measurer, circumstances, sides)


def _hosts_text(means: Mapping[str, float]) -> str:
    """Where the effect is least and largest."""
    least, most = min(means, key=lambda h: means[h]), max(means, key=lambda h: means[h])
    return (
        f"{len(means)} hosts, of which the ratio is {means[least]:.3g} on {least} and "
        f"{means[most]:.3g} on {most}"
    )
