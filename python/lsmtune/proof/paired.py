"""Paired verification: candidate against baseline on fresh, interleaved runs, until it is clear."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lsmtune.experiment.measurer import Measurer
from lsmtune.experiment.observer import Observer
from lsmtune.experiment.schedule import Arm, Slot, Stream, candidate_first, derive_seed
from lsmtune.experiment.store import Role
from lsmtune.model.goal import Goal
from lsmtune.model.request import PairMethod
from lsmtune.model.verdict import Verdict, VerdictOutcome
from lsmtune.proof.pairs import (
    Choice,
    Pair,
    Side,
    choose,
    complete_pairs,
    failed,
    measurements,
    next_number,
    notes_on,
    pair_values,
    slices_of,
    stored_pairs,
)
from lsmtune.proof.verdict import (
    PairValues,
    SampleSize,
    SecondaryRatios,
    judge,
    sample_size_wanted,
    secondary_ratios,
)
from lsmtune.stats.sequential import pairs_at_least

PAIRS_DEFAULT = 30


@dataclass(frozen=True)
class ProofPlan:
    """How much proof is wanted.

    At most `pairs` complete pairs, of which at least `pairs_at_least(confidence)` are needed to
    prove anything. No pair is begun that would end later than `deadline_s` seconds from the start,
    and one that is still on then is ended, except for the first `pairs_least`. `smallest_effect` e:
    a ratio from 1 / (1 + e) to 1 + e does not matter to the user. `method` is how both runs of a
    pair share the machine; None leaves that to `method.choose`.
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
    observer: Observer,
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
    - after `plan.pairs` complete pairs;
    - when no further pair fits into the deadline;
    - when the candidate fails, since it can no longer be better, or the baseline fails more than
      `values.FAILURES_TOLERATED` times. A pair with a failed run is left out and counted.

    Pairs of the same two arms and the same method that the folder holds already count, in
    the order of their numbers, so that a proof goes on where it ended, also with more pairs than
    were planned at first; a pair that was cut off is run anew on another seed.

    None when the measurer's stop event ended it before anything was clear. Raises as
    `Measurer.measure` does.
    """
    for arm in (baseline, candidate):
        measurer.refuse_other_build(arm.engine)
    observer.proof_started(plan.pairs)
    return _Proof(baseline, candidate, goal, measurer, observer, study_seed, plan).run()


class _Proof:
    def __init__(
        self,
        baseline: Arm,
        candidate: Arm,
        goal: Goal,
        measurer: Measurer,
        observer: Observer,
        study_seed: int,
        plan: ProofPlan,
    ) -> None:
        self._arms = {Role.PROOF_BASELINE: baseline, Role.PROOF_CANDIDATE: candidate}
        self._goal = goal
        self._measurer = measurer
        self._observer = observer
        self._study_seed = study_seed
        self._plan = plan
        store = measurer.folder.measurements
        self._stored = stored_pairs(store, baseline, candidate, len(measurer.workloads))
        self._next = next_number(store)
        self._method_note = ""

    def run(self) -> Verdict | None:
        """Pairs until the verdict is clear, or there is no time for another."""
        deadline_s = math.inf if self._plan.deadline_s is None else self._plan.deadline_s
        until_s = self._measurer.now_s() + deadline_s
        while True:
            choice = self._choice()
            pairs = [pair for pair in self._stored if pair.is_of(choice.method)]
            values = pair_values(pairs, self._goal)
            verdict = self._judged(values)
            if pairs:
                self._observer.pair_judged(verdict)
            if self._is_over(verdict, values, pairs):
                return self._finished(verdict, values, pairs, choice)
            late_s = math.inf if verdict.pairs < self._plan.pairs_least else until_s
            in_time = self._measurer.now_s() + self._pair_s(pairs) < late_s
            if in_time and self._run_pair(choice.method, late_s):
                continue
            if verdict.outcome is not VerdictOutcome.NOT_PROVEN:
                return self._finished(verdict, values, pairs, choice)
            if self._measurer.stop.is_set():
                return None
            note = f"the time budget allowed {verdict.pairs} of {self._plan.pairs} pairs"
            values = replace(values, note=note)
            return self._finished(self._judged(values), values, pairs, choice)

    def _choice(self) -> Choice:
        """The method; what keeps it from being the usual one is told once a pair is lost by it."""
        scout = next((p for p in self._stored if p.is_of(PairMethod.SLICES)), None)
        runs = [] if scout is None else [run.measurement for run in scout.runs]
        workloads, native = self._measurer.workloads, self._measurer.native
        choice = choose(self._plan.method, workloads, native=native, scout=runs)
        if choice.why and scout is not None and choice.why != self._method_note:
            self._method_note = choice.why
            self._observer.warning(choice.why)
        return choice

    def _judged(self, values: PairValues) -> Verdict:
        plan = self._plan
        return judge(values, self._goal, plan.confidence, smallest_effect=plan.smallest_effect)

    def _is_over(self, verdict: Verdict, values: PairValues, pairs: Sequence[Pair]) -> bool:
        if values.disqualified or verdict.pairs >= self._plan.pairs:
            return True
        if verdict.outcome is VerdictOutcome.BETTER:
            # What is deployed has a price, and a user wants to know it. The verdict allows for any
            # number of further looks, and is the one after the last of them.
            each = self._secondary(pairs).each
            return each is None or verdict.pairs >= pairs_at_least(each)
        return verdict.outcome is not VerdictOutcome.NOT_PROVEN

    def _run_pair(self, method: PairMethod, until_s: float) -> bool:
        """Both sides of the next pair; False when they were cut off."""
        number = self._next
        seed = derive_seed(self._study_seed, Stream.PROOF, number)
        roles = [Role.PROOF_BASELINE, Role.PROOF_CANDIDATE]
        if candidate_first(self._study_seed, number):
            roles.reverse()
        sides: dict[Role, Side] = dict.fromkeys(roles, ())
        for workload in range(len(self._measurer.workloads)):
            first, second = (
                (self._arms[role], Slot(role, number, pair=number, workload=workload))
                for role in roles
            )
            if self._measurer.stop.is_set():
                return False
            runs = self._measurer.measure_pair(
                first, second, seed, method, until_s=until_s, slices=self._slices()
            )
            if runs is None:
                return False
            for role, run in zip(roles, runs, strict=True):
                sides[role] = (*sides[role], run)
            if failed(runs):
                break
        self._next += 1
        pair = Pair(number, sides[Role.PROOF_BASELINE], sides[Role.PROOF_CANDIDATE])
        self._stored.append(pair)
        return True

    def _slices(self) -> int:
        """As many as suit the length of the phases; 0 before anything is known of that."""
        return slices_of(measurements(self._stored[0].runs)) if self._stored else 0

    def _pair_s(self, pairs: Sequence[Pair]) -> float:
        """Seconds that the next pair will take: the median of those before it, 0 when none was."""
        return statistics.median([pair.wall_s for pair in pairs or self._stored] or [0.0])

    def _secondary(self, pairs: Sequence[Pair]) -> SecondaryRatios:
        """All metrics but the one that decides."""
        complete = complete_pairs(pairs, self._goal)
        return secondary_ratios(
            self._goal,
            [measurements(pair.baseline) for pair in complete],
            [measurements(pair.candidate) for pair in complete],
            self._plan.confidence,
        )

    def _finished(
        self, verdict: Verdict, values: PairValues, pairs: Sequence[Pair], choice: Choice
    ) -> Verdict:
        """`verdict` with all else that the pairs say."""
        secondary = self._secondary(pairs)
        wanted = SampleSize()
        if verdict.outcome is VerdictOutcome.NOT_PROVEN and not values.disqualified:
            wanted = sample_size_wanted(
                verdict, self._plan.smallest_effect, self._pair_s(pairs) or None
            )
        return replace(
            verdict,
            method=choice.method.value,
            others=secondary.ratios,
            confidence_each=secondary.each,
            pairs_wanted=wanted.pairs,
            what_it_takes=wanted.text,
            notes=(*filter(None, [self._method_note]), *notes_on(pairs)),
        )
