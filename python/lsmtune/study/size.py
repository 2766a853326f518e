"""How large and how long the runs of a study are: those of its target, or of a model of it.

What a study file states is the target. The first run of the baseline tells two things. If it is
not steady, all runs become longer. If the time budget does not hold a search at the target, the
search runs on a model: less data, and as much less of what scales with it (`engines.scaling`). The
proof then has the largest scale for which there is time. All this is decided before anything is
searched, and kept as a fact of the folder, so that a study that goes on has the same runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lsmtune.engines.scaling import scaling_options, write_cycle
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.measurer import Measurer
from lsmtune.experiment.run_length import (
    can_last,
    flushes_for,
    flushes_made,
    scaled_num,
    steady_factor,
    unsteady,
)
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.model.codec import decode, encode
from lsmtune.model.config import Config, OptionValue
from lsmtune.model.measurement import Measurement, total_metric
from lsmtune.model.metrics import TOTAL_WITH_DRAIN_S
from lsmtune.model.request import Limits
from lsmtune.model.workload import Phase, PhaseKind, Workload
from lsmtune.study.feasible import one_length
from lsmtune.study.spec import Spec
from lsmtune.study.start import PAIRS_KEPT_LEAST, PROMOTED_MAX, RESERVE_FACTOR, baseline_config
from lsmtune.study.stored import smaller
from lsmtune.units import format_duration
from lsmtune.workloads.distributions import data_bytes

_FACT = "run_size"
# The first run, and the smallest model: below this, a memtable of 64 MiB has shrunk to a few
# blocks, and what a process takes for itself is most of its memory.
MODEL_BYTES = 64 << 20
SCALE_LEAST = 0.01
# What the driver and an engine take of the memory whatever the data are, and for each thread; it
# does not scale. Of YCSB's workload A on 1,000,000 records the kernel charged 146 MB beside the
# pages of files, on 0.0577 of everything 20.6 MB: 12.9 MB are fixed; with 16 threads and 6 more in
# the background 11.5 MB more (RocksDB 10.10.1). What a model has too much is page cache that the
# target lacks: with 48 MiB it held 1.28 of its database, the target 0.84.
PROCESS_BYTES, THREAD_BYTES = 13 << 20, 1 << 20
# Runs of a search: the least one, and one that finds what there is, in half of the budget.
_RUNS_LEAST, _RUNS_WANTED = 11, 40
_SEARCH_SHARE = 0.5
# The least proof; before one on more data than the search, the baseline and the promoted trials
# run once.
_PAIRS_RUNS = RESERVE_FACTOR * 2 * PAIRS_KEPT_LEAST
_PROOF_RUNS = _PAIRS_RUNS + RESERVE_FACTOR * (1 + PROMOTED_MAX)
# A candidate may be slower than the baseline, and the deadline of a run stays.
_DEADLINE_SHARE = 0.5
_LONGEST, _TRIES = 1000.0, 4


class ResizedError(Exception):
    """The runs of the study have another size from now on; the text says why."""


@dataclass(frozen=True)
class RunSize:
    """The runs of a study against those of its file.

    `longer`: how many times as long as stated the target's runs are, by workload; empty: as stated.
    `scale` and `proof_scale`: the share of the target's data in the search and in the proof.
    `longest`: up to how many times as long as those of the baseline the runs of a trial may be.
    `flushes`: how often the baseline's runs flush, under the workload where they do so most rarely;
    0: not known.
    `tries`: how often it was changed; `settled`: that it is not looked at again. `time_s`: the time
    budget for which it was decided.
    """

    longer: tuple[float, ...] = ()
    scale: float = 1.0
    proof_scale: float = 1.0
    tries: int = 0
    settled: bool = False
    time_s: float | None = None
    longest: float = 1.0
    flushes: int = 0

    @property
    def grows(self) -> bool:
        """Whether the proof has larger runs than the search."""
        return self.proof_scale != self.scale


def stored_size(folder: StudyFolder) -> RunSize:
    """What the study in `folder` has decided on."""
    fact = folder.measurements.fact(_FACT)
    return RunSize() if fact is None else decode(RunSize, fact)


def at_length(spec: Spec, folder: StudyFolder) -> Spec:
    """`spec` with the target's runs as long as its folder has decided."""
    factors = stored_size(folder).longer
    if not factors:
        return spec
    pairs = zip(spec.workloads, factors, strict=True)
    longer = [replace(each, workload=longer_by(each.workload, factor)) for each, factor in pairs]
    return replace(spec, workloads=tuple(longer))


def at_scale(spec: Spec, scale: float) -> tuple[list[Workload], Limits]:
    """The workloads and the limits of a model of `spec` with `scale` times its data."""
    workloads = [weighted.workload for weighted in spec.workloads]
    if scale == 1.0:
        return workloads, spec.limits
    memory_bytes = spec.limits.memory_bytes
    threads = max(phase.threads for workload in workloads for phase in workload.phases)
    fixed_bytes = PROCESS_BYTES + threads * THREAD_BYTES
    if memory_bytes > fixed_bytes:
        memory_bytes = fixed_bytes + round((memory_bytes - fixed_bytes) * scale)
    sized = [smaller(workload, max(1, round(workload.num * scale))) for workload in workloads]
    return sized, replace(spec.limits, memory_bytes=memory_bytes)


def smaller_than_could_be(spec: Spec, size: RunSize) -> str:
    """What to say of a model that goes on with a larger budget than it was made for; or empty."""
    began_s, now_s = size.time_s, spec.budget.time_s
    if size.scale == 1.0 or began_s is None or (now_s is not None and now_s <= began_s):
        return ""
    return (
        f"this study began with a time budget of {format_duration(began_s)}, and goes on with its "
        f"model of {size.scale:.2g} of the target; for larger runs begin anew (--dir DIR)"
    )


# --- Longer runs


def longer_by(workload: Workload, factor: float) -> Workload:
    """`workload` with measure phases `factor` times as long; where they fill, with more keys."""
    if factor <= 1.0:
        return workload
    if any(phase.is_job for phase in workload.measured_phases):
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


def can_change(workload: Workload) -> bool:
    """Whether its length is its own: a trace, or a mix beside a fill, has another."""
    measured = workload.measured_phases
    mixed = any(phase.mix is not None for phase in measured)
    jobs = any(phase.is_job for phase in measured)
    return not any(phase.replay is not None for phase in measured) and not (mixed and jobs)


# --- The decision


def begin(spec: Spec, folder: StudyFolder) -> None:
    """Before the first run of a study: a target that is large is first run as a small model."""
    if folder.measurements.fact(_FACT) is None and not folder.measurements.all():
        scale = _scale_least(spec)
        folder.measurements.set_fact(_FACT, encode(RunSize(scale=scale, proof_scale=scale)))


def resize(
    spec: Spec,
    folder: StudyFolder,
    baseline: Sequence[StoredMeasurement],
    spent_s: float,
    defaults: Mapping[str, OptionValue],
) -> str:
    """Decide on the size of the runs, by those of the `baseline`, one per workload.

    Args:
        spec: the study, its target as long as the folder has decided.
        folder: where the decision is kept; if it changes the runs, those so far no longer count.
        baseline: its newest runs, which ended well.
        spent_s: seconds of the time budget that are gone.
        defaults: the engine's options.

    Returns:
        What the user has to know of runs that stay as they are; empty for nothing.

    Raises:
        ResizedError: they are others from now on.
    """
    size = replace(stored_size(folder), time_s=spec.budget.time_s)
    if size.settled or spec.command is not None:
        return ""
    workloads = [weighted.workload for weighted in spec.workloads]
    pairs = list(zip(baseline, workloads, strict=True))
    why = [line for row, w in pairs for line in unsteady(row.measurement, w, spec.goal)]
    if spec.burst or not all(map(can_change, workloads)):
        why = []
    memtable_bytes, _ = write_cycle(spec.engine_name, baseline_config(spec).options, defaults)
    full_bytes = size.scale * memtable_bytes
    factors = [
        steady_factor(row.measurement, w, spec.goal, memtable_bytes=full_bytes) if why else 1.0
        for row, w in pairs
    ]
    more_s = [_more_s(row.measurement, f) for (row, _), f in zip(pairs, factors, strict=True)]
    wall_s = sum(row.wall_s for row, _ in pairs) + sum(more_s)
    run_s = max(
        row.measurement.elapsed_s + more for (row, _), more in zip(pairs, more_s, strict=True)
    )
    flushes = min(flushes_made(row.measurement, spec.goal) for row, _ in pairs)
    if _scale_least(spec) < 1.0 and any(p.duration_s for w in workloads for p in w.phases):
        flushes = 0  # on more data, with larger memtables, it is fewer in the same time
    if size.tries and not why:
        longest = _longest(spec, run_s / size.scale * size.proof_scale)
        new = replace(size, settled=True, longest=longest, flushes=flushes)
        folder.measurements.set_fact(_FACT, encode(new))
        return ""
    each = zip(spec.workloads, factors, strict=True)
    target = [replace(w, workload=longer_by(w.workload, factor)) for w, factor in each]
    target_spec = replace(spec, workloads=tuple(target))
    wanted = _wanted(target_spec, wall_s / size.scale, run_s / size.scale, spent_s)
    known = size.longer or (1.0,) * len(factors)
    longer = tuple(a * b for a, b in zip(known, factors, strict=True))
    times = f"{max(factors):.2g}" if max(factors) < 10 else f"{max(factors):,.0f}"
    hopeless = why and (wanted is None or max(longer) > _LONGEST or size.tries >= _TRIES)
    if hopeless or wanted is None:
        new = replace(size, settled=True)
        least_s = spent_s + (_RUNS_LEAST + _PAIRS_RUNS) * wall_s * _scale_least(spec) / size.scale
        told = _TOO_SHORT.format(times, format_duration(60 * math.ceil(least_s / 60)))
    else:
        lengths = longer if why else size.longer
        longest = _longest(spec, run_s / size.scale * wanted[1])
        new = RunSize(lengths, *wanted, size.tries + 1, not why, size.time_s, longest, flushes)
        told = f"the runs of this study are {times} times as long"
    lines = [f"the runs do not show what is sustained ({why[0]}): {told}"] if why else []
    if new.scale < 1.0:
        lines.append(_MODEL.format(new.scale, new.proof_scale))
    if (new.longer, new.scale) == (size.longer, size.scale):
        folder.measurements.set_fact(_FACT, encode(new))
        return "; ".join(lines)
    folder.measurements.set_aside(_FACT, encode(new))
    run_s = round(wall_s * new.scale / size.scale, 1)
    raise ResizedError("; ".join([*lines, f"a run takes about {format_duration(run_s)}"]))


_TOO_SHORT = (
    "{} times as long, they would, for which the time budget or limits.deadline are too short; "
    "nothing can be proved better so (--budget {} or more, smaller memtables, or burst: true, "
    "which asks what a burst gains)"
)
_MODEL = (
    "the time budget does not hold a search at the target: it searches a model with {:.2g} of the "
    "data, memtables, caches and memory, and proves at {:.2g}"
)


def _more_s(run: Measurement, factor: float) -> float:
    """Seconds that `run` takes longer with measure phases `factor` times as long.

    What it loads, and what opening and checking a database takes, does not grow with its length.
    """
    measured_s = total_metric(run, TOTAL_WITH_DRAIN_S)
    return (factor - 1.0) * (run.elapsed_s if measured_s is None else measured_s)


def _wanted(
    spec: Spec, target_wall_s: float, target_run_s: float, spent_s: float
) -> tuple[float, float] | None:
    """The scales of search and proof, by what a run at the target takes; None: none has room."""
    deadline = _DEADLINE_SHARE * spec.limits.deadline_s / max(target_run_s, 1e-9)
    least = _scale_least(spec)
    if spec.budget.time_s is None:
        return (1.0, 1.0) if deadline >= 1.0 else None
    left_s = (spec.budget.time_s - spent_s) / max(target_wall_s, 1e-9)  # in runs of the target
    if left_s >= _RUNS_WANTED + _PAIRS_RUNS and deadline >= 1.0:
        return 1.0, 1.0
    search = min(1.0, _SEARCH_SHARE * left_s / _RUNS_WANTED)
    if least == 1.0 or search > _SEARCH_SHARE:
        # What is small, or nearly fits, is no model's; it has fewer runs.
        return (1.0, 1.0) if left_s >= _RUNS_LEAST + _PAIRS_RUNS and deadline >= 1.0 else None
    search = max(least, search)
    if left_s < (_RUNS_LEAST + _PAIRS_RUNS) * search or deadline < search:
        return None
    proof = min(1.0, deadline, (left_s - _RUNS_LEAST * search) * _SEARCH_SHARE / _PROOF_RUNS)
    return search, max(search, proof)


def _scale_least(spec: Spec) -> float:
    """The scale of the smallest model; 1 for a study that has none."""
    workloads = [weighted.workload for weighted in spec.workloads]
    own = spec.command is None and spec.program is None and bool(scaling_options(spec.engine_name))
    if (
        spec.has_data_rungs
        or not own
        or spec.budget.time_s is None
        or not all(map(can_change, workloads))
    ):
        return 1.0
    share = MODEL_BYTES / max(data_bytes(workload) for workload in workloads)
    return min(1.0, max(SCALE_LEAST, share))


# --- The length of a trial

# A run of a trial is at most so many times as long as one of the baseline: what a search takes for
# one configuration, it has not for others.
_TRIAL_LONGEST = 4.0


def _longest(spec: Spec, run_s: float) -> float:
    """`RunSize.longest`, where a run of the baseline in the proof takes `run_s` seconds."""
    within_deadline = _DEADLINE_SHARE * spec.limits.deadline_s / max(run_s, 1e-9)
    return max(1.0, min(_TRIAL_LONGEST, within_deadline))


@dataclass(frozen=True)
class TrialLengths:
    """The lengths of a study's trials, against those of its baseline's runs.

    What a configuration collects before it flushes and compacts for the first time is what a short
    run does not charge it for. So its runs write as much as its own first compaction needs.
    `defaults` are the engine's.
    """

    spec: Spec
    size: RunSize
    defaults: Mapping[str, OptionValue]

    def of(self, config: Config) -> float:
        """How many times as long as those of the baseline its runs are."""
        (each, trigger), (base, base_trigger) = (
            write_cycle(self.spec.engine_name, options, self.defaults)
            for options in (config.options, baseline_config(self.spec).options)
        )
        made = max(self.size.flushes, flushes_for(base_trigger))
        wanted = each * flushes_for(trigger) / (base * made)
        return max(1.0, min(self.size.longest, wanted))

    def workloads(self, config: Config, workloads: Sequence[Workload]) -> Sequence[Workload]:
        """`workloads` with measure phases of that length."""
        factor = self.of(config)
        return [longer_by(workload, factor) for workload in workloads]


def lengths(spec: Spec, size: RunSize, defaults: Mapping[str, OptionValue]) -> TrialLengths | None:
    """Those of a study; None where all of its runs have one length."""
    workloads = [weighted.workload for weighted in spec.workloads]
    writes = any(phase.writes for workload in workloads for phase in workload.measured_phases)
    can = spec.command is None and not one_length(spec) and all(map(can_last, workloads))
    if spec.burst or size.longest == 1.0 or not can or not writes:
        return None
    return TrialLengths(spec, size, defaults)


# --- The proof

_PROOF_FACT = "proof_lengths"  # by finalist


def for_proof(
    spec: Spec, measurer: Measurer, size: RunSize, trial: int, deadline_s: float | None
) -> Measurer:
    """`measurer` with runs in which the finalist `trial` is steady, too, where there is time.

    Runs have the length that the baseline needs. A finalist with larger memtables flushes less
    often, and could prove nothing. So the longest time that the newest runs of both ask for counts,
    or the least that they could do with, if the least proof then fits into `deadline_s` seconds
    (None: no end). Where it does not, the proof has less data, down to those of the search: runs
    that are too short prove nothing. It is kept as a fact of the folder: a proof that goes on has
    the same runs, also after one of another trial.
    """
    store = measurer.folder.measurements
    proofs = store.fact(_PROOF_FACT) or {}
    if str(trial) not in proofs:
        factor, room = 1.0, 1.0
        if not spec.burst and spec.command is None and all(map(can_last, measurer.workloads)):
            factor, room = _proof_length(spec, measurer, trial, deadline_s)
        least = size.scale / size.proof_scale
        if room < least:
            factor, room = 1.0, 1.0
        share = 1.0 if room >= 1.0 else max(least, room / RESERVE_FACTOR)
        proofs = {**proofs, str(trial): [factor, share * size.proof_scale]}
        store.set_fact(_PROOF_FACT, proofs)
    factor, scale = proofs[str(trial)]
    measurer = measurer.at(*at_scale(spec, scale), scale)
    if factor == 1.0:
        return measurer
    longer = [longer_by(workload, factor) for workload in measurer.workloads]
    return replace(measurer, workloads=longer)


def _proof_length(
    spec: Spec, measurer: Measurer, trial: int, deadline_s: float | None
) -> tuple[float, float]:
    """How many times as long a proof's runs are; how many times the least proof the time holds."""
    rows = measurer.folder.measurements.all()
    last = max((row.repeat for row in rows if row.role is Role.PROMOTION), default=None)
    if last is None:
        of = {Role.BASELINE: None, Role.TRIAL: trial}
        runs = [row for row in rows if row.role in of and row.trial == of[row.role]]
    else:
        runs = [row for row in rows if row.role is Role.PROMOTION and row.repeat == last]
        runs = [row for row in runs if row.trial in (None, trial)]
    # The newest of each arm under each workload.
    newest = {(row.trial, row.workload): row for row in runs}.values()
    # Each with how long it was, against a run of the baseline.
    pairs = [
        (row, measurer.workloads[row.workload], measurer.length_of(row.config)) for row in newest
    ]
    factor, room = 1.0, 1.0
    for least in (False, True):
        factor = max(
            (x * steady_factor(r.measurement, w, spec.goal, least=least) for r, w, x in pairs),
            default=1.0,
        )
        more_s = [(r, _more_s(r.measurement, factor / x)) for r, _, x in pairs]
        pair_s = sum(r.wall_s + more for r, more in more_s)
        longest_s = max((r.measurement.elapsed_s + more for r, more in more_s), default=0.0)
        room = measurer.limits.deadline_s / max(longest_s, 1e-9)
        if deadline_s is not None:
            room = min(room, deadline_s / max(PAIRS_KEPT_LEAST * pair_s, 1e-9))
        if room >= 1.0:
            break
    return factor, room
