"""Paired verification: candidate against baseline on fresh, interleaved runs."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace

from lsmtune.proof.measurer import Measurer, Place
from lsmtune.proof.observer import ProofObserver
from lsmtune.proof.seeds import Stream, derive_seed
from lsmtune.proof.verdict import MINIMUM_PAIRS, Tally, judge
from lsmtune.records.config import Config
from lsmtune.records.measurement import Measurement, Outcome
from lsmtune.records.objective import Objective
from lsmtune.records.verdict import Verdict
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


@dataclass(frozen=True)
class Pair:
    """Both runs of one pair; None for the one that was not begun because the other had failed."""

    baseline: StoredMeasurement | None
    candidate: StoredMeasurement


def prove(
    baseline: Config,
    candidate: Config,
    objective: Objective,
    measurer: Measurer,
    observer: ProofObserver,
    *,
    study_seed: int,
    plan: ProofPlan,
) -> Verdict:
    """Run pairs of `baseline` and `candidate` and judge them.

    Both runs of a pair have the same seed, which no run of the search had. Pair k runs the
    baseline first when k is even and the candidate first when it is odd (ABBA), so that a drift
    of the machine helps neither. Complete pairs of the same two configurations that the folder
    holds already count; a pair of which only one run was stored is run anew on another seed.

    A pair with a failed run is left out and counted. The proof ends early when the candidate
    fails, since it can no longer be better; when the baseline fails more than
    `FAILURES_TOLERATED` times; at the deadline; or when the measurer's stop event is set. The
    verdict's `why` says so.
    """
    proof = _Proof(baseline, candidate, objective, measurer, study_seed)
    if proof.was_seen_with_fewer_than(plan.pairs):
        proof.begin_anew()
        observer.warning(_ANEW)
    proof.note_plan(plan.pairs)
    observer.proof_started(plan.pairs)
    return judge(proof.run(plan), objective, plan.confidence, smallest_effect=plan.smallest_effect)


def stored_pairs(store: MeasurementStore, baseline: Config, candidate: Config) -> list[Pair]:
    """The pairs of these two configurations that can be judged, by pair number."""
    options = dict(baseline.options), dict(candidate.options)
    baselines = {
        run.pair: run
        for run in store.of(Role.PROOF_BASELINE)
        if dict(run.config.options) == options[0]
    }
    candidates = [
        run for run in store.of(Role.PROOF_CANDIDATE) if dict(run.config.options) == options[1]
    ]
    pairs = [Pair(baselines.get(run.pair), run) for run in candidates]
    return [pair for pair in pairs if pair.baseline is not None or _failed(pair.candidate)]


class _Proof:
    def __init__(
        self,
        baseline: Config,
        candidate: Config,
        objective: Objective,
        measurer: Measurer,
        study_seed: int,
    ) -> None:
        self._baseline = baseline
        self._candidate = candidate
        self._objective = objective
        self._measurer = measurer
        self._study_seed = study_seed
        store = measurer.folder.measurements
        self._plan: dict[str, int] = store.fact(_PLAN) or {}
        first = self._plan.get("first_pair", 0)
        stored = stored_pairs(store, baseline, candidate)
        self._pairs = [pair for pair in stored if (pair.candidate.pair or 0) >= first]
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
        """Both runs of a pair, in ABBA order; None when they were interrupted."""
        order = [Role.PROOF_BASELINE, Role.PROOF_CANDIDATE]
        runs: dict[Role, StoredMeasurement] = {}
        for role in order if number % 2 == 0 else reversed(order):
            run = None if self._measurer.stop.is_set() else self._measure(role, number)
            if run is None:
                return None
            runs[role] = run
            if role is Role.PROOF_CANDIDATE and self._value(run) is None:
                break
        return Pair(runs.get(Role.PROOF_BASELINE), runs[Role.PROOF_CANDIDATE])

    def _measure(self, role: Role, number: int) -> StoredMeasurement | None:
        config = self._baseline if role is Role.PROOF_BASELINE else self._candidate
        seed = derive_seed(self._study_seed, Stream.PROOF, number)
        return self._measurer.measure(config, seed, Place(role, index=number, pair=number))

    def _pair_s(self) -> float:
        """Seconds that the next pair will take: the median of those before it."""
        return statistics.median(
            pair.candidate.wall_s + pair.baseline.wall_s
            for pair in self._pairs
            if pair.baseline is not None
        )

    def _tally(self) -> Tally:
        values = [
            (None if pair.baseline is None else self._value(pair.baseline), pair)
            for pair in self._pairs
        ]
        complete = [
            (baseline, candidate)
            for baseline, pair in values
            if baseline is not None and (candidate := self._value(pair.candidate)) is not None
        ]
        failure = next((p.candidate for p in self._pairs if self._value(p.candidate) is None), None)
        return Tally(
            baseline=[baseline for baseline, _ in complete],
            candidate=[candidate for _, candidate in complete],
            failed=len(self._pairs) - len(complete),
            disqualified="" if failure is None else _failure_text(failure.measurement),
            data_lost=any(
                p.candidate.measurement.outcome is Outcome.DATA_LOSS for p in self._pairs
            ),
        )

    def _value(self, run: StoredMeasurement) -> float | None:
        return self._objective.value(run.measurement)


def _failed(run: StoredMeasurement) -> bool:
    return run.measurement.outcome is not Outcome.OK


def _failure_text(measurement: Measurement) -> str:
    if measurement.outcome is Outcome.OK:
        return "a run of the candidate did not observe the metric"
    detail = f" ({measurement.error.message})" if measurement.error else ""
    return f"a run of the candidate ended {measurement.outcome.value}{detail}"
