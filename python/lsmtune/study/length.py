"""How long the runs of a study are: as stated, or longer where those show no sustained rate.

The first run of the baseline tells. Longer runs are decided before anything is searched, and kept
as a fact of the folder, so that a study that goes on has the same ones.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.run_length import scaled_num, steady_factor, unsteady
from lsmtune.experiment.store import StoredMeasurement
from lsmtune.model.workload import Phase, PhaseKind, Workload
from lsmtune.study.spec import Spec
from lsmtune.study.start import PAIRS_KEPT_LEAST, RESERVE_FACTOR
from lsmtune.units import format_duration

# The stored fact: how many times as long as stated the runs under each workload are, in order.
_LONGER = "runs_longer_by"
# Trials without which a search is none; what longer runs leave time for at least.
_TRIALS_LEAST = 10
# A candidate may be slower than the baseline, and the deadline of a run stays.
_DEADLINE_SHARE = 0.5
_LONGEST = 1000.0


def at_length(spec: Spec, folder: StudyFolder) -> Spec:
    """`spec` with the runs that its folder has decided on."""
    factors = folder.measurements.fact(_LONGER)
    if factors is None:
        return spec
    pairs = zip(spec.workloads, factors, strict=True)
    longer = [replace(each, workload=longer_by(each.workload, factor)) for each, factor in pairs]
    return replace(spec, workloads=tuple(longer))


def longer_by(workload: Workload, factor: float) -> Workload:
    """`workload` with measure phases `factor` times as long; phases that fill get more keys."""
    if factor <= 1.0:
        return workload
    fills = any(phase.is_job and phase.kind is PhaseKind.MEASURE for phase in workload.phases)
    if fills:
        num = scaled_num(workload.num, factor)
        phases = tuple(_longer(phase, num / workload.num) for phase in workload.phases)
        return replace(workload, num=num, phases=phases)
    phases = tuple(
        _longer(phase, factor) if phase.kind is PhaseKind.MEASURE else phase
        for phase in workload.phases
    )
    return replace(workload, phases=phases)


def _longer(phase: Phase, factor: float) -> Phase:
    whole, each, lasts_s = phase.operations, phase.operations_per_thread, phase.duration_s
    return replace(
        phase,
        operations=None if whole is None else scaled_num(whole, factor),
        operations_per_thread=None if each is None else scaled_num(each, factor),
        duration_s=None if lasts_s is None else lasts_s * factor,
    )


def can_be_longer(workload: Workload) -> bool:
    """Whether its length is its own: a trace, or a mix that inserts beside a fill, has another."""
    measured = [phase for phase in workload.phases if phase.kind is PhaseKind.MEASURE]
    mixed = any(phase.mix is not None for phase in measured)
    jobs = any(phase.is_job for phase in measured)
    return not any(phase.replay is not None for phase in measured) and not (mixed and jobs)


def lengthen(
    spec: Spec, folder: StudyFolder, baseline: Sequence[StoredMeasurement], spent_s: float
) -> tuple[bool, str]:
    """Decide on longer runs where those of the `baseline`, one per workload, are not steady.

    Args:
        spec: the study, with the runs that the baseline had.
        folder: where the decision is kept; the runs so far no longer count then.
        baseline: its newest runs, which ended well.
        spent_s: seconds of the time budget that are gone.

    Returns:
        Whether the runs are longer from now on, and what the user has to know of it.
    """
    workloads = [weighted.workload for weighted in spec.workloads]
    pairs = list(zip(baseline, workloads, strict=True))
    why = [line for row, w in pairs for line in unsteady(row.measurement, w, spec.goal)]
    own = spec.command is None and all(map(can_be_longer, workloads))
    if spec.burst or not why or not own:
        return False, ""
    wanted = [steady_factor(row.measurement, w, spec.goal) for row, w in pairs]
    longest = _longest(spec, baseline, spent_s)
    told = f"the runs do not show what is sustained ({why[0]})"
    if max(wanted) > longest:
        needed = f"{max(wanted):.2g} times as long"
        return False, (
            f"{told}: runs {needed} would, for which the time budget or limits.deadline are too "
            "short; nothing can be proved better so (a larger budget, smaller memtables, or "
            "burst: true, which asks what a burst gains)"
        )
    known = folder.measurements.fact(_LONGER) or [1.0] * len(wanted)
    folder.measurements.set_fact(_LONGER, [a * b for a, b in zip(known, wanted, strict=True)])
    folder.measurements.set_aside()
    run_s = statistics.fmean(row.wall_s for row in baseline) * max(wanted)
    each = f"{max(wanted):.2g} times as long, about {format_duration(round(run_s))} each"
    return True, f"{told}: the runs of this study are {each}"


def _longest(spec: Spec, baseline: Sequence[StoredMeasurement], spent_s: float) -> float:
    """How many times as long the runs may be for the budget and the deadline."""
    longest_s = max(row.measurement.elapsed_s for row in baseline)
    longest = min(_LONGEST, _DEADLINE_SHARE * spec.limits.deadline_s / max(longest_s, 1e-9))
    if spec.budget.time_s is not None:
        runs = 1 + _TRIALS_LEAST + 2 * RESERVE_FACTOR * PAIRS_KEPT_LEAST
        round_s = sum(row.wall_s for row in baseline)
        longest = min(longest, (spec.budget.time_s - spent_s) / (runs * max(round_s, 1e-9)))
    return longest
