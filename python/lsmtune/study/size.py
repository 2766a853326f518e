"""How large and how long the runs of a study are, and what follows from it.

They are those of the target, which the study file states, or of a model of it: less data, and as
much less of what scales with it (`engines.scaling`). `study.resize` decides on it, before anything
is searched. It is kept as a fact of the folder, so that a study that goes on has the same runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from lsmtune.engines.scaling import scaled_memory, write_cycle
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.run_length import can_last, flushes_for, longer_by
from lsmtune.model.codec import decode
from lsmtune.model.config import Config
from lsmtune.model.measurement import Measurement, total_metric
from lsmtune.model.metrics import TOTAL_WITH_DRAIN_S
from lsmtune.model.request import Limits
from lsmtune.model.workload import Workload
from lsmtune.study.feasible import limits_of_length, limits_of_size, one_length
from lsmtune.study.spec import Spec
from lsmtune.study.start import baseline_config
from lsmtune.study.stored import smaller
from lsmtune.units import format_duration

RUN_SIZE = "run_size"  # the stored fact
# A candidate may be slower than the baseline, and the deadline of a run stays.
DEADLINE_SHARE = 0.5


@dataclass(frozen=True)
class RunSize:
    """The runs of a study against those of its file.

    `longer`: how many times as long as stated the target's runs are, by workload; empty: as stated.
    `scale` and `proof_scale`: the share of the target's data in the search and in the proof.
    `longest`: up to how many times as long as those of the baseline the runs of a trial may be.
    `flushes`: how often the baseline's runs flush, under the workload where they do so most rarely;
    0: not known.
    `lasting`: the share of a round of the search that durations take, as they do on any data.
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
    lasting: float = 0.0

    @property
    def grows(self) -> bool:
        """Whether the proof has larger runs than the search."""
        return self.proof_scale != self.scale

    @property
    def proof_factor(self) -> float:
        """How many times as long as a round of the search one of the proof takes."""
        return self.lasting + (1.0 - self.lasting) * self.proof_scale / self.scale


def stored_size(folder: StudyFolder) -> RunSize:
    """What the study in `folder` has decided on."""
    fact = folder.measurements.fact(RUN_SIZE)
    return RunSize() if fact is None else decode(RunSize, fact)


def at_length(spec: Spec, folder: StudyFolder) -> Spec:
    """`spec` with the target's runs, and their rungs of size, as long as its folder has decided."""
    factors = stored_size(folder).longer
    if not factors:
        return spec
    pairs = zip(spec.workloads, factors, strict=True)
    longer = [replace(each, workload=longer_by(each.workload, factor)) for each, factor in pairs]
    pruner, rungs = spec.pruner, spec.data_rungs
    if pruner is not None and rungs is not None:
        pruner = replace(pruner, rungs=rungs.longer(longer[0].workload.num, max(factors)))
    return replace(spec, workloads=tuple(longer), pruner=pruner)


def at_scale(spec: Spec, scale: float) -> tuple[list[Workload], Limits]:
    """The workloads and the limits of a model of `spec` with `scale` times its data."""
    workloads = [weighted.workload for weighted in spec.workloads]
    if scale == 1.0:
        return workloads, spec.limits
    threads = max(phase.threads for workload in workloads for phase in workload.phases)
    memory_bytes = scaled_memory(spec.limits.memory_bytes, scale, threads)
    sized = [smaller(workload, max(1, round(workload.num * scale))) for workload in workloads]
    return sized, replace(spec.limits, memory_bytes=memory_bytes)


def unlike_now(spec: Spec, size: RunSize) -> str:
    """What to say of a study that goes on with runs that its file would not have now; or empty."""
    began_s, now_s, lines = size.time_s, spec.budget.time_s, []
    if size.scale < 1.0 and began_s is not None and (now_s is None or now_s > began_s):
        lines.append(
            f"this study began with a time budget of {format_duration(began_s)}, and goes on with "
            f"its model of {size.scale:.2g} of the target; for larger runs begin anew (--dir DIR)"
        )
    if size.scale < 1.0 and (limits := limits_of_size(spec)):
        lines.append(
            f"this study goes on with its model of {size.scale:.2g} of the target, which keeps or "
            f"breaks `{limits[0]}` by its size alone: begin anew (--dir DIR), or limit a ratio, or "
            "a multiple of baseline"
        )
    if size.longest > 1.0 and all_alike(spec):
        lines.append(
            f"this study goes on with runs up to {size.longest:.2g} times as long as the "
            "baseline's, and its file now has burst, or what grows with a run: begin anew "
            "(--dir DIR)"
        )
    return "; ".join(lines)


def for_their_length(spec: Spec, factor: float) -> list[str]:
    """What the limits of a study have to be for runs `factor` times as long as stated, in lines."""
    limits = limits_of_length(spec)
    if not limits or factor <= 1.0:
        return []
    return [f"`{', '.join(limits)}` counts for runs {factor:.2g} times as long: state it for these"]


def more_s(run: Measurement, factor: float) -> float:
    """Seconds that `run` takes longer with measure phases `factor` times as long.

    What it loads, and what opening and checking a database takes, does not grow with its length.
    """
    measured_s = total_metric(run, TOTAL_WITH_DRAIN_S)
    return (factor - 1.0) * (run.elapsed_s if measured_s is None else measured_s)


# --- The length of a trial


def all_alike(spec: Spec) -> bool:
    """Whether the runs of all trials are as long as the baseline's."""
    workloads = [weighted.workload for weighted in spec.workloads]
    writes = any(phase.writes for workload in workloads for phase in workload.measured_phases)
    return spec.burst or one_length(spec) or not writes or not all(map(can_last, workloads))


def lengths(spec: Spec, size: RunSize) -> Callable[[Config], float] | None:
    """How many times as long as the baseline's a configuration's runs are; None: all alike.

    What a configuration collects before it flushes and compacts for the first time is what a short
    run does not charge it for. So its runs write as much as its own first compaction needs. Whether
    they may was decided with the `size`: constraints change between sessions, and stored runs do
    not.
    """
    if size.longest == 1.0:
        return None
    options = baseline_config(spec).options
    base, base_trigger = write_cycle(spec.engine_name, options, spec.defaults)
    made = max(size.flushes, flushes_for(base_trigger))

    def length_of(config: Config) -> float:
        each, trigger = write_cycle(spec.engine_name, config.options, spec.defaults)
        return max(1.0, min(size.longest, each * flushes_for(trigger) / (base * made)))

    return length_of
