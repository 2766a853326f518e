"""Whether one run was long enough to say what an engine sustains, and how long would be.

An LSM-tree takes writes into memory and pays for them later, so that the length of a run counts in
flushes and in compactions into each level that holds data, not in seconds. There are two rules, and
what breaks the first one breaks the second, too:

- To decide, a run has to be *steady* (`unsteady`). Of the phases that the goal looks at, those that
  write made `FLUSHES_LEAST` flushes together and a compaction, or `FLUSHES_WANTED` flushes and
  none. Those that are no whole jobs put off no more than they did, and their rate has no trend.
  Whole jobs treat each key once, or insert so many records that the tree is another at their end.
  Studies make their runs longer until they are steady (`flushes_missing`, `steady_factor`), and no
  verdict on others is `better`.
- To be quoted, a run has to be longer (`length_warnings`). Each measure phase that writes made
  `FLUSHES_WANTED` flushes by itself, and `COMPACTIONS_WANTED` compactions into each level that
  holds data; the last level has most of the data; and compactions kept up. What holds of debts and
  trends holds of whole jobs, too. `bench`, sweeps, calibrations and reports warn of other runs, and
  refuse nothing. They say how many times as long would do (`factor_advised`).

One threshold for both would not do. With the lower one, rates of five flushes would stand there
without a word; with the higher one, a study of minutes could prove nothing.

All functions are pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from lsmtune.model.goal import Goal
from lsmtune.model.measurement import Measurement, PhaseMeasurement
from lsmtune.model.metrics import TOTAL_METRICS
from lsmtune.model.workload import Phase, PhaseKind, Workload
from lsmtune.stats.noise import INTERVALS_LEAST, stationarity
from lsmtune.workloads.ycsb import scattered_as

# With n flushes, the one that is under way at either end of a run makes up to 1 / n of it: 5 %.
FLUSHES_WANTED = 20
# A level that was compacted into less often has had its price paid by chance more than by rule.
COMPACTIONS_WANTED = 3
# Fewer show no rate at all: the one that is under way at the end makes up a fifth of it, and a
# candidate with larger memtables has not begun to pay.
FLUSHES_LEAST = 5
# Level 0 is compacted at 4 files by the default of both engines, and by then once more.
FLUSHES_BEFORE_COMPACTION = 8
# Compactions may have more to do in the second half of a phase than in the first, by this share of
# what that half wrote. A sawtooth of 20 flushes varies by a tenth of it.
PUT_OFF_MOST = 0.2
# A phase that adds this share of its records to them slows down as its tree grows: no rate lasts.
GROWTH_LEAST = 0.1
_DELETES = ("delete_oldest", "delete", "deleterandom")
# Of level 0, from empty to its trigger, in a run whose options say how many files that takes.
CYCLES_WANTED = 2
# How many times as long a run is next that flushed nothing, and one of which only the rate moved.
FACTOR_BLIND, TREND_FACTOR = 8.0, 2.0


# --- Whether a run is steady, so that it may decide: for studies and verdicts.


def unsteady(
    measurement: Measurement, workload: Workload, goal: Goal, flushes_least: int = FLUSHES_LEAST
) -> list[str]:
    """Why a run of `workload` cannot show what its engine sustains, by the phases of `goal`.

    What was written made fewer than `flushes_least` flushes or no compaction, what it left took
    longer than the phase itself, or the throughput has a trend. Phases that treat each key once, or
    insert many records, are whole jobs: their rate moves with the tree, and what they leave is
    charged to them. What a run did not count is not held against it.
    """
    phases = judged_phases(measurement, goal)
    lines = []
    if flushes_missing(measurement, goal, flushes_least=flushes_least):
        made = _writes(phases)[0] or 0
        few = f", at least {flushes_least} are wanted"
        lacks = few if made < flushes_least else " and compacted nothing"
        lines.append(f"flushed {_times(made)}{lacks}")
    return lines + _moving(phases, workload)


def flushes_missing(
    measurement: Measurement,
    goal: Goal,
    memtable_bytes: float = 0.0,
    flushes_least: int = FLUSHES_LEAST,
) -> float | None:
    """By how much longer a run has to be for its flushes and compactions alone, as a share of it.

    0 where they are enough, 1 for a run that has to be twice as long; None where it wrote nothing,
    or did not count. A single flush may be that of the end, of whatever there was: how much has to
    be written then follows from `memtable_bytes`, those of a full one, where they are known. Else
    nothing tells after no flush: a run that is `FACTOR_BLIND` times as long does.
    """
    phases = judged_phases(measurement, goal)
    flushes, compactions = _writes(phases)
    # Files of keys in order are only moved down, however many there are.
    enough = FLUSHES_WANTED if compactions == 0 else flushes_least
    if flushes is None:
        return None
    if flushes >= enough:
        return 0.0
    if not compactions and flushes <= FLUSHES_BEFORE_COMPACTION:
        enough = FLUSHES_BEFORE_COMPACTION
    written_bytes = sum(phase.user_bytes_written or 0 for phase in phases)
    if flushes <= 1 and memtable_bytes > written_bytes:
        return (1 + enough) * memtable_bytes / written_bytes - 1.0
    if not flushes:
        return FACTOR_BLIND - 1.0
    # One more: the first flush begins before the phase has written a whole memtable.
    return (1 + enough) / flushes - 1.0


def flushes_for(trigger: int) -> int:
    """How many flushes a run needs that is to show what compactions at `trigger` files cost.

    Two cycles of level 0: in runs of one, the moment at which they end decides. A candidate with a
    trigger of 13 files promised 1.60x after 16 flushes, and kept 1.22x.
    """
    return 1 + max(FLUSHES_LEAST, min(2 * FLUSHES_WANTED, CYCLES_WANTED * trigger))


def flushes_made(measurement: Measurement, goal: Goal) -> int:
    """How often a run flushed that compacted, too; 0 for any other."""
    flushes, compactions = _writes(judged_phases(measurement, goal))
    return flushes if flushes and compactions else 0


def ended_by_time(
    measurement: Measurement, workload: Workload, *, scale: float = 1.0
) -> list[PhaseMeasurement]:
    """The phases of a run that a duration ended, and not their operations.

    Of a run at `scale`, those that a duration would end where they have the target's operations.
    """
    durations_s = {phase.name: phase.duration_s for phase in workload.phases if phase.duration_s}
    timed = [phase for phase in measurement.phases if phase.name in durations_s]
    return [phase for phase in timed if phase.elapsed_s >= 0.99 * scale * durations_s[phase.name]]


def data_held(measurement: Measurement, workload: Workload, goal: Goal, flushes: int) -> float:
    """With how many times as much data a run still flushes so often, at least 1.

    In phases that a duration ends memtables that are as much larger fill as much less often; the
    others have as many more operations. inf where the former write nothing, or flushes were not
    counted.
    """
    timed = {phase.name for phase in ended_by_time(measurement, workload)}
    phases = [phase for phase in judged_phases(measurement, goal) if phase.name in timed]
    made, compactions = _writes(phases)
    wanted = FLUSHES_WANTED if compactions == 0 else flushes
    return math.inf if made is None else max(1.0, made / wanted)


def steady_factor(
    measurement: Measurement,
    workload: Workload,
    goal: Goal,
    missing: float | None,
    *,
    least: bool = False,
) -> float:
    """How many times as long a run has to be to be steady, at least 1; 1 where it is.

    Flushes come in proportion to what is written: `missing` is what `flushes_missing` says of them.
    `least`: no longer than what they want, for a run that has no time for more. Nor is one longer
    that is steady with `FLUSHES_LEAST`.
    """
    factor = 1.0 + (missing or 0.0)
    moving = _moving(judged_phases(measurement, goal), workload)
    only_flushes = not moving and (least or not flushes_missing(measurement, goal))
    return factor if only_flushes else max(TREND_FACTOR, factor)


def has_trend(measurement: Measurement, workload: Workload, goal: Goal) -> bool:
    """Whether the rate of a phase that `goal` looks at moves, and the phase is no whole job."""
    return any(list(_trend(p)) for p in _lasting(judged_phases(measurement, goal), workload))


def _writes(phases: Sequence[PhaseMeasurement]) -> tuple[int | None, int | None]:
    """Flushes and compactions of the phases that write; None where there is none, or no count."""
    writing = [phase for phase in phases if phase.user_bytes_written]
    flushes = [phase.flushes for phase in writing if phase.flushes is not None]
    compactions = [phase.compactions for phase in writing if phase.compactions is not None]
    return (sum(flushes) if flushes else None), (sum(compactions) if compactions else None)


def _moving(phases: Sequence[PhaseMeasurement], workload: Workload) -> list[str]:
    """What the phases that are no whole jobs owe, and what moves their rate."""
    lasting = _lasting(phases, workload)
    return [f"{p.name}: {line}" for p in lasting for line in (*_debt(p), *_trend(p))]


def _lasting(phases: Sequence[PhaseMeasurement], workload: Workload) -> list[PhaseMeasurement]:
    """The phases that are no whole jobs: longer ones would do more of the same."""
    jobs = {phase.name for phase in workload.phases if phase.is_job}
    growing = {name for name, _ in records_added(phases, workload)}
    return [phase for phase in phases if phase.name not in jobs | growing]


def records_added(phases: Sequence[PhaseMeasurement], workload: Workload) -> list[tuple[str, int]]:
    """Of phases that do not treat each key once: those that grow the data, by so many records.

    A hundred operations of YCSB D insert five records. Its runs need so many operations to flush
    and compact that they double the data.
    """
    shares = {phase.name: phase.shares for phase in workload.phases if not phase.is_job}
    grown = []
    for phase in phases:
        of = shares.get(phase.name, {})
        added = of.get("insert", 0.0) - sum(of.get(name, 0.0) for name in _DELETES)
        if added > 0.0 and added * phase.operations >= GROWTH_LEAST * workload.num:
            grown.append((phase.name, round(added * phase.operations)))
    return grown


def judged_phases(measurement: Measurement, goal: Goal) -> list[PhaseMeasurement]:
    """The measure phases that the objectives look at; all of them for totals of the run."""
    if any(objective.metric in TOTAL_METRICS for objective in goal.objectives):
        return measurement.measured_phases
    looked_at = (objective.phase_of(measurement) for objective in goal.objectives)
    return list({phase.name: phase for phase in looked_at if phase is not None}.values())


# --- Whether a run may be quoted: what `bench`, sweeps, calibrations and reports warn of.


def length_warnings(measurement: Measurement) -> list[str]:
    """Why the figures of a run are not those of a long one, by measure phase; a line each."""
    return [
        f"{phase.name}: {line}"
        for phase in measurement.measured_phases
        for line in (*_too_few(phase), *_debt(phase), *_put_off(phase), *_trend(phase))
    ]


def factor_advised(measurement: Measurement) -> float | None:
    """How many times as long the run should be for enough flushes and compactions, at least 1.

    By a linear scale, which is all that one run tells; a larger tree has more levels, so that it
    is worth asking again of the longer run. None where no measure phase says how often it flushed.
    """
    factors = []
    for phase in measurement.measured_phases:
        if phase.user_bytes_written and phase.flushes:
            done = _compactions(phase).values() if phase.compactions else ()
            factors += [1.0, FLUSHES_WANTED / phase.flushes]
            factors += [COMPACTIONS_WANTED / count for count in done if count > 0]
    return max(factors, default=None)


def _too_few(phase: PhaseMeasurement) -> Iterator[str]:
    """What a phase that wrote did too seldom, and whether its tree still grows."""
    if phase.user_bytes_written and phase.flushes is not None:
        if phase.flushes < FLUSHES_WANTED:
            yield f"flushed {_times(phase.flushes)}; {FLUSHES_WANTED} make a rate of writing"
        # A phase without any compaction may need none: files of keys in order are only moved down.
        few = [
            f"level {level} {_times(count)}"
            for level, count in _compactions(phase).items()
            if count < COMPACTIONS_WANTED
        ]
        if few and phase.compactions:
            levels = ", ".join(few)
            yield f"compacted into {levels}; {COMPACTIONS_WANTED} into each that holds data"
        yield from _growing(phase.bytes_per_level)


def _debt(phase: PhaseMeasurement) -> Iterator[str]:
    """Whether more was put off than was done: at length, writers wait for it instead."""
    if phase.user_bytes_written and (phase.drain_s or 0.0) > phase.elapsed_s:
        yield (
            "what it left to flush and compact took longer than the phase itself "
            f"({phase.drain_s:.3g} s after {phase.elapsed_s:.3g} s)"
        )


def _put_off(phase: PhaseMeasurement) -> Iterator[str]:
    """Whether compactions still fell behind when the phase ended.

    The price of that comes later: the files of level 0 take more and more space, up to the number
    at which RocksDB slows writers down. What is pending is by its own estimate, at its most in
    either half.
    """
    series = [step.pending_compaction_bytes for step in phase.intervals]
    pending_bytes = [each for each in series if each is not None]
    if len(pending_bytes) < INTERVALS_LEAST or not phase.user_bytes_written:
        return
    half = len(pending_bytes) // 2
    more_bytes = max(pending_bytes[half:]) - max(pending_bytes[:half])
    share = more_bytes / (phase.user_bytes_written / 2)
    if share > PUT_OFF_MOST:
        yield (
            f"compactions fell behind by {share:.0%} of what its second half wrote; at length they "
            "take more space, and writers wait for them"
        )


def _trend(phase: PhaseMeasurement) -> Iterator[str]:
    intervals = list(phase.intervals)
    if len(intervals) > 1 and intervals[-1].interval_s < intervals[-2].interval_s / 2:
        intervals.pop()  # cut off so early that its rate says little
    if len(intervals) >= INTERVALS_LEAST:
        steadiness = stationarity([interval.throughput_ops_s for interval in intervals])
        if not steadiness.steady:
            yield f"not steady: {steadiness.why}"


def _times(count: int) -> str:
    return f"{count} {'time' if count == 1 else 'times'}"


def _compactions(phase: PhaseMeasurement) -> dict[int, int]:
    """Compactions into each level below the first that holds data; empty where not known."""
    if phase.levels is None or phase.bytes_per_level is None:
        return {}
    done = {work.level: work.compactions for work in phase.levels}
    held = range(1, len(phase.bytes_per_level))
    return {level: done.get(level, 0) for level in held if phase.bytes_per_level[level] > 0}


def _growing(bytes_per_level: Sequence[int] | None) -> Iterator[str]:
    """Whether the deepest level is still being built: less in it than in those above it.

    A full tree has most of its data in its last level, as each may hold several times what the
    one above it may (10 times by the default of both engines). Until then writes pay for fewer
    levels than they will.
    """
    held = [(level, size) for level, size in enumerate(bytes_per_level or ()) if size > 0]
    last, size = held[-1] if held else (0, 0)
    above = sum(size for _, size in held[:-1])
    if last > 0 and size < above:
        share = f"{size / (size + above):.0%}"
        yield f"the tree still grows: level {last}, its last one, holds {share} of the data"


# --- Longer runs of a workload.


def can_last(workload: Workload) -> bool:
    """Whether longer runs of it are of the same data: not those that fill, or replay a trace."""
    return not any(phase.is_job or phase.replay is not None for phase in workload.measured_phases)


def can_change(workload: Workload) -> bool:
    """Whether its length is its own: a trace, or a mix beside a fill, has another."""
    measured = workload.measured_phases
    mixed = any(phase.mix is not None for phase in measured)
    jobs = any(phase.is_job for phase in measured)
    return not any(phase.replay is not None for phase in measured) and not (mixed and jobs)


def longer_by(workload: Workload, factor: float) -> Workload:
    """`workload` with measure phases `factor` times as long; where they fill, with more keys."""
    if factor <= 1.0:
        return workload
    num, jobs = workload.num, [phase for phase in workload.measured_phases if phase.is_job]
    if jobs:
        # Threads that share the keys go on to do so evenly, and no key comes up twice.
        each = math.lcm(*(phase.threads for phase in jobs if not num % phase.threads))
        num = _multiple(scaled_num(num, factor), each)
        factor = num / workload.num

    def grown(count: int) -> int:
        return math.ceil(round(count * factor, 6)) if jobs else scaled_num(count, factor)

    phases = (
        _scaled(phase, factor, grown) if jobs or phase.kind is PhaseKind.MEASURE else phase
        for phase in workload.phases
    )
    return replace(workload, num=num, phases=tuple(phases))


def can_warm(workload: Workload) -> bool:
    """Whether what it measures leaves it the same records, so that it can do it before, too."""
    measured = workload.measured_phases
    others = {"insert", *_DELETES}
    keeps = all(phase.shares and others.isdisjoint(phase.shares) for phase in measured)
    return keeps and can_last(workload)


def warmed_by(workload: Workload, share: float) -> Workload:
    """`workload` that first does `share` of what it measures, and does not measure that.

    So a rate that moves in the beginning is not judged, where longer runs would only dilute it.
    What inserts or deletes would measure other records after that: it becomes longer instead.
    """
    if share <= 0.0:
        return workload
    if not can_warm(workload):
        return longer_by(workload, 1.0 + share)
    phases: list[Phase] = []
    for phase in workload.phases:
        if phase.kind is PhaseKind.MEASURE:
            before = _scaled(phase, share, lambda count: math.ceil(share * count))
            phases.append(replace(before, name=f"{phase.name}-warmup", kind=PhaseKind.WARMUP))
        phases.append(phase)
    return replace(workload, phases=tuple(phases))


def _scaled(phase: Phase, factor: float, of: Callable[[int], int]) -> Phase:
    """`phase`, `factor` times as long; `of` says how many its operations then are."""
    whole, each, lasts_s = phase.operations, phase.operations_per_thread, phase.duration_s
    scaled = replace(
        phase,
        operations=None if whole is None else _shared_evenly(of(whole), phase),
        operations_per_thread=None if each is None else of(each),
        duration_s=None if lasts_s is None else lasts_s * factor,
    )
    return scattered_as(phase, scaled)


def _shared_evenly(operations: int, phase: Phase) -> int:
    """`operations`, rounded up to what the threads of `phase` share evenly, as its own are.

    A program that counts by thread, as db_bench does, performs no others.
    """
    if phase.operations is None or phase.operations % phase.threads:
        return operations
    return _multiple(operations, phase.threads)


def scaled_num(num: int, factor: float) -> int:
    """`num` operations times `factor`, rounded up to two digits: 1.3 times 100,000 is 130,000."""
    wanted = math.ceil(round(num * factor, 6))
    if wanted <= num:
        return num
    unit = int(10 ** max(0, len(str(wanted)) - 2))
    return _multiple(wanted, unit)


def _multiple(number: int, of: int) -> int:
    """The least multiple of `of` that is not below `number`."""
    return -(-number // of) * of
