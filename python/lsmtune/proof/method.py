"""How the two runs of a pair share the machine: chosen in one place, for reasons that are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lsmtune.records.measurement import Measurement, Outcome
from lsmtune.records.pairing import PairMethod, slices_for
from lsmtune.records.workload import Workload
from lsmtune.runners.pair import cold_obstacle, slices_obstacle

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
    be: they let both runs see the same moments of the machine, which is most of its noise. They
    cannot be for a program that is not lsmtune's driver (not `native`), nor for `workloads` with a
    rate, whose operations go on being due while the run is frozen, or with a replay, which the
    driver does not cut, or with a cold page cache, which two runs that are alive at once share.

    Nor can they be where a side stalls: RocksDB's delayed writes have a rate, and what is due by it
    goes on growing while the process is frozen, as do its timers of stalls, so that a stall costs
    less than it should (`db/write_controller.cc`). `scout` holds all runs of the first pair that
    was run in slices, once there is one: when one of them stalled for more than `STALL_TOLERATED`
    of its time, whole runs are taken from there on. That would be said as well if its sides were
    swapped, and its ratio is not looked at, so that the pair may be left out.

    LevelDB does not say whether it stalled, and None is no evidence of it. Its slowdown is a sleep
    of 1 ms in each write while level 0 has 8 files or more, and a wait for a compaction at 12
    (`MakeRoomForWrite` in `db/db_impl.cc`); the driver freezes itself between operations, so that
    both are charged in full. What remains is that the kernel goes on writing the files of a frozen
    run to the disk: a side that writes more to it, by compactions, then looks slightly better than
    alone. `whole` can be asked for.
    """
    if asked is not None:
        return Choice(asked)
    unusable = slices_unusable(workloads, native=native)
    if unusable:
        return Choice(PairMethod.WHOLE, unusable)
    worst = max((stalled_share(run) or 0.0 for run in scout), default=0.0)
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


def slices_of(first: Sequence[Measurement]) -> int:
    """How many slices suit the measure phases, which took as long as in the runs of a `first` pair.

    0, which leaves it to the runner, before anything is known of that. All runs of a pair count
    alike, so that the number does not depend on which side is which.
    """
    phases = [phase for run in first for phase in run.phases]
    lengths_s = [phase.elapsed_s for phase in phases if phase.kind == "measure"]
    return slices_for(max(lengths_s)) if lengths_s else 0


def stalled_share(run: Measurement) -> float | None:
    """The share of its measure phases for which a run stalled; None where that is not known.

    A run that did not end well says nothing.
    """
    measured = [phase for phase in run.phases if phase.kind == "measure"]
    stalls_s = [phase.stall_s for phase in measured if phase.stall_s is not None]
    elapsed_s = sum(phase.elapsed_s for phase in measured)
    if run.outcome is not Outcome.OK or not stalls_s or elapsed_s <= 0:
        return None
    return sum(stalls_s) / elapsed_s
