"""Paired verification: candidate against baseline on fresh, interleaved runs, until it is clear."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lsmtune.experiment.measurer import Measurer
from lsmtune.experiment.schedule import Arm
from lsmtune.model.goal import Goal
from lsmtune.model.request import PairMethod
from lsmtune.model.verdict import Verdict, VerdictOutcome
from lsmtune.proof.pairs import (
    Choice,
    Pair,
    PairSeries,
    complete_sides,
    notes_on,
    pair_values,
    proof_series,
    seconds_each,
)
from lsmtune.proof.verdict import (
    PairValues,
    SampleSize,
    SecondaryRatios,
    judge,
    sample_size_wanted,
    secondary_ratios,
)
from lsmtune.stats.intervals import MINIMUM_PAIRS
from lsmtune.stats.sequential import pairs_at_least

PAIRS_DEFAULT = 30


@dataclass(frozen=True)
class ProofPlan:
    """How much proof is wanted.

    At most `pairs` complete pairs, of which at least `pairs_at_least(confidence)` are needed to
    prove anything. No pair is begun that would end later than `deadline_s` seconds from the start,
    and one that is still on then is ended, except for the first `pairs_least`. `smallest_effect` e:
    a ratio from 1 / (1 + e) to 1 + e does not matter to the user. `method` is how both runs of a
    pair share the machine; None leaves that to `pairs.choose`.
    """

    pairs: int = PAIRS_DEFAULT
    confidence: float = 0.95
    deadline_s: float | None = None
    smallest_effect: float | None = None
    method: PairMethod | None = None
    pairs_least: int = 0

    def __post_init__(self) -> None:
        least = pairs_at_least(self.confidence)
        if self.pairs < least:
            raise ValueError(
                f"a proof at {self.confidence:g} needs at least {least} pairs, found {self.pairs}"
            )


def prove(
    baseline: Arm,
    candidate: Arm,
    goal: Goal,
    measurer: Measurer,
    *,
    study_seed: int,
    plan: ProofPlan,
) -> Verdict | None:
    """Run pairs of `baseline` and `candidate` and judge them by `goal`, after each pair.

    A pair runs each workload once on either side, both on the same seed, which no run of the search
    had; a coin that follows from `study_seed` says which side goes first. The verdict holds however
    often it is looked at (`stats.sequential`), and so the proof ends

    - when the interval excludes 1, or lies within the `smallest_effect`; a gain is then followed to
      the number of pairs after which every metric has an interval, where there is time for them;
    - after `plan.pairs` complete pairs, or once a value is not above zero, which has no ratio;
    - when no further pair fits into the deadline;
    - when the candidate fails, since it can no longer be better, or the baseline fails more than
      `pairs.FAILURES_TOLERATED` times. A pair with a failed run is left out and counted.

    Pairs of the same two arms and the same method that the folder holds already count, in
    the order of their numbers, so that a proof goes on where it ended, also with more pairs than
    were planned at first; a pair that was cut off is run anew on another seed.

    None when the measurer's stop event ended it before anything was clear. Raises as
    `Measurer.measure` does.
    """
    for arm in (baseline, candidate):
        measurer.refuse_other_build(arm.engine)
    measurer.observer.proof_started(plan.pairs)
    series = proof_series(measurer, baseline, candidate, study_seed, plan.method)
    return _Proof(goal, measurer, plan, series).run()


@dataclass(eq=False)
class _Proof:
    goal: Goal
    measurer: Measurer
    plan: ProofPlan
    series: PairSeries
    method_note: str = ""

    def run(self) -> Verdict | None:
        """Pairs until the verdict is clear, or there is no time for another."""
        deadline_s = math.inf if self.plan.deadline_s is None else self.plan.deadline_s
        until_s = self.measurer.clock() + deadline_s
        while True:
            choice = self.series.choice()
            if choice.why and self.series.scout is not None and choice.why != self.method_note:
                # What keeps it from being the usual method is told once a pair is lost by it.
                self.method_note = choice.why
                self.measurer.observer.warning(choice.why)
            pairs = self.series.by(choice.method)
            values = pair_values(pairs, self.goal)
            verdict = self._judged(values)
            if pairs:
                self.measurer.observer.pair_judged(verdict)
            if self._is_over(verdict, values, pairs):
                return self._finished(verdict, values, pairs, choice)
            pair_until_s = math.inf if verdict.pairs < self.plan.pairs_least else until_s
            next_s = seconds_each(pairs or self.series.stored)
            in_time = self.measurer.clock() + next_s < pair_until_s
            if in_time and self.series.run_next(choice.method, pair_until_s):
                continue
            if verdict.outcome is not VerdictOutcome.NOT_PROVEN:
                return self._finished(verdict, values, pairs, choice)
            if self.measurer.stop.is_set():
                return None
            note = f"the time budget allowed {verdict.pairs} of {self.plan.pairs} pairs"
            values = replace(values, note=note)
            return self._finished(self._judged(values), values, pairs, choice)

    def _judged(self, values: PairValues) -> Verdict:
        plan = self.plan
        return judge(values, self.goal, plan.confidence, smallest_effect=plan.smallest_effect)

    def _is_over(self, verdict: Verdict, values: PairValues, pairs: Sequence[Pair]) -> bool:
        if values.disqualified or verdict.pairs >= self.plan.pairs:
            return True
        if verdict.pairs >= MINIMUM_PAIRS and verdict.ratio is None:
            return True  # a value is not above zero, and that pair goes on to count
        if verdict.outcome is VerdictOutcome.BETTER:
            # What is deployed has a price, and a user wants to know it. The verdict allows for any
            # number of further looks, and is the one after the last of them.
            each = self._secondary(pairs).each
            return each is None or verdict.pairs >= pairs_at_least(each)
        return verdict.outcome is not VerdictOutcome.NOT_PROVEN

    def _secondary(self, pairs: Sequence[Pair]) -> SecondaryRatios:
        """All metrics but the one that decides."""
        sides = complete_sides(pairs, self.goal)
        return secondary_ratios(self.goal, sides, self.plan.confidence)

    def _finished(
        self, verdict: Verdict, values: PairValues, pairs: Sequence[Pair], choice: Choice
    ) -> Verdict:
        """`verdict` with all else that the pairs say."""
        secondary = self._secondary(pairs)
        wanted = SampleSize()
        if verdict.outcome is VerdictOutcome.NOT_PROVEN and not values.disqualified:
            pair_s = seconds_each(pairs or self.series.stored) or None
            wanted = sample_size_wanted(verdict, self.plan.smallest_effect, pair_s)
        return replace(
            verdict,
            method=choice.method.value,
            others=secondary.ratios,
            confidence_each=secondary.each,
            pairs_wanted=wanted.pairs,
            what_it_takes=wanted.text,
            notes=(*filter(None, [self.method_note]), *notes_on(pairs)),
        )
