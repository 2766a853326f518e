"""How large and how long the runs of a study are to be: decided by the first of the baseline.

That run tells two things. If it is not steady, all runs become longer. If the time budget does not
hold a search at the target, the search runs on a model of it (`study.size`). The proof then has the
largest scale for which there is time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lsmtune.engines.scaling import scaling_options, write_cycle
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.run_length import (
    FLUSHES_LEAST,
    can_change,
    data_held,
    ended_by_time,
    flushes_for,
    flushes_made,
    flushes_missing,
    longer_by,
    steady_factor,
    unsteady,
)
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.model.measurement import Outcome
from lsmtune.study.budget import PROMOTED_MAX, RESERVE_FACTOR, proof_runs_least
from lsmtune.study.feasible import limits_of_size
from lsmtune.study.size import (
    DEADLINE_SHARE,
    RUN_SIZE,
    RunSize,
    all_alike,
    at_scale,
    for_their_length,
    more_s,
    stored_size,
    unlike_now,
)
from lsmtune.study.spec import Spec
from lsmtune.study.start import baseline_config
from lsmtune.units import format_duration
from lsmtune.workloads.distributions import data_bytes

# The first run, and the smallest model of a target that fills its memory: with less data, what a
# process takes for itself is most of the memory.
MODEL_BYTES = 64 << 20
# The smallest model where memory holds the target's data twice over. With less, the least memtable
# that there is, of 64 KiB, would be one of several MiB at the target.
MODEL_BYTES_LEAST = 16 << 20
SCALE_LEAST = 0.01
# Runs of a search: the least one, and one that finds what there is, in half of the budget.
_RUNS_LEAST, _RUNS_WANTED = 11, 40
_SEARCH_SHARE = 0.5
# Before a proof on more data than the search, the baseline and the promoted trials run once.
_PROMOTION_RUNS = RESERVE_FACTOR * (1 + PROMOTED_MAX)
# Scales that differ by less are as good.
_DIFFERS = 1.4
# Of a run of a model, durations take half at most: still less data would save little of its time.
_LASTING_SHARE = 0.5
# How many times as long as stated runs become at most, and in how many steps.
_LONGEST, _TRIES = 1000.0, 4
# Of the disk limit: the guards let a configuration take 1.25 times the baseline's space.
_DISK_SHARE = 0.8
# A run of a trial is at most so many times as long as one of the baseline: what a search takes for
# one configuration, it has not for others.
_TRIAL_LONGEST = 4.0
# What the user is told, with what stands in for `{}`.
_TOO_SHORT = (
    "{} times as long, they would, for which {}; nothing can be proved better so: begin anew "
    "(--dir DIR) with {}smaller memtables, or burst: true, which asks what a burst gains"
)
_OWN_LENGTH = (
    "the runs do not show what is sustained ({}), and a study makes none longer that replays a "
    "trace, or measures a mix beside a fill; nothing can be proved better so: begin anew (--dir "
    "DIR) with a longer one, or burst: true, which asks what a burst gains"
)
_CAPPED = (
    f"a study makes them longer {_TRIES} times, {_LONGEST:,.0f} times as long at most",
    "a larger workload, ",
)
_NOT_TIME = "limits.deadline, limits.disk, or the durations of phases, do"
_MODEL = (
    "{} not hold a search at the target: it searches a model with {:.2g} of the data, memtables, "
    "caches and memory, and proves at {:.2g}"
)


class ResizedError(Exception):
    """The runs of the study have another size from now on; the text says why."""


def begin(spec: Spec, folder: StudyFolder) -> str:
    """Before the first run of a study: a target that is large is first run as a small model.

    Returns what the user has to know of one that has no model, or an empty text.
    """
    known, rows = stored_size(folder), folder.measurements.of(Role.BASELINE)
    # Before a run tells, what was decided follows from the file as it is now, and may be another.
    begun = known.tries or known.settled
    if begun or any(row.measurement.outcome is Outcome.OK for row in rows):
        return ""
    model, limits = _model_scale(spec, MODEL_BYTES), limits_of_size(spec)
    scale = 1.0 if limits else model
    folder.measurements.set_fact(RUN_SIZE, RunSize(scale=scale, proof_scale=scale))
    if model == scale:
        return ""
    return (
        f"all runs have the data of the target, as a model of it would keep or break `{limits[0]}` "
        "by its size alone; limit a ratio, or a multiple of baseline, for a search that may run on "
        "less"
    )


def resized(
    spec: Spec, size: RunSize, baseline: Sequence[StoredMeasurement], spent_s: float
) -> tuple[RunSize, str]:
    """The size of the runs by the newest of the `baseline`, one per workload, at `size`; pure.

    And what the user has to know of it, or an empty text. Where `longer` or `scale` are others the
    runs so far no longer count. `spec` has its target as long as `size` says; `spent_s` seconds of
    the time budget are gone.
    """
    if size.settled:
        return size, unlike_now(spec, size)
    if spec.command is not None:
        return size, ""
    size = replace(size, time_s=spec.budget.time_s)
    needed = _needed(spec, size, baseline, spent_s, cycles=True)
    if needed.why and (size.tries >= _TRIES or needed.scales() is None):
        needed = _needed(spec, size, baseline, spent_s, cycles=False)
    why, wanted = needed.why, needed.scales()
    too_large = wanted is not None and wanted[0] * _DIFFERS < size.scale
    if size.tries and not why and (size.tries >= _TRIES or not too_large):
        return _settled(size, needed)
    known = size.longer or (1.0,) * len(needed.factors)
    longer = tuple(a * b for a, b in zip(known, needed.factors, strict=True))
    most = max(needed.factors)
    times = f"{most:.2g}" if most < 10 else f"{most:,.0f}"
    capped = bool(why) and (max(longer) > _LONGEST or size.tries >= _TRIES)
    if capped or wanted is None:
        new = replace(size, settled=True)
        why_not, what_would = _CAPPED if capped else needed.lacking()
        text = _TOO_SHORT.format(times, why_not, what_would)
    else:
        new = needed.with_lengths(
            replace(
                size,
                longer=longer if why else size.longer,
                scale=wanted[0],
                proof_scale=wanted[1],
                tries=size.tries + 1,
                settled=not why,
            )
        )
        text = f"the runs of this study are {times} times as long"
    lines = _kept_short(spec, baseline)
    if why:
        lines.append(f"the runs do not show what is sustained ({why[0]}): {text}")
        if new.longer != size.longer:
            lines += for_their_length(spec, max(new.longer))
    if new.scale < 1.0:
        bound = _NOT_TIME if needed.holds_target() else "the time budget does"
        lines.append(_MODEL.format(bound, new.scale, new.proof_scale))
    if (new.longer, new.scale) != (size.longer, size.scale):
        run_s = round(needed.takes.at(new.scale), 1)
        lines.append(f"a run takes about {format_duration(run_s)}")
    return new, "; ".join(lines)


def _kept_short(spec: Spec, baseline: Sequence[StoredMeasurement]) -> list[str]:
    """What to say of runs with a length of their own that are not steady: before the search."""
    workloads = [weighted.workload for weighted in spec.workloads]
    if spec.burst or all(map(can_change, workloads)):
        return []
    pairs = zip(baseline, workloads, strict=True)
    why = [line for row, w in pairs for line in unsteady(row.measurement, w, spec.goal)]
    return [_OWN_LENGTH.format(why[0])] if why else []


def _settled(size: RunSize, needed: _Needed) -> tuple[RunSize, str]:
    """`size` now that its runs are steady, and what the user has to know of it, or empty.

    The run by which it was decided was too short to show how long these take. So the proof, which
    has not begun, gets another size. That of the search is kept: the baseline would have to run
    once more.
    """
    proof_scale = needed.proof_scale(size.scale)
    text = ""
    differs = abs(math.log(proof_scale / size.proof_scale)) > math.log(_DIFFERS)
    if size.scale < 1.0 and (differs or needed.scale_most < size.proof_scale):
        run_s = format_duration(round(needed.takes.at(size.scale), 1))
        text = f"a run takes {run_s}: the proof has {proof_scale:.2g} of the target"
        size = replace(size, proof_scale=proof_scale)
    return needed.with_lengths(replace(size, settled=True)), text


@dataclass(frozen=True)
class _Takes:
    """Seconds of runs: `lasting_s` by durations, on any data, and `scaled_s` more on the target's.

    A run may be longer than the one that was measured, whose scale is known.
    """

    lasting_s: float
    scaled_s: float

    def at(self, scale: float) -> float:
        """Seconds with `scale` times the target's data."""
        return self.lasting_s + scale * self.scaled_s

    def scale_for(self, seconds: float) -> float:
        """The scale at which they take so long; negative where durations alone take longer."""
        return (seconds - self.lasting_s) / max(self.scaled_s, 1e-9)


@dataclass(frozen=True)
class _Needed:
    """What a study needs whose runs are long enough, and which sizes that leaves.

    `why`: what keeps those of the baseline from showing what is sustained, empty for nothing.
    `factors`: how many times as long they have to be, by workload; `spec` has a target of that
    length. One under each workload then takes `takes`; `runs` are each by itself, without its load.
    `scale_most`: the largest scale of runs that flush often enough, and are within their limits.
    `flushes`: of the baseline's runs, as in `RunSize`. `spent_s` seconds of the budget are gone.
    """

    spec: Spec
    why: list[str]
    factors: list[float]
    takes: _Takes
    runs: list[_Takes]
    scale_most: float
    flushes: int
    spent_s: float

    def holds_target(self) -> bool:
        """Whether the time budget holds a search and a proof at the target."""
        runs = _RUNS_WANTED + proof_runs_least(self.spec)
        return self.left_s is None or self.left_s >= runs * self.takes.at(1.0)

    def scales(self) -> tuple[float, float] | None:
        """The scales of search and proof; None: none has room."""
        takes, left_s = self.takes, self.left_s
        if self.scale_most >= 1.0 and self.holds_target():
            return 1.0, 1.0
        if left_s is None:
            return None
        least = _scale_least(self.spec)
        run_s = max(_SEARCH_SHARE * left_s / _RUNS_WANTED, takes.lasting_s / _LASTING_SHARE)
        # What is small, or nearly fits, is no model's; it has fewer runs.
        fits = _RUNS_WANTED * takes.at(1.0) < left_s
        search = 1.0 if fits else min(1.0, max(least, takes.scale_for(run_s)))
        # The largest that fits.
        search = min(search, self.scale_most, takes.scale_for(left_s / self.runs_least))
        return None if search < least else (search, self.proof_scale(search))

    def proof_scale(self, search: float) -> float:
        """The largest scale of a proof after a `search` at that scale, which it has at least."""
        if self.left_s is None:
            return 1.0
        search_s = _RUNS_LEAST * self.takes.at(search)
        runs = proof_runs_least(self.spec) + _PROMOTION_RUNS
        proof_s = (self.left_s - search_s) * _SEARCH_SHARE / runs
        return max(search, min(1.0, self.scale_most, self.takes.scale_for(proof_s)))

    @property
    def runs_least(self) -> float:
        """Those of the least search and the least proof."""
        return _RUNS_LEAST + proof_runs_least(self.spec)

    @property
    def left_s(self) -> float | None:
        """Seconds of the time budget that are left; None: no end."""
        time_s = self.spec.budget.time_s
        return None if time_s is None else time_s - self.spent_s

    def lacking(self) -> tuple[str, str]:
        """What is too short for the smallest model, and what would do, for a sentence."""
        least = _scale_least(self.spec)
        time_s = self.spent_s + self.runs_least * self.takes.at(least)
        deadline_s = max(run.at(least) for run in self.runs) / DEADLINE_SHARE
        needs = {}
        if self.spec.budget.time_s is not None and self.spec.budget.time_s < time_s:
            needs["the time budget"] = f"--budget {_in_minutes(time_s)} or more, "
        if self.spec.limits.deadline_s < deadline_s:
            needs["limits.deadline"] = f"limits.deadline: {_in_minutes(deadline_s)} or more, "
        short = f"{' and '.join(needs)} {'are' if len(needs) > 1 else 'is'} too short"
        return short, "".join(needs.values())

    def with_lengths(self, size: RunSize) -> RunSize:
        """`size` with what the baseline's runs say of how long its runs are."""
        longest, longest_s = 1.0, max(run.at(size.proof_scale) for run in self.runs)
        if not all_alike(self.spec):
            within_deadline = DEADLINE_SHARE * self.spec.limits.deadline_s / max(longest_s, 1e-9)
            longest = max(1.0, min(_TRIAL_LONGEST, within_deadline))
        lasting = self.takes.lasting_s / max(self.takes.at(size.scale), 1e-9)
        return replace(size, longest=longest, flushes=self.flushes, lasting=lasting)


def _needed(
    spec: Spec,
    size: RunSize,
    baseline: Sequence[StoredMeasurement],
    spent_s: float,
    *,
    cycles: bool,
) -> _Needed:
    """`cycles`: runs see two cycles of level 0, of the baseline's own trigger, as trials do."""
    workloads, _ = at_scale(spec, size.scale)  # what the runs insert is beside their own data
    pairs = list(zip(baseline, workloads, strict=True))
    options = baseline_config(spec).options
    memtable_bytes, trigger = write_cycle(spec.engine_name, options, spec.defaults)
    least = flushes_for(trigger) - 1 if cycles else FLUSHES_LEAST
    why = [line for row, w in pairs for line in unsteady(row.measurement, w, spec.goal, least)]
    if spec.burst or not all(map(can_change, workloads)):
        why = []
    factors, walls, runs, scale_most = [], [], [], math.inf
    for row, workload in pairs:
        run = row.measurement
        missing = flushes_missing(run, spec.goal, size.scale * memtable_bytes, least)
        factor = steady_factor(run, workload, spec.goal, missing) if why else 1.0
        factors.append(factor)
        lasted, longer_s = ended_by_time(run, workload), more_s(run, factor)
        lasting_s = sum(p.elapsed_s * (factor if p.kind == "measure" else 1.0) for p in lasted)
        walls.append(_Takes(lasting_s, (row.wall_s + longer_s - lasting_s) / size.scale))
        runs.append(_Takes(lasting_s, (run.elapsed_s + longer_s - lasting_s) / size.scale))
        if not spec.burst:
            held = data_held(run, workload, spec.goal, flushes_for(trigger))
            scale_most = min(scale_most, size.scale * held)
        taken_bytes = max((phase.database_bytes_max or 0 for phase in run.phases), default=0)
        if taken_bytes:
            held = max(1.0, _DISK_SHARE * spec.limits.disk_bytes / taken_bytes)
            scale_most = min(scale_most, size.scale * held)
    longest_s = DEADLINE_SHARE * spec.limits.deadline_s
    scale_most = min([scale_most, *(each.scale_for(longest_s) for each in runs)])
    flushes = min(flushes_made(row.measurement, spec.goal) for row in baseline)
    lasts = any(ended_by_time(row.measurement, w, scale=size.scale) for row, w in pairs)
    if lasts and _scale_least(spec) < 1.0:
        flushes = 0  # on more data, with larger memtables, it is fewer in the same time
    whole = _Takes(sum(w.lasting_s for w in walls), sum(w.scaled_s for w in walls))
    each = zip(spec.workloads, factors, strict=True)
    target = tuple(replace(w, workload=longer_by(w.workload, factor)) for w, factor in each)
    longer = replace(spec, workloads=target)
    return _Needed(longer, why, factors, whole, runs, scale_most, flushes, spent_s)


def _in_minutes(seconds: float) -> str:
    return format_duration(60 * math.ceil(seconds / 60))


def _scale_least(spec: Spec) -> float:
    """The scale of the smallest model that there may be; 1 for no model."""
    return 1.0 if limits_of_size(spec) else _model_scale(spec, MODEL_BYTES_LEAST)


def _model_scale(spec: Spec, model_bytes: int) -> float:
    """The scale of a model with so many bytes of data, whatever the study limits; 1 for none."""
    workloads = [weighted.workload for weighted in spec.workloads]
    own = spec.command is None and spec.program is None and bool(scaling_options(spec.engine_name))
    if (
        spec.data_rungs is not None
        or not own
        or spec.budget.time_s is None
        or not all(map(can_change, workloads))
    ):
        return 1.0
    largest_bytes = max(data_bytes(workload) for workload in workloads)
    if spec.limits.memory_bytes < 2 * largest_bytes:
        model_bytes = max(MODEL_BYTES, model_bytes)
    return min(1.0, max(SCALE_LEAST, model_bytes / largest_bytes))
