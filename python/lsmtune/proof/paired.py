"""Paired verification: candidate against baseline on fresh, interleaved runs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lsmtune.proof.measurer import Measurer
from lsmtune.proof.observer import ProofObserver
from lsmtune.proof.place import Place
from lsmtune.proof.seeds import Stream, derive_seed
from lsmtune.proof.verdict import MINIMUM_PAIRS, Tally, judge, metric_ratio
from lsmtune.records.config import Config
from lsmtune.records.goal import Goal, outcome_of
from lsmtune.records.measurement import Measurement, Outcome
from lsmtune.records.verdict import MetricRatio, Verdict
from lsmtune.storage.measurements import MeasurementStore, Role, StoredMeasurement

# A baseline that fails now and then is bad luck, and its pair is run again; one that fails more
# often than this is no baseline.
FAILURES_TOLERATED = 2

# The stored fact: a proof's number of pairs, and the first pair that belongs to it.
_PLAN = "proof_plan"
_ANEW = (
    "the proof begins anew: adding pairs to one whose verdict is known, until it is the wished "
    "one, would find gains that are not there"
)


@dataclass(frozen=True)
class ProofPlan:
    """How much proof is wanted.

    `pairs` complete pairs, at least `MINIMUM_PAIRS`; no pair beyond that minimum is begun that
    would end later than `deadline_s` seconds from the start. `smallest_effect` e: a ratio from
    1 / (1 + e) to 1 + e does not matter to the user.
    """

    pairs: int = MINIMUM_PAIRS
    confidence: float = 0.95
    deadline_s: float | None = None
    smallest_effect: float | None = None

    def __post_init__(self) -> None:
        if self.pairs < MINIMUM_PAIRS:
            raise ValueError(f"a proof needs at least {MINIMUM_PAIRS} pairs, found {self.pairs}")


Side = Sequence[StoredMeasurement]


@dataclass(frozen=True)
class Pair:
    """Both sides of one pair, each with a run per workload.

    A side is cut off after a run that failed, and empty when it was not begun because the other
    had failed.
    """

    baseline: Side
    candidate: Side


def prove(
    baseline: Config,
    candidate: Config,
    goal: Goal,
    measurer: Measurer,
    observer: ProofObserver,
    *,
    study_seed: int,
    plan: ProofPlan,
) -> Verdict:
    """Run pairs of `baseline` and `candidate` and judge them by `goal`.

    A side of a pair runs every workload, one after the other. Both sides of a pair have the same
    seed, which no run of the search had. Pair k runs the
    baseline first when k is even and the candidate first when it is odd (ABBA), so that a drift
    of the machine helps neither. Complete pairs of the same two configurations that the folder
    holds already count; a pair that was not completed is run anew on another seed.

    A pair with a failed run is left out and counted. The proof ends early when the candidate
    fails, since it can no longer be better; when the baseline fails more than
    `FAILURES_TOLERATED` times; at the deadline; or when the measurer's stop event is set. The
    verdict's `why` says so.
    """
    proof = _Proof(baseline, candidate, goal, measurer, study_seed)
    if proof.was_seen_with_fewer_than(plan.pairs):
        proof.begin_anew()
        observer.warning(_ANEW)
    proof.note_plan(plan.pairs)
    observer.proof_started(plan.pairs)
    tally = proof.run(plan)
    verdict = judge(tally, goal, plan.confidence, smallest_effect=plan.smallest_effect)
    return replace(verdict, others=proof.others(plan.confidence)) if goal.several else verdict


def stored_pairs(
    store: MeasurementStore, baseline: Config, candidate: Config, workloads: int = 1
) -> list[Pair]:
    """The pairs of these two configurations that can be judged, by pair number."""
    baselines = stored_sides(store, Role.PROOF_BASELINE, baseline)
    candidates = stored_sides(store, Role.PROOF_CANDIDATE, candidate)
    pairs = [Pair(baselines.get(number, ()), side) for number, side in candidates.items()]
    return [
        pair
        for pair in pairs
        if _ended(pair.candidate, workloads)
        and (_ended(pair.baseline, workloads) or _failed(pair.candidate))
    ]


def stored_sides(store: MeasurementStore, role: Role, config: Config) -> dict[int, Side]:
    """The runs of `config` in the proof by pair, each side in the order of the workloads."""
    options, sides = dict(config.options), dict[int, list[StoredMeasurement]]()
    for run in store.of(role):
        if run.pair is not None and dict(run.config.options) == options:
            sides.setdefault(run.pair, []).append(run)
    return {pair: sorted(side, key=lambda run: run.workload) for pair, side in sides.items()}


class _Proof:
    def __init__(
        self,
        baseline: Config,
        candidate: Config,
        goal: Goal,
        measurer: Measurer,
        study_seed: int,
    ) -> None:
        self._baseline = baseline
        self._candidate = candidate
        self._goal = goal
        self._measurer = measurer
        self._study_seed = study_seed
        store = measurer.folder.measurements
        self._plan: dict[str, int] = store.fact(_PLAN) or {}
        first = self._plan.get("first_pair", 0)
        stored = stored_pairs(store, baseline, candidate, measurer.workloads)
        self._pairs = [pair for pair in stored if (pair.candidate[0].pair or 0) >= first]
        sides = store.of(Role.PROOF_BASELINE) + store.of(Role.PROOF_CANDIDATE)
        self._next_pair = 1 + max((run.pair for run in sides if run.pair is not None), default=-1)

    def was_seen_with_fewer_than(self, pairs: int) -> bool:
        """Whether a proof of fewer pairs was complete, so that its verdict is known."""
        planned = self._plan.get("pairs", pairs)
        return bool(planned < pairs and len(self._tally().baseline) >= planned)

    def begin_anew(self) -> None:
        """Leave the stored pairs out, now and on every resume."""
        self._pairs = []
        self._plan["first_pair"] = self._next_pair

    def note_plan(self, pairs: int) -> None:
        """Store what this proof consists of."""
        plan = {"first_pair": 0} | self._plan | {"pairs": pairs}
        self._measurer.folder.measurements.set_fact(_PLAN, plan)

    def run(self, plan: ProofPlan) -> Tally:
        started_s = self._measurer.now_s()
        while True:
            tally = self._tally()
            complete = len(tally.baseline)
            ended = tally.disqualified or complete >= plan.pairs
            if ended or tally.failed > FAILURES_TOLERATED:
                break
            if complete >= MINIMUM_PAIRS and plan.deadline_s is not None:
                spent_s = self._measurer.now_s() - started_s
                if spent_s + self._pair_s() > plan.deadline_s:
                    note = f"the time budget allowed {complete} of {plan.pairs} pairs"
                    return replace(tally, note=note)
            pair = self._run_pair(self._next_pair)
            if pair is None:
                return replace(tally, note=f"interrupted after {complete} of {plan.pairs} pairs")
            self._next_pair += 1
            self._pairs.append(pair)
        if tally.failed > FAILURES_TOLERATED and not tally.disqualified:
            return replace(tally, disqualified=f"the baseline failed in {tally.failed} pairs")
        return tally

    def _run_pair(self, number: int) -> Pair | None:
        """Both sides of a pair, in ABBA order; None when they were interrupted."""
        order = [Role.PROOF_BASELINE, Role.PROOF_CANDIDATE]
        sides: dict[Role, Side] = {}
        for role in order if number % 2 == 0 else reversed(order):
            side = self._run_side(role, number)
            if side is None:
                return None
            sides[role] = side
            if role is Role.PROOF_CANDIDATE and self._value(side) is None:
                break
        return Pair(sides.get(Role.PROOF_BASELINE, ()), sides[Role.PROOF_CANDIDATE])

    def _run_side(self, role: Role, number: int) -> Side | None:
        """A run per workload, up to one that fails; None when they were interrupted."""
        config = self._baseline if role is Role.PROOF_BASELINE else self._candidate
        seed = derive_seed(self._study_seed, Stream.PROOF, number)
        side: list[StoredMeasurement] = []
        for workload in range(self._measurer.workloads):
            place = Place(role, index=number, pair=number, workload=workload)
            stopped = self._measurer.stop.is_set()
            run = None if stopped else self._measurer.measure(config, seed, place)
            if run is None:
                return None
            side.append(run)
            if _failed(side):
                break
        return side

    def _pair_s(self) -> float:
        """Seconds that the next pair will take: the median of those before it."""
        return statistics.median(
            sum(run.wall_s for run in (*pair.candidate, *pair.baseline))
            for pair in self._pairs
            if pair.baseline
        )

    def _tally(self) -> Tally:
        complete = self._complete()
        values = [(self._value(p.baseline), self._value(p.candidate)) for p in complete]
        failure = next((p.candidate for p in self._pairs if self._value(p.candidate) is None), None)
        return Tally(
            baseline=[baseline for baseline, _ in values if baseline is not None],
            candidate=[candidate for _, candidate in values if candidate is not None],
            failed=len(self._pairs) - len(complete),
            disqualified="" if failure is None else _failure_text(failure[-1].measurement),
            data_lost=any(
                run.measurement.outcome is Outcome.DATA_LOSS
                for pair in self._pairs
                for run in pair.candidate
            ),
        )

    def others(self, confidence: float) -> tuple[MetricRatio, ...]:
        """The ratio of each objective of its own over the complete pairs."""
        complete = self._complete()
        baselines = [self._goal.values(_measurements(pair.baseline)) or () for pair in complete]
        candidates = [self._goal.values(_measurements(pair.candidate)) or () for pair in complete]
        return tuple(
            metric_ratio(
                objective,
                [values[index] for values in baselines],
                [values[index] for values in candidates],
                confidence,
            )
            for index, objective in enumerate(self._goal.objectives)
        )

    def _complete(self) -> list[Pair]:
        """The pairs of which both sides have a value."""
        return [
            pair
            for pair in self._pairs
            if self._value(pair.baseline) is not None and self._value(pair.candidate) is not None
        ]

    def _value(self, side: Side) -> float | None:
        return self._goal.value(_measurements(side))


def _measurements(side: Side) -> list[Measurement]:
    return [run.measurement for run in side]


def _failed(side: Side) -> bool:
    return outcome_of(_measurements(side)) is not Outcome.OK


def _ended(side: Side, workloads: int) -> bool:
    """Whether no run of the side is missing: a kill may have cut it off."""
    return len(side) == workloads or _failed(side)


def _failure_text(measurement: Measurement) -> str:
    if measurement.outcome is Outcome.OK:
        return "a run of the candidate did not observe the metric"
    detail = f" ({measurement.error.message})" if measurement.error else ""
    return f"a run of the candidate ended {measurement.outcome.value}{detail}"
