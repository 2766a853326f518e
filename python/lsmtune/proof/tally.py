"""What the pairs of a proof come to: values, failures, and what else must be said of them."""

from __future__ import annotations

from collections.abc import Sequence

from lsmtune.proof.method import STALL_TOLERATED, stalled_share
from lsmtune.proof.pairs import Pair, Side, failed, measurements
from lsmtune.proof.verdict import Tally
from lsmtune.records.goal import Goal
from lsmtune.records.measurement import Measurement, Outcome
from lsmtune.records.pairing import PairMethod

# A baseline that fails now and then is bad luck, and its pair is run again; one that fails more
# often than this is no baseline.
FAILURES_TOLERATED = 2


def complete_pairs(pairs: Sequence[Pair], goal: Goal) -> list[Pair]:
    """The pairs of which both sides have a value."""
    return [
        pair
        for pair in pairs
        if _value(goal, pair.baseline) is not None and _value(goal, pair.candidate) is not None
    ]


def tally_of(pairs: Sequence[Pair], goal: Goal) -> Tally:
    """The values of the complete pairs, and the failures of the others."""
    complete = complete_pairs(pairs, goal)
    values = [(_value(goal, pair.baseline), _value(goal, pair.candidate)) for pair in complete]
    failures = len(pairs) - len(complete)
    failure = next((pair for pair in pairs if _candidate_failed(pair, goal)), None)
    disqualified = "" if failure is None else _failure_text(failure, goal)
    if failures > FAILURES_TOLERATED and not disqualified:
        last = next(
            (_ended(pair.baseline) for pair in reversed(pairs) if failed(pair.baseline)), ""
        )
        disqualified = f"the baseline failed in {failures} pairs: a run of it ended {last}"
    runs = [run.measurement for pair in pairs for run in pair.candidate]
    return Tally(
        baseline=[baseline for baseline, _ in values if baseline is not None],
        candidate=[candidate for _, candidate in values if candidate is not None],
        failed=failures,
        disqualified=disqualified,
        data_lost=any(run.outcome is Outcome.DATA_LOSS for run in runs),
    )


def notes_on(pairs: Sequence[Pair]) -> list[str]:
    """What a reader of the verdict must know of the runs it stands on, a line each."""
    lines = []
    stalled = sum(any(_stalled(run.measurement) for run in pair.runs) for pair in pairs)
    if stalled:
        lines.append(
            f"a run stalled in {stalled} of {len(pairs)} pairs, and in slices a stall costs less "
            "than it should: prove it again with whole runs (method whole)"
        )
    runs = [run.measurement for pair in pairs for run in pair.runs]
    unverified = sum(_wrote(run) and _unverified(run) for run in runs)
    if unverified:
        lines.append(
            f"{unverified} of {len(runs)} runs wrote keys of which none was read back: nothing "
            "shows that their data is right"
        )
    return lines


def _value(goal: Goal, side: Side) -> float | None:
    return goal.value(measurements(side))


def _candidate_failed(pair: Pair, goal: Goal) -> bool:
    """Whether a run of the candidate failed, or did not observe what it is judged by.

    Where the baseline failed, the candidate may not have run all workloads.
    """
    if failed(pair.candidate):
        return True
    return not failed(pair.baseline) and _value(goal, pair.candidate) is None


def _failure_text(pair: Pair, goal: Goal) -> str:
    """How the candidate of `pair` failed, and whether the baseline did no better."""
    alike = _value(goal, pair.baseline) is None
    if failed(pair.candidate):
        whose = (
            "a run of the baseline and one of the candidate" if alike else "a run of the candidate"
        )
        return f"{whose} ended {_ended(pair.candidate)}"
    if alike:
        return f"no run of either configuration observed {goal.metric}"
    return f"a run of the candidate did not observe {goal.metric}"


def _ended(side: Side) -> str:
    """How the run of `side` ended that failed."""
    run = next(run for run in measurements(side) if run.outcome is not Outcome.OK)
    return run.outcome.value + (f" ({run.error.message})" if run.error else "")


def _stalled(run: Measurement) -> bool:
    in_slices = run.paired_by == PairMethod.SLICES.value
    return in_slices and (stalled_share(run) or 0.0) > STALL_TOLERATED


def _wrote(run: Measurement) -> bool:
    return run.outcome is Outcome.OK and any(phase.user_bytes_written for phase in run.phases)


def _unverified(run: Measurement) -> bool:
    return run.verification is None or run.verification.keys_checked == 0
