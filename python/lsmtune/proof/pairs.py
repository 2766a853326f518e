"""The pairs of a proof: which runs belong together, which count, and how they share the machine."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from lsmtune.driver.pair import cold_obstacle, slices_obstacle
from lsmtune.experiment.measurer import Measurer, Run
from lsmtune.experiment.schedule import Arm, Slot, Stream, candidate_first, derive_seed
from lsmtune.experiment.store import MeasurementStore, Role, StoredMeasurement
from lsmtune.model.goal import Goal, outcome_of
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import PairMethod, slices_for
from lsmtune.model.verdict import Verdict
from lsmtune.model.workload import Workload
from lsmtune.proof.verdict import PairedRuns, PairValues

Side = Sequence[StoredMeasurement]


@dataclass(frozen=True)
class Pair:
    """Both sides of one pair, each with a run per workload.

    Both are cut off after the first workload with a run that failed.
    """

    baseline: Side
    candidate: Side

    @property
    def runs(self) -> tuple[StoredMeasurement, ...]:
        """The runs of both sides."""
        return (*self.baseline, *self.candidate)

    @property
    def wall_s(self) -> float:
        """Seconds that the pair cost."""
        return sum(run.wall_s for run in self.runs)

    def is_of(self, method: PairMethod) -> bool:
        """Whether all its runs shared the machine by `method`."""
        return all(run.measurement.paired_by == method.value for run in self.runs)

    def is_over(self, workloads: int) -> bool:
        """Whether no run is missing: a kill may have cut the pair off."""
        if len(self.baseline) != len(self.candidate):
            return False
        return len(self.baseline) == workloads or failed(self.baseline) or failed(self.candidate)


def stored_pairs(
    store: MeasurementStore, baseline: Arm, candidate: Arm, workloads: int = 1
) -> list[Pair]:
    """`pairs_among` the rows of `store`."""
    rows = [row for role in (Role.PROOF_BASELINE, Role.PROOF_CANDIDATE) for row in store.of(role)]
    return pairs_among(rows, baseline, candidate, workloads)


def pairs_among(
    rows: Iterable[StoredMeasurement], baseline: Arm, candidate: Arm, workloads: int
) -> list[Pair]:
    """The pairs of a proof of these two arms, by their options: as `pairs_by_side`.

    The libraries of either side are the same in all of a folder, though they may have been moved.
    """

    def side(run: StoredMeasurement) -> int | None:
        if run.role is Role.PROOF_BASELINE and run.config.options == baseline.config.options:
            return 0
        if run.role is Role.PROOF_CANDIDATE and run.config.options == candidate.config.options:
            return 1
        return None

    return pairs_by_side(rows, side, workloads)


def pairs_by_side(
    rows: Iterable[StoredMeasurement],
    side_of: Callable[[StoredMeasurement], int | None],
    workloads: int,
) -> list[Pair]:
    """The pairs that `rows` make and that were not cut off, in the order of their numbers.

    `side_of` says 0 for a run of the baseline, 1 for one of the candidate, None for no side.
    """
    pairs: dict[int, tuple[list[StoredMeasurement], list[StoredMeasurement]]] = {}
    for run in sorted(rows, key=lambda run: run.workload):
        side = side_of(run)
        if run.pair is not None and side is not None:
            pairs.setdefault(run.pair, ([], []))[side].append(run)
    both = [Pair(*sides) for _, sides in sorted(pairs.items())]
    return [pair for pair in both if pair.is_over(workloads)]


def measurements(side: Side) -> list[Measurement]:
    """What the runs of a side observed."""
    return [run.measurement for run in side]


def failed(side: Side) -> bool:
    """Whether a run of the side did not end well."""
    return outcome_of(measurements(side)) is not Outcome.OK


# --- What the pairs of a proof come to: values, failures, and what else must be said of them.

# A baseline that fails now and then is bad luck, and its pair is run again; one that fails more
# often than this is no baseline.
FAILURES_TOLERATED = 2


def _complete(pairs: Sequence[Pair], goal: Goal) -> list[tuple[Pair, float, float]]:
    """The pairs of which both sides have a value, each with these."""
    valued = ((p, _value(goal, p.baseline), _value(goal, p.candidate)) for p in pairs)
    return [(p, a, b) for p, a, b in valued if a is not None and b is not None]


def complete_sides(pairs: Sequence[Pair], goal: Goal) -> PairedRuns:
    """What both sides of each complete pair observed, a run per workload each."""
    complete = _complete(pairs, goal)
    return [(measurements(pair.baseline), measurements(pair.candidate)) for pair, _, _ in complete]


def judged_sides(pairs: Sequence[Pair], goal: Goal, verdict: Verdict) -> PairedRuns:
    """`complete_sides` of those by the method of `verdict`: no others count in it."""
    return complete_sides([p for p in pairs if p.is_of(PairMethod(verdict.method))], goal)


def pair_values(pairs: Sequence[Pair], goal: Goal) -> PairValues:
    """The values of the complete pairs, and the failures of the others."""
    complete = _complete(pairs, goal)
    failures = len(pairs) - len(complete)
    disqualified = next(filter(None, (_disqualified(pair, goal) for pair in pairs)), "")
    if failures > FAILURES_TOLERATED and not disqualified:
        last = [pair.baseline for pair in pairs if _value(goal, pair.baseline) is None][-1]
        how = f"ended {_ended(last)}" if failed(last) else _lacks(goal, last)
        disqualified = f"the baseline has no value in {failures} pairs: a run of it {how}"
    runs = [run.measurement for pair in pairs for run in pair.candidate]
    return PairValues(
        baseline=[value for _, value, _ in complete],
        candidate=[value for _, _, value in complete],
        failed=failures,
        disqualified=disqualified,
        data_lost=any(run.outcome is Outcome.DATA_LOSS for run in runs),
    )


def notes_on(pairs: Sequence[Pair]) -> list[str]:
    """What a reader of the verdict must know of the runs it stands on, a line each."""
    lines = []
    sliced = [measurements(pair.runs) for pair in pairs if pair.is_of(PairMethod.SLICES)]
    worst = [max(map(stalled_share, runs), default=0.0) for runs in sliced]
    stalled = sum(share > STALL_TOLERATED for share in worst)
    if stalled:
        lines.append(
            f"a run stalled in {stalled} of {len(pairs)} pairs, and in slices a stall costs less "
            "than it should: prove it again with whole runs (method whole)"
        )
    runs = [run.measurement for pair in pairs for run in pair.runs]
    wrote = [
        run
        for run in runs
        if run.outcome is Outcome.OK and any(phase.user_bytes_written for phase in run.phases)
    ]
    unverified = sum(not (run.verification and run.verification.keys_checked) for run in wrote)
    if unverified:
        lines.append(
            f"{unverified} of {len(runs)} runs wrote keys of which none was read back: nothing "
            "shows that their data is right"
        )
    for name in ("baseline", "candidate"):
        side = [run.measurement for pair in pairs for run in getattr(pair, name)]
        replaced = dict.fromkeys(option for run in side for option in run.options_replaced)
        lines += [f"the {name}: {option}" for option in replaced]
    warned = Counter(line for run in runs for line in dict.fromkeys(run.warnings))
    # What every run of one side says is said by half of them.
    often = ((line, count) for line, count in warned.items() if 2 * count >= len(runs))
    return [*lines, *(f"{count} of {len(runs)} runs: {line}" for line, count in often)]


def _value(goal: Goal, side: Side) -> float | None:
    return goal.value(measurements(side))


def _disqualified(pair: Pair, goal: Goal) -> str:
    """How the candidate of `pair` failed, or did not observe what it is judged by; else empty."""
    alike = _value(goal, pair.baseline) is None
    if failed(pair.candidate):
        both = "a run of the baseline and one of the candidate"
        return f"{both if alike else 'a run of the candidate'} ended {_ended(pair.candidate)}"
    # Where the baseline failed, the candidate may not have run all workloads.
    if failed(pair.baseline) or _value(goal, pair.candidate) is not None:
        return ""
    lacks = _lacks(goal, pair.candidate)
    whose = "the candidate"
    if alike and _lacks(goal, pair.baseline) == lacks:
        whose = "either configuration"
    return f"a run of {whose} {lacks}"


def _lacks(goal: Goal, side: Side) -> str:
    """Why `side`, of which no run failed, has no value all the same."""
    runs = measurements(side)
    for objective in goal.objectives:
        if any(objective.value(run) is None for run in runs):
            return f"did not observe {objective.label}"
    # Those of several workloads are multiplied, and those objectives that the pick weighs.
    values = [
        (o.label, o.value(run) or 0.0) for o in (*goal.chosen, *goal.objectives) for run in runs
    ]
    label, value = next((label, value) for label, value in values if value <= 0.0)
    return f"observed {label} of {value:g}, which has no product"


def _ended(side: Side) -> str:
    """How the run of `side` ended that failed."""
    return ended(next(run for run in measurements(side) if run.outcome is not Outcome.OK))


def ended(run: Measurement) -> str:
    """How `run` ended, and what it said of that."""
    return run.outcome.value + (f" ({run.error.message})" if run.error else "")


# --- How the two runs of a pair share the machine: chosen in one place, for reasons that are told.

# The share of a measure phase that a run may have stalled for slices to be believed.
STALL_TOLERATED = 0.01


@dataclass(frozen=True)
class Choice:
    """A method, and why it is not the one that would be taken else; empty where it is."""

    method: PairMethod
    why: str = ""


def choose(
    asked: PairMethod | None,
    workloads: Sequence[Workload],
    *,
    native: bool,
    scout: Sequence[Measurement] = (),
) -> Choice:
    """The method of a proof.

    What is `asked` for is taken; None leaves the choice, and then slices are taken where they can
    be (`slices_unusable`): both runs see the same moments of the machine, which is most of its
    noise. `docs/methodology.md` says why, and what remains.

    Nor can they be where a side stalls: RocksDB's delayed writes have a rate, and what is due by it
    goes on growing while the process is frozen, so that a stall costs less than it should
    (`db/write_controller.cc`). `scout` holds all runs of the first pair in slices that ended
    well: when one of them stalled for more than `STALL_TOLERATED` of its time, whole runs are taken
    from there on. Either side may be the one that stalls, so that leaving the pair out favours
    neither. LevelDB does not say whether it stalled; its sleeps are charged in full, as the driver
    freezes itself between operations.
    """
    if asked is not None:
        return Choice(asked)
    unusable = slices_unusable(workloads, native=native)
    if unusable:
        return Choice(PairMethod.WHOLE, unusable)
    worst = max(map(stalled_share, scout), default=0.0)
    if worst > STALL_TOLERATED:
        return Choice(
            PairMethod.WHOLE,
            f"a run stalled for {worst:.1%} of its time, which goes on while it is frozen between "
            "slices: the pairs are made of whole runs, and the one in slices does not count",
        )
    return Choice(PairMethod.SLICES)


def refusal(asked: PairMethod | None, workloads: Sequence[Workload], *, native: bool) -> str:
    """Why the method that a user asked for cannot be used, in one line; empty when it can."""
    if asked is PairMethod.SLICES:
        return slices_unusable(workloads, native=native)
    if asked is PairMethod.DUET and not native:
        return "a program that is not lsmtune's own driver is not kept to half of the cores"
    if asked is PairMethod.DUET:
        return next(filter(None, map(cold_obstacle, workloads)), "")
    return ""


def slices_unusable(workloads: Sequence[Workload], *, native: bool) -> str:
    """Why runs of `workloads` cannot take turns in slices, in one line; empty when they can."""
    if not native:
        return "a program that is not lsmtune's own driver cannot be stopped and continued"
    return next(filter(None, map(slices_obstacle, workloads)), "")


def stalled_share(run: Measurement) -> float:
    """The share of its measure phases for which a run stalled; 0 where that is not known.

    A run that did not end well says nothing.
    """
    measured = run.measured_phases
    stalls_s = [phase.stall_s for phase in measured if phase.stall_s is not None]
    elapsed_s = sum(phase.elapsed_s for phase in measured)
    if run.outcome is not Outcome.OK or not stalls_s or elapsed_s <= 0:
        return 0.0
    return sum(stalls_s) / elapsed_s


# --- Pairs that are run: of a proof, of a step of a minimisation, of a calibration.


@dataclass(frozen=True)
class Planned:
    """A pair to run: the seed of both, and each side as an arm and its slot by the first workload.

    `order` says which goes first: 0 is the baseline, 1 the candidate.
    """

    seed: int
    baseline: Run
    candidate: Run
    order: tuple[int, int] = (0, 1)


@dataclass(eq=False)
class PairSeries:
    """The pairs of two arms: those that the folder holds already, and those that are run next.

    `stored` has them in the order of their numbers, `number` is that of the next one, and `plan`
    makes it. `asked` is the method that the user wants, None to leave it to `choose`.
    """

    measurer: Measurer
    stored: list[Pair]
    number: int
    plan: Callable[[int], Planned]
    asked: PairMethod | None

    @property
    def scout(self) -> Pair | None:
        """The first pair in slices that ended well: a failure counts, whatever else stalled."""
        sliced = (pair for pair in self.stored if pair.is_of(PairMethod.SLICES))
        return next((pair for pair in sliced if not failed(pair.runs)), None)

    def choice(self) -> Choice:
        """The method of the next pair; what was run by another one does not count."""
        scout = [] if self.scout is None else measurements(self.scout.runs)
        workloads, native = self.measurer.workloads, self.measurer.native
        return choose(self.asked, workloads, native=native, scout=scout)

    def by(self, method: PairMethod) -> list[Pair]:
        """The pairs by `method`."""
        return [pair for pair in self.stored if pair.is_of(method)]

    def run_next(self, method: PairMethod, until_s: float) -> bool:
        """Run the next pair under every workload, up to one that fails; False when cut off.

        Both sides share the machine by `method`. The pair is ended when the clock of the measurer
        shows `until_s`.
        """
        plan = self.plan(self.number)
        # As many slices as suit the length of the phases, of which the runs of the first pair tell;
        # before it, 0 leaves that to the runner.
        pilot = [run for pair in self.stored[:1] for run in measurements(pair.runs)]
        lengths_s = [phase.elapsed_s for run in pilot for phase in run.measured_phases]
        slices = slices_for(max(lengths_s)) if lengths_s else 0
        sides: tuple[list[StoredMeasurement], list[StoredMeasurement]] = ([], [])
        for workload in range(len(self.measurer.workloads)):
            if self.measurer.stop.is_set():
                return False
            both = [
                (arm, replace(slot, workload=workload))
                for arm, slot in (plan.baseline, plan.candidate)
            ]
            first, second = (both[side] for side in plan.order)
            runs = self.measurer.measure_pair(
                first, second, plan.seed, method, until_s=until_s, slices=slices
            )
            if runs is None:
                return False
            for side, run in zip(plan.order, runs, strict=True):
                sides[side].append(run)
            if failed(runs):
                break
        self.stored.append(Pair(*sides))
        self.number += 1
        return True


def proof_series(
    measurer: Measurer, baseline: Arm, candidate: Arm, seed: int, asked: PairMethod | None
) -> PairSeries:
    """The pairs of a proof: their seeds follow from `seed`, and a coin that says who goes first."""
    store = measurer.folder.measurements
    stored = stored_pairs(store, baseline, candidate, len(measurer.workloads))
    last = store.last_pair()

    def plan(number: int) -> Planned:
        return Planned(
            derive_seed(seed, Stream.PROOF, number),
            (baseline, Slot(Role.PROOF_BASELINE, number, pair=number)),
            (candidate, Slot(Role.PROOF_CANDIDATE, number, pair=number)),
            (1, 0) if candidate_first(seed, number) else (0, 1),
        )

    # No pair of the folder has the seed of the next one.
    return PairSeries(measurer, stored, 0 if last is None else last + 1, plan, asked)


def seconds_each(pairs: Sequence[Pair]) -> float:
    """Seconds that another pair will take: the median of those before it, 0 when none was."""
    return statistics.median([pair.wall_s for pair in pairs] or [0.0])
