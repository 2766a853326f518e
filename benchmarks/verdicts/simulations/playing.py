"""A simulated study through the decision code of a proof: looks after pairs, until it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from lsmtune.experiment.schedule import candidate_first
from lsmtune.model.goal import Goal, Objective
from lsmtune.model.verdict import VerdictOutcome
from lsmtune.proof.verdict import PairValues, judge
from lsmtune.stats.sequential import evidence_of_more
from simulations.scenarios import Logs, Scenario

CONFIDENCE = 0.95
PAIRS_MAX = 30

# A look is taken for useless when the evidence is below what a decision needs by this factor.
_CAUTION = 1.1
_OPS_S = 1e5


@dataclass(frozen=True)
class Look:
    """What was said after so many pairs; an interval without a bound has 0 or infinity."""

    pairs: int
    outcome: VerdictOutcome
    ratio: float
    low: float
    high: float


Rule = Callable[[Sequence[float], Sequence[float]], Look]


def proof_rule(confidence: float, smallest_effect: float | None) -> Rule:
    """What lsmtune says of the values of baseline and candidate: `proof.verdict.judge`."""
    goal = Goal((Objective("throughput_ops_s"),))

    def look(baseline: Sequence[float], candidate: Sequence[float]) -> Look:
        values = PairValues(baseline, candidate)
        verdict = judge(values, goal, confidence, smallest_effect=smallest_effect)
        low, high = verdict.ratio_low, verdict.ratio_high
        ratio = float("nan") if verdict.ratio is None else verdict.ratio
        return Look(
            verdict.pairs,
            verdict.outcome,
            ratio,
            0.0 if low is None else low,
            float("inf") if high is None else high,
        )

    return look


def play(
    baseline: Sequence[float], candidate: Sequence[float], rule: Rule, looks: Iterable[int]
) -> Look:
    """The look at which the study ends: the first that decides, or the last of `looks`.

    `looks` are numbers of pairs, rising, at least one.
    """
    for pairs in looks:
        look = rule(baseline[:pairs], candidate[:pairs])
        if look.outcome is not VerdictOutcome.NOT_PROVEN:
            break
    return look


@dataclass(frozen=True)
class Pairs:
    """Values of (studies, pairs): in the coin's order, and with the baseline always first."""

    baseline: NDArray[np.float64]
    candidate: NDArray[np.float64]
    first: NDArray[np.float64]
    second: NDArray[np.float64]

    @property
    def log_ratios(self) -> Logs:
        """Of candidate over baseline, in the coin's order."""
        return np.log(self.candidate / self.baseline)


def coins(study_seeds: Sequence[int], pairs: int = PAIRS_MAX) -> NDArray[np.bool_]:
    """Whether the candidate goes first, for each study and pair, by the coin of a proof."""
    tossed = [[candidate_first(seed, pair) for pair in range(pairs)] for seed in study_seeds]
    return np.array(tossed, dtype=np.bool_)


def draw_pairs(
    scenario: Scenario, random: np.random.Generator, candidate_goes_first: NDArray[np.bool_]
) -> Pairs:
    """What a machine shows; the same runs serve both orders, with the candidate in other places."""
    studies, pairs = candidate_goes_first.shape
    machine = scenario.machine(random, (studies, 2 * pairs))
    first, second = _OPS_S * np.exp(machine[:, 0::2]), _OPS_S * np.exp(machine[:, 1::2])
    ratio = np.full((studies, pairs), scenario.ratio)
    if scenario.effect is not None:
        ratio *= np.exp(scenario.effect(random, (studies, pairs)))
    baseline = np.where(candidate_goes_first, second, first)
    candidate = np.where(candidate_goes_first, first, second) * ratio
    return Pairs(baseline, candidate, first, second * ratio)


def useful_looks(
    log_ratios: Logs, confidence: float, smallest_effect: float | None
) -> NDArray[np.bool_]:
    """At which pairs of (studies, pairs) a proof may come to a decision; always at the last.

    Elsewhere the evidence is too little for any, so that a simulation need not look.
    `simulate.check_skipping` holds this against proofs that were looked at after every pair.
    """
    mark = 2.0 / (1.0 - confidence) / _CAUTION
    sides = (log_ratios, -log_ratios)
    useful = np.any([evidence_of_more(side, 0.0) > mark for side in sides], axis=0)
    if smallest_effect is not None:
        limit = float(np.log1p(smallest_effect))
        useful |= np.all([evidence_of_more(side, -limit) > mark for side in sides], axis=0)
    useful[:, -1] = True
    return np.asarray(useful, dtype=np.bool_)


# --- What scripts without sequential statistics conclude from the same runs: for contrast only.

# Two pairs have an interval, but scripts tend to wait for three.
_FIRST_LOOK = 3


def student_after_every_pair(pairs: Pairs, confidence: float) -> list[Look]:
    """Baseline first in every pair; Student's t interval of the log ratios after every pair.

    The study ends at the first interval that excludes 1. An interval at `confidence` is wrong that
    often at one look that was fixed beforehand, and more often at the worst of many.
    """
    logs = np.log(pairs.second / pairs.first)
    counts = np.arange(1, logs.shape[1] + 1)
    means = np.cumsum(logs, axis=1) / counts
    squares = np.maximum(np.cumsum(logs**2, axis=1) - counts * means**2, 0.0)
    freedom = np.maximum(counts - 1, 1)
    margins = special.stdtrit(freedom, 0.5 + confidence / 2.0) * np.sqrt(squares / freedom / counts)
    decided = (np.abs(means) > margins) & (counts >= _FIRST_LOOK)
    ends = np.where(decided.any(axis=1), decided.argmax(axis=1), logs.shape[1] - 1)
    return [
        _look(int(end) + 1, bool(decided[study, end]), means[study, end], margins[study, end])
        for study, end in enumerate(ends)
    ]


def best_single_run(pairs: Pairs) -> list[Look]:
    """All pairs are run, and whoever had the fastest single run is called the faster one."""
    ratios = pairs.second.max(axis=1) / pairs.first.max(axis=1)
    count = pairs.first.shape[1]
    return [_look(count, ratio != 1.0, float(np.log(ratio)), 0.0) for ratio in ratios]


def _look(pairs: int, decided: bool, mean: float, margin: float) -> Look:
    outcome = VerdictOutcome.NOT_PROVEN
    if decided:
        outcome = VerdictOutcome.BETTER if mean > 0.0 else VerdictOutcome.WORSE
    low, ratio, high = (float(x) for x in np.exp([mean - margin, mean, mean + margin]))
    return Look(pairs, outcome, ratio, low, high)
