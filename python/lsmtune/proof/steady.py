"""What a verdict rests on: how much was run, and whether it shows what an engine sustains.

An engine takes writes into memory and pays for them later. A short run shows how fast it takes
them, and the configuration that keeps most in memory wins. At ten times the length it loses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median

from lsmtune.experiment.run_length import unsteady
from lsmtune.model.goal import Goal
from lsmtune.model.measurement import Measurement
from lsmtune.model.verdict import ProvedAt, Verdict, VerdictOutcome
from lsmtune.model.workload import Workload

Runs = Sequence[Measurement]  # of one side of one pair: one per workload
Sides = Sequence[tuple[Runs, Runs]]  # of complete pairs: baseline, candidate
_ARMS = ("baseline", "candidate")


def judged_by_length(
    verdict: Verdict,
    goal: Goal,
    workloads: Sequence[Workload],
    pairs: Sides,
    *,
    burst: bool,
    share_of_target: float = 1.0,
) -> Verdict:
    """`verdict` with what it was `proved_at`; one on runs that are not steady is not `better`.

    A run is not steady by `run_length.unsteady`; an arm where more than half of its runs are not,
    as chance makes one in twenty. `burst`: the user asks for what runs of this length show.
    `share_of_target` is that of the workloads in what the user runs.
    """
    proved_at = [replace(at, share_of_target=share_of_target) for at in _sizes(workloads, pairs)]
    verdict = replace(verdict, proved_at=tuple(proved_at))
    if burst or not pairs:
        return verdict
    lines = _unsteady_arms(goal, workloads, pairs)
    if not lines:
        return verdict
    said = "the runs do not show what is sustained: " + "; ".join(lines)
    if verdict.outcome is not VerdictOutcome.BETTER:
        return replace(verdict, notes=(*verdict.notes, said))
    return verdict.but(VerdictOutcome.NOT_PROVEN, said)


def _unsteady_arms(goal: Goal, workloads: Sequence[Workload], pairs: Sides) -> list[str]:
    """Of each arm the most frequent reason why most of its runs are not steady, a line each."""
    lines = []
    for side, arm in enumerate(_ARMS):
        for index, workload in enumerate(workloads):
            runs = [pair[side][index] for pair in pairs]
            found = [unsteady(run, workload, goal) for run in runs]
            many = sum(bool(each) for each in found)
            if 2 * many > len(runs):
                ((often, _),) = Counter(each[0] for each in found if each).most_common(1)
                label = f" under {workload.name}" if len(workloads) > 1 else ""
                lines.append(f"{arm}{label}: {often}, in {many} of {len(runs)} runs")
    return lines


def _sizes(workloads: Sequence[Workload], pairs: Sides) -> Iterator[ProvedAt]:
    for index, workload in enumerate(workloads if pairs else ()):
        sides = [[pair[side][index] for pair in pairs] for side in range(len(_ARMS))]
        yield ProvedAt(
            workload=workload.name,
            records=workload.num,
            operations=_median_of(sides[0] + sides[1], "operations") or 0,
            baseline_flushes=_median_of(sides[0], "flushes"),
            candidate_flushes=_median_of(sides[1], "flushes"),
            baseline_compactions=_median_of(sides[0], "compactions"),
            candidate_compactions=_median_of(sides[1], "compactions"),
        )


def _median_of(runs: Runs, field: str) -> int | None:
    """The median over `runs` of a count in all measure phases; None where one does not know it."""
    counts = []
    for run in runs:
        each = [getattr(phase, field) for phase in run.measured_phases]
        if any(count is None for count in each):
            return None
        counts.append(int(sum(each)))
    return round(median(counts))
